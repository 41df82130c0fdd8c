import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// What a Pusher channel's subscriber saw: the messages that are left, and those that came twice.
final class PusherEyes: Sendable {
  struct Seen: Sendable {
    var order: [String] = []
    var texts: [String: String] = [:]
    /// Addresses of pictures.
    var images: [String: [String]] = [:]
    var doubled: [String] = []
    var left: [String] { order.compactMap { texts[$0] } }
  }

  private let client: HTTPClient
  private let url: String
  private let key: String
  private let channel: String
  private let open = Locked<(socket: WebSocket, task: Task<Void, Never>)?>(nil)
  private let state = Locked(Seen())

  var now: Seen { state.withLock { $0 } }

  convenience init(_ bridge: ServedBridge, _ channel: String) async throws {
    try await self.init(bridge.client, bridge.pusher, key: "k", channel)
  }

  init(_ client: HTTPClient, _ url: String, key: String, _ channel: String) async throws {
    self.client = client
    self.url = url
    self.key = key
    self.channel = channel
    try await reopen()
  }

  /// Subscribes, again after the service has ended.
  func reopen() async throws {
    await close()
    let socket = try await client.webSocket(
      "ws" + url.dropFirst(4) + "/app/\(key)?protocol=7", settings: .init(), deadline: .seconds(30))
    _ = await socket.sendWaiting(#"{"event":"pusher:subscribe","data":{"channel":"\#(channel)"}}"#)
    while case .text(let text)? = await socket.next() {
      if text.contains("subscription_succeeded") { break }
    }
    let state = state
    let task = Task {
      while case .text(let text)? = await socket.next() { state.withLock { Self.read(text, into: &$0) } }
    }
    open.withLock { $0 = (socket, task) }
  }

  func close() async {
    let old = open.withLock { open in
      defer { open = nil }
      return open
    }
    old?.socket.close()
    await old?.task.value
  }

  private static func read(_ text: String, into seen: inout Seen) {
    guard let frame = try? JSONDecoder().decode(JSONValue.self, from: Data(text.utf8)),
      let data = frame["data"]?.string.flatMap({ try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }),
      let id = data["id"]?.string ?? data["ID"]?.string
    else { return }
    switch frame["event"]?.string {
    case "new_message":
      if seen.order.contains(id) { seen.doubled.append(id) } else { seen.order.append(id) }
      seen.texts[id] = data["text"]?.string ?? ""
      let one = data["image"]?.string.map { [$0] } ?? []
      seen.images[id] = data["images"]?.array?.compactMap(\.string) ?? one
    case "message_updated": if seen.texts[id] != nil { seen.texts[id] = data["text"]?.string ?? "" }
    case "message_deleted": seen.texts[id] = nil
    default: break
    }
  }
}
