import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import PusherProvider

/// An adapter that runs against a facade of its own.
struct Rig: Sendable {
  let service: Service
  let adapter: PusherAdapter
  let inbox: RecordingInbox
  let proxy: FaultProxy

  static let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "lobby"), id: "1")

  /// Runs the adapter on `channels` while `body` works.
  static func running(
    _ channels: String..., secret: String = "demo-secret", marker: Bool = true,
    inbox: RecordingInbox = RecordingInbox(), lastSeen: Timestamp? = nil,
    adjust: @escaping @Sendable (inout PusherFacade.Settings) -> Void = { _ in },
    settings change: @escaping @Sendable (inout PusherAdapter.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (Rig) async throws -> Void
  ) async throws {
    try await Service.serving(adjust: adjust) { service in
      let proxy = try await FaultProxy.start(to: service.server.port)
      var settings = PusherAdapter.Settings(
        appID: "1001", key: "demo-key", secret: Secret(secret), host: "127.0.0.1", port: proxy.port, tls: false)
      settings.marker = marker
      change(&settings)
      let adapter = PusherAdapter(
        settings: settings, client: service.client, clock: SystemClock(), logger: .silent)
      let rig = Rig(service: service, adapter: adapter, inbox: inbox, proxy: proxy)
      let subscriptions = channels.map { Subscription(channel: ChannelID($0), lastSeen: lastSeen) }
      do {
        try await withThrowingTaskGroup(of: Void.self) { group in
          if !subscriptions.isEmpty {
            group.addTask { try await adapter.run(subscriptions, into: inbox) }
            if secret == "demo-secret" { await inbox.connected() }
          }
          defer { group.cancelAll() }
          try await body(rig)
        }
      } catch {
        await proxy.close()
        throw error
      }
      await proxy.close()
    }
  }

  static func message(_ text: String, id: String = Crypto.randomHex(bytes: 6), revision: Int = 0) -> OutgoingMessage {
    var stamp = Self.stamp
    stamp.id = MessageID(id)
    stamp.revision = revision
    return OutgoingMessage(key: stamp.key, author: Author(id: "ann", name: "Ann"), text: text, stamp: stamp)
  }

  /// Everything that was posted, in order.
  var texts: [String] {
    inbox.now.events.compactMap { if case .posted(let message) = $0.kind { message.text } else { nil } }
  }
}
