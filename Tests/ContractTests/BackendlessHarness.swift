import BackendlessProvider
import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

struct BackendlessHarness: ProviderHarness {
  let channel: ChannelID = "комната it's 1"
  private let service: ServedService
  private let facade: BackendlessFacade
  private let chat: ChatService
  private let folder: TemporaryFolder
  private let isDirect: Bool
  private let numbers = Locked<Int64>(0)

  private static let app = "/APP-1/KEY-1"

  /// `isDirect`: the adapter reaches the service itself, without the proxy.
  static func start(isDirect: Bool = false) async throws -> BackendlessHarness {
    let folder = try TemporaryFolder()
    let chat = try ChatService(path: folder.file("chat.db"), files: folder.file("files"), logger: .silent)
    let loop = try LoopExecutor(name: "backendless-files")
    let facade = BackendlessFacade(
      settings: BackendlessFacade.Settings(appID: "APP-1", apiKey: Secret("KEY-1")), chat: chat,
      client: HTTPClient(loop: loop, logger: .silent), rehearsal: nil, clock: SystemClock(), logger: .silent,
      metrics: nil)
    let service = try await ServedService(
      handler: facade.handle,
      alongside: {
        await withDiscardingTaskGroup { group in
          group.addTask { await chat.run() }
          group.addTask { await facade.run() }
        }
        loop.stop()
      })
    let harness = BackendlessHarness(service: service, facade: facade, chat: chat, folder: folder, isDirect: isDirect)
    try await harness.waitUntilFollowed()
    return harness
  }

  /// The facade follows the chat once it runs: what a chat page writes becomes a row then.
  private func waitUntilFollowed() async throws {
    let draft = Draft(author: Author(id: "nobody", name: "nobody"), text: "is anybody there?")
    _ = try await chat.post(draft, to: "elsewhere", by: .owner)
    while try await send("POST", "/data/ChatMessage/find", [:]).array?.isEmpty != false { await Task.yield() }
  }

  private init(
    service: ServedService, facade: BackendlessFacade, chat: ChatService, folder: TemporaryFolder, isDirect: Bool
  ) {
    self.isDirect = isDirect
    self.service = service
    self.facade = facade
    self.chat = chat
    self.folder = folder
  }

  var proxy: FaultProxy? { isDirect ? nil : service.proxy }

  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider {
    var settings = BackendlessAdapter.Settings(
      server: isDirect ? service.server.url : service.proxy.url, appID: "APP-1",
      key: Secret(goodCredentials ? "KEY-1" : "stolen"))
    settings.commands.read = "MESSAGE_READ"
    return BackendlessAdapter(settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
  }

  /// As an app does that saves first: the row, then the row as it was saved.
  func say(_ text: String, by author: Author) async throws(FerryError) {
    let now = SystemClock().now().milliseconds
    // An app of the kind that has a column of milliseconds.
    let time = numbers.withLock { last in
      last = max(last + 1, now)
      return last
    }
    let row: JSONValue = [
      "userName": .string(author.name), "messageText": .string(text), "channel": .string(channel.rawValue),
      "ferryTime": .integer(time),
    ]
    let saved = try await send("POST", "/data/ChatMessage", row)
    _ = try await send("POST", "/messaging/" + PercentEncoding.encode(channel.rawValue), ["message": saved])
  }

  private func send(_ method: String, _ path: String, _ body: JSONValue) async throws(FerryError) -> JSONValue {
    let response = try await service.direct.send(
      ClientRequest(
        method: method, url: service.server.url + Self.app + path, headers: ["Content-Type": "application/json"],
        body: .bytes(try ServedService.json(body))))
    let text = String(decoding: try await response.collect(upTo: 1 << 20), as: UTF8.self)
    guard response.isSuccess else { throw FerryError(.internal, "\(path): \(response.status) \(text)") }
    return ServedService.value(text)
  }

  func watch() async throws(FerryError) -> any ChannelWatcher {
    let socket = try await service.socket("/APP-1/?apiKey=KEY-1&clientId=contract&EIO=4&transport=websocket")
    let name = SocketPacket.connect(to: "/APP-1", version: .four).message
    _ = await socket.sendWaiting(name.encoded(.four))
    let watcher = BackendlessWatcher(socket: socket)
    for (id, kind) in [("c", "PUB_SUB_CONNECT"), ("m", "PUB_SUB_MESSAGES")] {
      let subscription: JSONValue = [
        "id": .string(id), "name": .string(kind), "options": ["channel": .string(channel.rawValue)],
      ]
      _ = await socket.sendWaiting(
        SocketPacket(.event("SUB_ON", subscription), in: "/APP-1").message.encoded(.four))
    }
    while let (name, argument) = await watcher.next() {
      if name == "SUB_READY", argument["id"]?.string == "m" { break }
    }
    return watcher
  }

  func close() async {
    facade.closeAll()
    await service.close()
    chat.close()
  }
}

/// Reads what is published off a WebSocket of Engine.IO 4.
private struct BackendlessWatcher: ChannelWatcher {
  let socket: WebSocket

  /// The next event and its argument; pings are answered on the way.
  func next() async -> (String, JSONValue)? {
    while case .text(let text) = await socket.next() {
      if text == "2" { _ = await socket.sendWaiting("3") }
      guard let packet = try? EnginePacket(text: text, version: .four), packet.kind == .message,
        case .event(let name, let argument?)? = try? SocketPacket(packet.text).content
      else { continue }
      return (name, argument)
    }
    return nil
  }

  func messages(_ count: Int) async -> [Seen] {
    var all: [Seen] = []
    while all.count < count, let (name, argument) = await next() {
      guard name == "SUB_RES", argument["id"]?.string == "m", let message = argument["data"]?["message"] else {
        continue
      }
      all.append(Seen(author: message["userName"]?.string ?? "", text: message["messageText"]?.string ?? ""))
    }
    return all
  }

  func close() async { socket.close() }
}
