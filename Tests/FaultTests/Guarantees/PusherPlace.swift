import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import PusherProvider

/// A Pusher facade. What is seen there is seen by a subscriber, because nothing is kept.
final class PusherPlace: Place {
  let room: ChannelID = "chatroom"
  private let host: FacadeHost
  private let pictures: Locked<[String: [UInt8]]>
  private let eyes: PusherEyes
  private let names = Locked(0)

  private static let appKey = AppKey(key: "key", secret: Secret("secret"))

  /// Signed anew, as the body is another.
  private static let echo: FacadeHost.Echo = { request, body in
    var echo = request
    let body = Array(body.replacing(#"\"ID\":\""#, with: #"\"ID\":\"echo-"#).utf8)
    echo.body = .bytes(body)
    echo.rawQuery =
      appKey.signed(
        method: request.method, path: request.path, body: body, seconds: SystemClock().now().milliseconds / 1000
      )
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    return echo
  }

  static func open() async throws -> PusherPlace {
    let pictures = Locked<[String: [UInt8]]>([:])
    let store = MemoryCacheStore()
    let host = try await FacadeHost(echo: echo) { _ in
      let settings = PusherFacade.Settings(appID: "1001", key: "key", secret: Secret("secret"))
      let facade = PusherFacade(
        settings: settings, store: store, clock: SystemClock(), logger: .silent, metrics: nil)
      return FacadeHost.Facade(
        handle: { request in
          // The app's own pictures, which lie on some server.
          if request.segments.first == "pictures", let name = request.segments.last {
            guard let bytes = pictures.withLock({ $0[name] }) else { return HTTPResponse(status: 404) }
            return HTTPResponse(status: 200, headers: ["Content-Type": "image/png"], body: .bytes(bytes))
          }
          return await facade.handle(request)
        }, run: facade.run, close: {})
    }
    return PusherPlace(host, pictures, try await PusherEyes(host.direct, host.url, key: "key", "chatroom"))
  }

  private init(_ host: FacadeHost, _ pictures: Locked<[String: [UInt8]]>, _ eyes: PusherEyes) {
    self.host = host
    self.pictures = pictures
    self.eyes = eyes
  }

  var proxy: FaultProxy? { host.proxy }
  var server: FacadeHost? { host }
  var memory: MemoryProvider? { nil }
  var writesUnderWay: Int { host.writesUnderWay }

  func account(webhook: String, clock: any FerryClock) -> any ChatProvider {
    let settings = PusherAdapter.Settings(
      appID: "1001", key: "key", secret: Secret("secret"), host: "127.0.0.1", port: host.proxy.port, tls: false)
    return PusherAdapter(settings: settings, client: host.client, clock: clock, logger: .silent)
  }

  func configuration(webhook: String) -> String? {
    #"{ provider: pusher, app_id: "1001", key: key, secret: secret, host: 127.0.0.1, port: \#(host.proxy.port), tls: false }"#
  }

  // MARK: People

  func say(_ text: String, picture: [UInt8]?) async throws -> String {
    let id = names.withLock { last in
      last += 1
      return "p\(last)"
    }
    var data: [String: JSONValue] = ["ID": .string(id), "sender": .string(speaker.name), "text": .string(text)]
    if let picture {
      pictures.withLock { $0["\(id).png"] = picture }
      data["image"] = .string("\(host.proxy.url)/pictures/\(id).png")
    }
    try await trigger("new_message", data)
    return id
  }

  func change(_ id: String, to text: String) async throws {
    try await trigger(
      "message_updated", ["ID": .string(id), "sender": .string(speaker.name), "text": .string(text)])
  }

  func remove(_ id: String) async throws { try await trigger("message_deleted", ["ID": .string(id)]) }

  func type(_ on: Bool) async throws {
    try await trigger(on ? "user_typing" : "user_stopped_typing", ["sender": .string(speaker.name)])
  }

  private func trigger(_ name: String, _ data: [String: JSONValue]) async throws {
    let text = String(decoding: try JSONEncoder().encode(JSONValue.object(data)), as: UTF8.self)
    let event: JSONValue = [
      "name": .string(name), "channels": [.string(room.rawValue)], "data": .string(text),
    ]
    let body = Array(try JSONEncoder().encode(event))
    let path = "/apps/1001/events"
    let seconds = SystemClock().now().milliseconds / 1000
    let query = Self.appKey.signed(method: "POST", path: path, body: body, seconds: seconds)
      .map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    let status = try await host.send("POST", "\(path)?\(query)", String(decoding: body, as: UTF8.self))
    guard status == 200 else { throw FerryError(.internal, "A trigger was answered with \(status).") }
  }

  func shown() async throws -> [ShownMessage] {
    let seen = eyes.now
    var shown: [ShownMessage] = []
    for id in seen.order {
      guard let text = seen.texts[id] else { continue }
      var one = ShownMessage(text: text)
      for url in seen.images[id] ?? [] {
        guard url.contains("/pictures/") else {
          one.pictures.append(try await host.digest(of: url))
          continue
        }
        let name = url.split(separator: "/").last.map(String.init) ?? ""
        one.pictures.append(Crypto.hex(Crypto.digest(.sha256, of: pictures.withLock { $0[name] } ?? [])))
      }
      if !one.text.isEmpty || !one.pictures.isEmpty { shown.append(one) }
    }
    // Whoever gets an event twice shows it twice.
    return shown + seen.doubled.compactMap { seen.texts[$0].map { ShownMessage(text: $0) } }
  }

  func isIntruderRefused() async throws -> Bool {
    let body = #"{"name":"new_message","channels":["chatroom"],"data":"{\"text\":\"intruder\"}"}"#
    let status = try await host.send(
      "POST", "/apps/1001/events?auth_key=key&auth_timestamp=1&auth_version=1.0&auth_signature=00", body)
    return (400...403).contains(status)
  }

  func restart() async throws { try await host.restart { try await self.eyes.reopen() } }

  func close() async {
    await eyes.close()
    await host.close()
  }
}
