import FerryCore
import FerryRuntime
import FerryStorage

/// A message that a person sends through a bridge to see whether it arrives, and how fast.
///
/// It is posted at one address of the bridge as anybody's message would be, so that the whole way is tried: the
/// source tells us of it, the journal, every lane. People at these addresses see it.
final class TestMessage: Sendable {
  /// One line of the answer.
  struct Line: Encodable, Sendable {
    /// `posted`, `received`, `leg` or `end`.
    var kind: String
    var to: Address?
    /// Milliseconds since it was sent.
    var after: Int64?
    /// What went wrong; nil when it went well.
    var reason: String?
    var id: MessageID?
  }

  /// How long legs have.
  static let patience = Duration.seconds(30)
  private static let interval = Duration.milliseconds(50)

  private struct State: Sendable {
    var began: Timestamp
    var message: MessageID?
    var isReceived = false
    var done: Set<LaneID> = []
    var isOver = false
  }

  private let bridge: Bridge
  private let source: Address
  private let provider: any ChatProvider
  private let settings: Relay.Settings
  private let state: Locked<State>

  /// Throws `badRequest` when no such bridge listens to the address.
  init(_ bridgeName: BridgeName, from source: Address, _ settings: Relay.Settings) throws(FerryError) {
    guard let bridge = settings.bridges.first(where: { $0.name == bridgeName }), bridge.routes[source] != nil,
      bridge.mirror.contains(.messages), let provider = settings.accounts[source.account]
    else { throw FerryError(.badRequest, "No bridge \(bridgeName) carries messages from \(source).") }
    guard provider.capabilities.receives else {
      throw FerryError(.unsupported, "Nothing can be received from \(source), so nothing goes on from there.")
    }
    self.bridge = bridge
    self.source = source
    self.provider = provider
    self.settings = settings
    state = Locked(State(began: settings.clock.now()))
  }

  private var lanes: [LaneID] {
    (bridge.routes[source] ?? []).map { LaneID(bridge: bridge.name, destination: $0) }
  }

  /// What happened next; nil once everything is said. Read by one task.
  func next() async throws(FerryError) -> [Line]? {
    let (message, isOver) = state.withLock { ($0.message, $0.isOver) }
    if isOver { return nil }
    guard let message else { return [await post()] }
    while elapsed < Self.patience.milliseconds {
      if let fate = try await settings.journal.fate(of: message, at: source), let lines = news(fate) { return lines }
      do { try await settings.clock.sleep(for: Self.interval) } catch { throw .cancelled(didNotAct: true) }
    }
    return try await giveUp(message)
  }

  private var elapsed: Int64 { settings.clock.now().milliseconds - state.withLock { $0.began.milliseconds } }

  private func post() async -> Line {
    let key = SendKey("ferry-test-\(Crypto.randomHex(bytes: 8))")
    let message = OutgoingMessage(
      key: key, author: Author(id: "ferry-test", name: "Ferry"),
      text: "Test of the bridge \"\(bridge.name)\" by its operator. Nothing to do.", time: settings.clock.now())
    state.withLock { $0.began = settings.clock.now() }
    do throws(FerryError) {
      if let preparing = provider as? any PreparingProvider { try await preparing.prepare(key, in: source.channel) }
      let id = try await provider.post(message, to: source.channel)
      state.withLock { $0.message = id }
      return Line(kind: "posted", to: source, after: elapsed, id: id)
    } catch {
      state.withLock { $0.isOver = true }
      return Line(kind: "posted", to: source, after: elapsed, reason: error.description)
    }
  }

  /// Nil when there is nothing that was not said before.
  private func news(_ fate: MessageFate) -> [Line]? {
    let lanes = Set(lanes)
    return state.withLock { state in
      var lines: [Line] = []
      let began = state.began.milliseconds
      if !state.isReceived {
        state.isReceived = true
        lines.append(Line(kind: "received", to: source, after: max(0, fate.accepted.milliseconds - began)))
      }
      for leg in fate.legs where lanes.contains(leg.lane) && !state.done.contains(leg.lane) {
        let after = max(0, leg.updated.milliseconds - began)
        switch leg.state {
        case .settled: lines.append(Line(kind: "leg", to: leg.lane.destination, after: after))
        case .dead: lines.append(Line(kind: "leg", to: leg.lane.destination, after: after, reason: leg.error ?? "dead"))
        case .pending, .sending, .waiting: continue
        }
        state.done.insert(leg.lane)
      }
      if state.isReceived, state.done == lanes {
        state.isOver = true
        lines.append(Line(kind: "end"))
      }
      return lines.isEmpty ? nil : lines
    }
  }

  /// Says of each leg that is still open what is known about it.
  private func giveUp(_ message: MessageID) async throws(FerryError) -> [Line] {
    let fate = try await settings.journal.fate(of: message, at: source)
    state.withLock { $0.isOver = true }
    let seconds = Self.patience.components.seconds
    guard let fate else {
      return [
        Line(kind: "received", to: source, reason: "\(source) did not tell of it within \(seconds) seconds."),
        Line(kind: "end"),
      ]
    }
    let done = state.withLock { $0.done }
    let open = fate.legs.filter { lanes.contains($0.lane) && !done.contains($0.lane) }
    return open.map { leg in
      let last = leg.error.map { " Last error: \($0)" } ?? ""
      return Line(
        kind: "leg", to: leg.lane.destination,
        reason: "Not there within \(seconds) seconds; it goes on being tried.\(last)")
    } + [Line(kind: "end")]
  }
}
