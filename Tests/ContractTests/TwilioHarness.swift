import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import TwilioProvider

/// Twilio's facade, read by asking alone or by webhooks.
struct TwilioHarness: ProviderHarness {
  let channel: ChannelID = "a room/with ü?"
  private let service: ServedService
  private let chat: ChatService
  private let facade: TwilioFacade
  private let folder: TemporaryFolder
  /// Where the facade's webhooks arrive; nil when there are none.
  private let listener: Listener?

  private static let account = "AC00000000000000000000000000000001"
  private static let serviceSID = "IS00000000000000000000000000000001"
  private static let form = "application/x-www-form-urlencoded"

  /// Hands webhooks to the adapter that was made last.
  private final class Listener: Sendable {
    let server: HTTPServer
    let receiver = Locked<(any WebhookReceiver)?>(nil)
    private let task = Locked<Task<Void, Never>?>(nil)

    init(loop: LoopExecutor) throws(FerryError) {
      let receiver = receiver
      server = try HTTPServer(
        HTTPServer.Settings(stopTimeout: .milliseconds(200)), loop: loop, logger: .silent
      ) { request in
        guard let receiver = receiver.withLock({ $0 }) else { return HTTPResponse(status: 503) }
        return await receiver.webhook(request)
      }
      let server = server
      task.withLock { $0 = Task { await server.run() } }
    }

    var url: String { server.url + "/hooks/support?tenant=7" }

    func close() async {
      let task = task.withLock { $0 }
      task?.cancel()
      await task?.value
    }
  }

  static func start(webhooks: Bool) async throws -> TwilioHarness {
    let folder = try TemporaryFolder()
    var settings = TwilioFacade.Settings(
      accountSID: account, authToken: Secret("token"), apiKey: "SK00000000000000000000000000000001",
      apiSecret: Secret("secret"), serviceSID: serviceSID)
    settings.conversations = ["a room/with ü?"]
    let chat = try ChatService(
      path: folder.file("chat.db"), files: folder.file("files"), logger: .silent, limits: settings.chatLimits)
    let loop = try LoopExecutor(name: "contract-webhooks")
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let facade = TwilioFacade(
      settings: settings, chat: chat, client: client, clock: SystemClock(), logger: .silent, metrics: nil)
    let service = try await ServedService(handler: facade.handle) {
      await withDiscardingTaskGroup { group in
        group.addTask { await facade.run() }
        group.addTask { await chat.run() }
      }
      loop.stop()
    }
    let listener = webhooks ? try Listener(loop: service.loop) : nil
    return TwilioHarness(service: service, chat: chat, facade: facade, folder: folder, listener: listener)
  }

  private init(
    service: ServedService, chat: ChatService, facade: TwilioFacade, folder: TemporaryFolder, listener: Listener?
  ) {
    self.service = service
    self.chat = chat
    self.facade = facade
    self.folder = folder
    self.listener = listener
  }

  var proxy: FaultProxy? { service.proxy }

  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider {
    var settings = TwilioAdapter.Settings(
      accountSID: Self.account, authToken: Secret(goodCredentials ? "token" : "wrong"), api: service.proxy.url)
    settings.poll = listener == nil ? .milliseconds(20) : .milliseconds(250)
    settings.webhook = listener?.url
    settings.webhookSetup = listener != nil
    // The rules write faster than Twilio would let them.
    settings.writesPerSecond = 1000
    let adapter = TwilioAdapter(settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
    listener?.receiver.withLock { $0 = adapter }
    return adapter
  }

  func say(_ text: String, by author: Author) async throws(FerryError) {
    let path = "/v1/Conversations/\(PercentEncoding.encode(channel.rawValue))/Messages"
    var request = ClientRequest(method: "POST", url: service.server.url + path)
    request.headers = ["Authorization": "Basic " + Self.credentials, "Content-Type": Self.form]
    // What people say over the service's own libraries is announced; what programs write only when they ask for it.
    if listener != nil { request.headers.add("X-Twilio-Webhook-Enabled", "true") }
    request.body = .bytes(Array(Form([("Author", author.name), ("Body", text)]).encoded.utf8))
    let response = try await service.direct.send(request)
    let answer = try await response.collect(upTo: 1 << 20)
    guard response.status == 201 else {
      throw FerryError(.internal, "\(response.status) \(String(decoding: answer, as: UTF8.self))")
    }
  }

  private static let credentials = Data("\(account):token".utf8).base64EncodedString()

  func watch() async throws(FerryError) -> any ChannelWatcher {
    Watcher(reader: try await chat.reader(of: nil, after: nil))
  }

  private struct Watcher: ChannelWatcher {
    let reader: FeedReader

    func messages(_ count: Int) async -> [Seen] {
      var all: [Seen] = []
      while all.count < count, let items = try? await reader.next(), !items.isEmpty {
        for case .event(let logged) in items {
          guard case .posted(let message)? = try? logged.event().kind else { continue }
          all.append(Seen(author: message.author.name, text: message.text))
        }
      }
      return all
    }

    func close() async { reader.close() }
  }

  func close() async {
    facade.closeAll()
    await listener?.close()
    await service.close()
    chat.close()
  }
}
