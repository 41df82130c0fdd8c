import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import LocalProvider

struct LocalHarness: ProviderHarness {
  let channel: ChannelID = "a room/with ü?"
  private let service: ServedService
  private let chat: ChatService
  private let folder: TemporaryFolder

  static func start() async throws -> LocalHarness {
    let folder = try TemporaryFolder()
    let chat = try ChatService(path: folder.file("chat.db"), files: folder.file("files"), logger: .silent)
    let facade = LocalServer(chat: chat, tokens: [LocalServer.Token(token: "good")], logger: .silent)
    let service = try await ServedService(handler: facade.handle, alongside: { await chat.run() })
    return LocalHarness(service: service, chat: chat, folder: folder)
  }

  private init(service: ServedService, chat: ChatService, folder: TemporaryFolder) {
    self.service = service
    self.chat = chat
    self.folder = folder
  }

  var proxy: FaultProxy? { service.proxy }

  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider {
    var settings = try LocalAdapter.Settings(
      url: service.proxy.url, token: Secret(goodCredentials ? "good" : "stolen"))
    settings.reconnect = ReconnectPolicy(base: .milliseconds(5), limit: .milliseconds(50))
    return LocalAdapter(settings: settings, client: service.client, logger: .silent)
  }

  func say(_ text: String, by author: Author) async throws(FerryError) {
    let body: JSONValue = [
      "author": ["id": .string(author.id.rawValue), "name": .string(author.name)], "text": .string(text),
    ]
    let path = "/v1/rooms/\(PercentEncoding.encode(channel.rawValue))/messages"
    try await service.send("POST", path, headers: ["Authorization": "Bearer good"], ServedService.json(body))
  }

  func watch() async throws(FerryError) -> any ChannelWatcher {
    let socket = try await service.socket("/v1/live", headers: ["Authorization": "Bearer good"])
    let subscribe: JSONValue = ["type": "subscribe", "room": .string(channel.rawValue)]
    _ = await socket.sendWaiting(String(decoding: try ServedService.json(subscribe), as: UTF8.self))
    while case .text(let text) = await socket.next() {
      if ServedService.value(text)["type"]?.string == "subscribed" { break }
    }
    return SocketWatcher(socket: socket) { frame in
      guard let message = frame["event"]?["message"], frame["event"]?["kind"]?.string == "message" else { return nil }
      return Seen(author: message["author"]?["name"]?.string ?? "", text: message["text"]?.string ?? "")
    }
  }

  func close() async {
    await service.close()
    chat.close()
  }
}
