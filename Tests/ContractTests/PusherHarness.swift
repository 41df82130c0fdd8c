import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import PusherProvider

struct PusherHarness: ProviderHarness {
  let channel: ChannelID = "chatroom"
  private let service: ServedService
  private let facade: PusherFacade
  private static let appKey = AppKey(key: "key", secret: Secret("secret"))

  static func start() async throws -> PusherHarness {
    let settings = PusherFacade.Settings(appID: "1001", key: "key", secret: Secret("secret"))
    let facade = PusherFacade(
      settings: settings, store: MemoryCacheStore(), clock: SystemClock(), logger: .silent, metrics: nil)
    let service = try await ServedService(handler: facade.handle, alongside: {})
    return PusherHarness(service: service, facade: facade)
  }

  private init(service: ServedService, facade: PusherFacade) {
    self.service = service
    self.facade = facade
  }

  var proxy: FaultProxy? { service.proxy }

  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider {
    let settings = PusherAdapter.Settings(
      appID: "1001", key: goodCredentials ? "key" : "wrong", secret: Secret("secret"), host: "127.0.0.1",
      port: service.proxy.port, tls: false)
    return PusherAdapter(settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
  }

  func say(_ text: String, by author: Author) async throws(FerryError) {
    let data = try ServedService.json(["sender": .string(author.name), "text": .string(text)])
    let body = try ServedService.json([
      "name": "new_message", "channels": [.string(channel.rawValue)],
      "data": .string(String(decoding: data, as: UTF8.self)),
    ])
    let path = "/apps/1001/events"
    let seconds = SystemClock().now().milliseconds / 1000
    let query = Self.appKey.signed(method: "POST", path: path, body: body, seconds: seconds)
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    try await service.send("POST", "\(path)?\(query)", body)
  }

  func watch() async throws(FerryError) -> any ChannelWatcher {
    let socket = try await service.socket("/app/key?protocol=7&client=contract&version=1")
    _ = await socket.sendWaiting(FrameText.subscribe(to: channel.rawValue))
    while case .text(let text) = await socket.next() {
      if ServedService.value(text)["event"]?.string == "pusher_internal:subscription_succeeded" { break }
    }
    return SocketWatcher(socket: socket) { frame in
      guard frame["event"]?.string == "new_message", let text = frame["data"]?.string else { return nil }
      let data = ServedService.value(text)
      return Seen(author: data["sender"]?.string ?? "", text: data["text"]?.string ?? "")
    }
  }

  func close() async {
    await facade.closeAll()
    await service.close()
  }
}
