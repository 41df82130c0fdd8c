import BackendlessProvider
import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import LocalProvider
import TwilioProvider

/// A facade over a chat service, in whose rooms people talk as they do on its chat page.
final class ChatPlace: Place {
  let room: ChannelID = "room"
  private let kind: PlaceKind
  private let host: FacadeHost
  private let chat: Locked<ChatService?>
  private let folder: TemporaryFolder

  static let account = "AC00000000000000000000000000000001"
  private static let serviceSID = "IS00000000000000000000000000000001"

  static func open(_ kind: PlaceKind) async throws -> ChatPlace {
    let folder = try TemporaryFolder()
    let chat = Locked<ChatService?>(nil)
    let host = try await FacadeHost { client in try facade(kind, folder, client, chat) }
    let place = ChatPlace(kind, host, chat, folder)
    if kind == .backendless { try await place.waitUntilFollowed() }
    return place
  }

  private init(_ kind: PlaceKind, _ host: FacadeHost, _ chat: Locked<ChatService?>, _ folder: TemporaryFolder) {
    self.kind = kind
    self.host = host
    self.chat = chat
    self.folder = folder
  }

  private static func facade(
    _ kind: PlaceKind, _ folder: TemporaryFolder, _ client: HTTPClient, _ holder: Locked<ChatService?>
  ) throws -> FacadeHost.Facade {
    var limits = ChatLimits()
    var twilio = TwilioFacade.Settings(
      accountSID: account, authToken: Secret("token"), apiKey: "SK00000000000000000000000000000001",
      apiSecret: Secret("secret"), serviceSID: serviceSID)
    twilio.conversations = ["room"]
    if kind == .twilio { limits = twilio.chatLimits }
    let chat = try ChatService(
      path: folder.file("chat.db"), files: folder.file("files"), logger: .silent, limits: limits)
    holder.withLock { $0 = chat }
    let clock = SystemClock()
    switch kind {
    case .twilio:
      let facade = TwilioFacade(
        settings: twilio, chat: chat, client: client, clock: clock, logger: .silent, metrics: nil)
      return FacadeHost.Facade(
        handle: facade.handle, run: { await both(chat.run, facade.run) },
        close: {
          facade.closeAll()
          chat.close()
        })
    case .backendless:
      let facade = BackendlessFacade(
        settings: BackendlessFacade.Settings(appID: "APP-1", apiKey: Secret("KEY-1")), chat: chat, client: client,
        rehearsal: nil, clock: clock, logger: .silent, metrics: nil)
      return FacadeHost.Facade(
        handle: facade.handle, run: { await both(chat.run, facade.run) },
        close: {
          facade.closeAll()
          chat.close()
        })
    default:
      let facade = LocalServer(chat: chat, tokens: [LocalServer.Token(token: "good")], logger: .silent)
      return FacadeHost.Facade(handle: facade.handle, run: chat.run, close: { chat.close() })
    }
  }

  private static func both(
    _ first: @escaping @Sendable () async -> Void, _ second: @escaping @Sendable () async -> Void
  ) async {
    await withDiscardingTaskGroup { group in
      group.addTask { await first() }
      group.addTask { await second() }
    }
  }

  private func service() throws(FerryError) -> ChatService {
    guard let chat = chat.withLock({ $0 }) else { throw FerryError(.unavailable, "The place is closed.") }
    return chat
  }

  /// The facade makes rows of what people write once it follows the chat.
  private func waitUntilFollowed() async throws {
    let draft = Draft(author: Author(id: "nobody", name: "nobody"), text: "is anybody there?")
    _ = try await service().post(draft, to: "elsewhere", by: .owner)
    while try await service().count(in: "table/ChatMessage") == 0 { await Task.yield() }
  }

  var proxy: FaultProxy? { host.proxy }
  var server: FacadeHost? { host }
  var memory: MemoryProvider? { nil }
  var writesUnderWay: Int { host.writesUnderWay }

  // MARK: The account

  func account(webhook: String, clock: any FerryClock) throws(FerryError) -> any ChatProvider {
    switch kind {
    case .twilio:
      var settings = TwilioAdapter.Settings(
        accountSID: Self.account, authToken: Secret("token"), api: host.proxy.url)
      settings.serviceSID = Self.serviceSID
      settings.poll = .milliseconds(400)
      if !webhook.isEmpty {
        settings.webhook = webhook
        settings.webhookSetup = true
      }
      settings.writesPerSecond = 1000
      return TwilioAdapter(settings: settings, client: host.client, clock: clock, logger: .silent)
    case .backendless:
      var settings = BackendlessAdapter.Settings(server: host.proxy.url, appID: "APP-1", key: Secret("KEY-1"))
      settings.poll = .seconds(2)
      return BackendlessAdapter(settings: settings, client: host.client, clock: clock, logger: .silent)
    default:
      var settings = try LocalAdapter.Settings(url: host.proxy.url, token: Secret("good"))
      settings.reconnect = ReconnectPolicy(base: .milliseconds(20), limit: .milliseconds(200))
      return LocalAdapter(settings: settings, client: host.client, clock: clock, logger: .silent)
    }
  }

  func configuration(webhook: String) -> String? {
    switch kind {
    case .twilio:
      """
      { provider: twilio, account_sid: \(Self.account), auth_token: token, service_sid: \(Self.serviceSID), \
      api_url: "\(host.proxy.url)", webhook: "\(webhook)", webhook_setup: true, poll: 1s }
      """
    case .backendless:
      #"{ provider: backendless, server_url: "\#(host.proxy.url)", app_id: APP-1, api_key: KEY-1, poll: 2s }"#
    default: #"{ provider: local, url: "\#(host.proxy.url)", token: good }"#
    }
  }

  // MARK: People

  func say(_ text: String, picture: [UInt8]?) async throws -> String {
    let chat = try service()
    var draft = Draft(author: speaker, text: text)
    if let picture {
      let file = try await chat.store(.bytes(picture), name: "a.png", mediaType: "image/png")
      draft.attachments = [
        Attachment(
          name: "a.png", mediaType: file.mediaType, size: file.size, sha256: file.sha256,
          reference: .provider(file.sha256))
      ]
    }
    return try await chat.post(draft, to: room, by: .owner).message.message.id.rawValue
  }

  func change(_ id: String, to text: String) async throws {
    _ = try await service().edit(MessageID(id), in: room, to: Change(text: text), by: .owner)
  }

  func remove(_ id: String) async throws {
    try await service().delete(MessageID(id), in: room, by: .owner, as: speaker)
  }

  func type(_ on: Bool) throws { try service().setTyping(Typing(channel: room, by: speaker, on: on), by: .owner) }

  func shown() async throws -> [ShownMessage] {
    let page: MessagePage
    do throws(FerryError) {
      page = try await service().history(of: room, order: .oldestFirst, limit: 200)
    } catch {
      // Nobody has said anything yet.
      if error.code == .notFound { return [] }
      throw error
    }
    var shown: [ShownMessage] = []
    for stored in page.messages where stored.deleted == nil {
      var one = ShownMessage(text: stored.message.text)
      for attachment in stored.message.attachments {
        switch attachment.reference {
        case .provider(let sha256): one.pictures.append(sha256)
        case .url(let url): one.pictures.append(try await host.digest(of: url))
        }
      }
      if !one.text.isEmpty || !one.pictures.isEmpty { shown.append(one) }
    }
    return shown
  }

  func isIntruderRefused() async throws -> Bool {
    let status =
      switch kind {
      case .twilio:
        try await host.send(
          "POST", "/v1/Conversations/room/Messages",
          headers: [
            "Authorization": "Basic " + Data("\(Self.account):wrong".utf8).base64EncodedString(),
            "Content-Type": "application/x-www-form-urlencoded",
          ], "Author=eve&Body=intruder")
      case .backendless:
        try await host.send("POST", "/APP-1/KEY-2/messaging/room", #"{"message":"intruder"}"#)
      default:
        try await host.send(
          "POST", "/v1/rooms/room/messages", headers: ["Authorization": "Bearer bad"],
          #"{"author":{"id":"eve"},"text":"intruder"}"#)
      }
    return (400...403).contains(status)
  }

  func restart() async throws { try await host.restart() }
  func close() async { await host.close() }
}
