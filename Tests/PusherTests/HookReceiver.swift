import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import PusherProvider

/// The far end of webhooks: remembers what it is told and answers as it is bid.
final class HookReceiver: Sendable {
  struct Hook: Sendable {
    let key: String?
    let signature: String?
    let type: String?
    let body: String

    var json: JSONValue? { JSONText.decode(JSONValue.self, from: body) }
    var events: [JSONValue] { json?["events"]?.array ?? [] }
  }

  struct State: Sendable {
    var hooks: [Hook] = []
    /// Answers still to be given; then 200.
    var statuses: [Int] = []
    /// While true, nothing is answered.
    var isHeld = false
  }

  let state: Observed<State>
  let url: String

  private init(url: String, _ state: Observed<State>) {
    self.url = url
    self.state = state
  }

  static func receiving(_ body: @escaping @Sendable (HookReceiver) async throws -> Void) async throws {
    let loop = try LoopExecutor(name: "hook-test")
    defer { loop.stop() }
    let state = Observed(State())
    let server = try HTTPServer(HTTPServer.Settings(), loop: loop, logger: .silent) { request in
      let bytes = (try? await request.body.collect(upTo: 1 << 20)) ?? []
      let hook = Hook(
        key: request.headers["X-Pusher-Key"], signature: request.headers["X-Pusher-Signature"],
        type: request.headers["Content-Type"], body: String(decoding: bytes, as: UTF8.self))
      let status = state.update { state in
        state.hooks.append(hook)
        return state.statuses.isEmpty ? 200 : state.statuses.removeFirst()
      }
      _ = await state.wait { $0.isHeld ? nil : true }
      return HTTPResponse(status: status)
    }
    let receiver = HookReceiver(url: server.url + "/hooks?a=b", state)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await server.run() }
      defer { group.cancelAll() }
      try await body(receiver)
    }
  }

  /// The first so many requests, once they have arrived.
  func hooks(_ count: Int) async -> [Hook] {
    await state.wait { $0.hooks.count >= count ? Array($0.hooks.prefix(count)) : nil } ?? []
  }

  /// The first so many events, however many requests brought them.
  func events(_ count: Int) async -> [JSONValue] {
    await state.wait { state in
      let events = state.hooks.flatMap(\.events)
      return events.count >= count ? Array(events.prefix(count)) : nil
    } ?? []
  }
}
