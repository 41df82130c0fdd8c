import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import PusherProvider

/// A facade, and a channel of one kind on it.
struct PusherHarness: ProviderHarness {
  let channel: ChannelID
  private let service: ServedService
  private let facade: PusherFacade
  /// The key of an encrypted channel.
  private let box: SecretBox?

  private static let appKey = AppKey(key: "key", secret: Secret("secret"))
  private static let masterKey = SecretBox(key: Array("01234567890123456789012345678901".utf8))

  static func start(channel: ChannelID = "chatroom") async throws -> PusherHarness {
    let settings = PusherFacade.Settings(appID: "1001", key: "key", secret: Secret("secret"))
    let facade = PusherFacade(
      settings: settings, store: MemoryCacheStore(), clock: SystemClock(), logger: .silent, metrics: nil)
    let service = try await ServedService(handler: facade.handle, alongside: {})
    let isEncrypted = ChannelName(channel.rawValue)?.isEncrypted == true
    let box = isEncrypted ? masterKey?.box(for: channel.rawValue) : nil
    return PusherHarness(service: service, facade: facade, channel: channel, box: box)
  }

  private init(service: ServedService, facade: PusherFacade, channel: ChannelID, box: SecretBox?) {
    self.service = service
    self.facade = facade
    self.channel = channel
    self.box = box
  }

  var proxy: FaultProxy? { service.proxy }

  func makeProvider(goodCredentials: Bool) throws(FerryError) -> any ChatProvider {
    var settings = PusherAdapter.Settings(
      appID: "1001", key: goodCredentials ? "key" : "wrong", secret: Secret("secret"), host: "127.0.0.1",
      port: service.proxy.port, tls: false)
    if box != nil { settings.encryption = Self.masterKey }
    return PusherAdapter(settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
  }

  func say(_ text: String, by author: Author) async throws(FerryError) {
    let data = String(
      decoding: try ServedService.json(["sender": .string(author.name), "text": .string(text)]), as: UTF8.self)
    let body = try ServedService.json([
      "name": "new_message", "channels": [.string(channel.rawValue)], "data": .string(box?.seal(data) ?? data),
    ])
    let path = "/apps/1001/events"
    let seconds = SystemClock().now().milliseconds / 1000
    let query = Self.appKey.signed(method: "POST", path: path, body: body, seconds: seconds)
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    try await service.send("POST", "\(path)?\(query)", body)
  }

  func watch() async throws(FerryError) -> any ChannelWatcher {
    let socket = try await service.socket("/app/key?protocol=7&client=contract&version=1")
    while case .text(let text) = await socket.next() {
      let frame = ServedService.value(text)
      if frame["event"]?.string == "pusher_internal:subscription_succeeded" { break }
      guard frame["event"]?.string == "pusher:connection_established" else { continue }
      let socketID = ServedService.value(frame["data"]?.string ?? "")["socket_id"]?.string ?? ""
      _ = await socket.sendWaiting(subscription(socketID: socketID))
    }
    let box = box
    return SocketWatcher(socket: socket) { frame in
      guard frame["event"]?.string == "new_message", let text = frame["data"]?.string else { return nil }
      let plain = box.map { $0.open(ServedService.value(text)) } ?? text
      let data = ServedService.value(plain ?? "")
      return Seen(author: data["sender"]?.string ?? "", text: data["text"]?.string ?? "")
    }
  }

  private func subscription(socketID: String) -> String {
    let name = ChannelName(channel.rawValue)
    guard let name, name.access != .everybody else { return FrameText.subscribe(to: channel.rawValue) }
    let channelData = name.isPresence ? #"{"user_id":"watcher"}"# : nil
    let auth = Self.appKey.channelAuth(socketID: socketID, channel: name.text, channelData: channelData)
    return FrameText.subscribe(to: name.text, auth: auth, channelData: channelData)
  }

  func close() async {
    await facade.closeAll()
    await service.close()
  }
}
