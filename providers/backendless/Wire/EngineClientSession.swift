package import FerryCore
import FerryRuntime

/// One session of Engine.IO at the client, decided in a value: over polling, over a WebSocket, or from the one to the
/// other.
///
/// The shell connects, hands in what arrives, and carries out the actions in order. Whoever begins with polling asks
/// for packets again as soon as it has handed in an answer, unless `mayPoll` is false.
package struct EngineClientSession: Sendable {
  package typealias Transport = EngineServerSession.Transport

  package enum Ending: Hashable, Sendable {
    case closedByServer
    /// Nothing was heard for the interval and the timeout that the server named.
    case silence
    case transportGone
    case badPacket
  }

  package enum Action: Hashable, Sendable {
    case write(EnginePacket, over: Transport)
    case deliver(EnginePacket.Body)
    /// The session stands; what is to be said may be said.
    case opened
    /// Opens a WebSocket with this session's id. `socketOpened` or `socketClosed` is called next.
    case openSocket
    /// Starts no further poll. `pollingEnded` is called when none is under way, and nothing is being posted.
    case endPolling
    /// The WebSocket is given up; polling goes on, if it had ended.
    case closeSocket
    case end(Ending)
  }

  private enum Upgrade: Hashable { case none, opening, probing, pausing, done, failed }

  /// What was asked for; corrected when a server of version 3 shows itself by its ways.
  package private(set) var version: EngineVersion
  package private(set) var transport: Transport
  package private(set) var handshake: EngineHandshake?
  package private(set) var isEnded = false
  private let wantsUpgrade: Bool
  private var upgrade = Upgrade.none
  private var waiting: [EnginePacket] = []
  private var lastHeard: Timestamp
  private var lastSent: Timestamp
  /// Who asks whether the other is there is what tells the versions apart where the handshake leaves it open.
  private var isVersionCertain: Bool

  package init(version: EngineVersion, transport: Transport, wantsUpgrade: Bool = true, now: Timestamp) {
    self.version = version
    self.transport = transport
    self.wantsUpgrade = wantsUpgrade && transport == .polling
    isVersionCertain = version == .three
    lastHeard = now
    lastSent = now
  }

  package var isOpen: Bool { handshake != nil && !isEnded }

  /// Whether the next poll may be started.
  package var mayPoll: Bool { !isEnded && transport == .polling && upgrade != .pausing }

  // MARK: In

  package mutating func receive(_ packet: EnginePacket, over source: Transport, now: Timestamp) -> [Action] {
    if isEnded { return [] }
    lastHeard = now
    switch packet.kind {
    case .open: return opened(packet, now: now)
    case .close: return end(.closedByServer)
    case .ping:
      isVersionCertain = true
      return send(EnginePacket(.pong, packet.text))
    case .pong where source == .webSocket && upgrade == .probing && packet.text == EnginePacket.probe:
      upgrade = .pausing
      return [.endPolling]
    case .message: return deliver(packet.body)
    case .pong, .noop, .upgrade: return []
    }
  }

  private mutating func opened(_ packet: EnginePacket, now: Timestamp) -> [Action] {
    guard handshake == nil, let new = try? EngineHandshake(packet.text) else { return end(.badPacket) }
    handshake = new
    lastSent = now
    if new.maxPayload != nil { isVersionCertain = true }
    guard wantsUpgrade, new.canUpgrade else { return [.opened] + flush() }
    upgrade = .opening
    return [.opened] + flush() + [.openSocket]
  }

  private mutating func deliver(_ body: EnginePacket.Body) -> [Action] {
    // Only version 3 joins everybody to the root namespace.
    if !isVersionCertain, case .text("0") = body {
      version = .three
      isVersionCertain = true
    }
    return [.deliver(body)]
  }

  /// The WebSocket that was asked for is open.
  package mutating func socketOpened() -> [Action] {
    guard !isEnded, upgrade == .opening else { return [] }
    upgrade = .probing
    return [.write(EnginePacket(.ping, EnginePacket.probe), over: .webSocket)]
  }

  /// No WebSocket came about, or it closed.
  package mutating func socketClosed() -> [Action] {
    if isEnded { return [] }
    if transport == .webSocket { return end(.transportGone) }
    upgrade = .failed
    return flush()
  }

  /// No poll is under way any more, nor anything being posted.
  package mutating func pollingEnded() -> [Action] {
    guard !isEnded, upgrade == .pausing else { return [] }
    upgrade = .done
    transport = .webSocket
    return [.write(EnginePacket(.upgrade), over: .webSocket)] + flush()
  }

  package mutating func receivedRubbish() -> [Action] { end(.badPacket) }

  /// A poll or a post failed.
  package mutating func pollingFailed() -> [Action] { transport == .polling ? end(.transportGone) : [] }

  private mutating func end(_ ending: Ending) -> [Action] {
    if isEnded { return [] }
    isEnded = true
    waiting = []
    return [.end(ending)]
  }

  // MARK: Out

  /// Over the transport in use; kept back before the session stands and while it changes transports.
  package mutating func send(_ packet: EnginePacket) -> [Action] {
    if isEnded { return [] }
    guard handshake != nil, upgrade != .pausing else {
      waiting.append(packet)
      return []
    }
    return [.write(packet, over: transport)]
  }

  private mutating func flush() -> [Action] {
    defer { waiting = [] }
    return waiting.map { .write($0, over: transport) }
  }

  // MARK: Time

  /// When `tick` has something to do, unless other inputs come first.
  package var nextDue: Timestamp? {
    guard !isEnded, handshake != nil else { return nil }
    return nextPing.map { min($0, deadline) } ?? deadline
  }

  package mutating func tick(now: Timestamp) -> [Action] {
    guard !isEnded, handshake != nil else { return [] }
    if now >= deadline { return end(.silence) }
    guard let due = nextPing, now >= due else { return [] }
    // A server of version 4 would have asked by now.
    version = .three
    isVersionCertain = true
    lastSent = now
    return send(EnginePacket(.ping))
  }

  private var deadline: Timestamp {
    guard let handshake else { return lastHeard }
    return lastHeard.advanced(by: handshake.pingInterval).advanced(by: handshake.pingTimeout)
  }

  /// When the client has to ask: always in version 3; where the version is uncertain, once the server is overdue.
  private var nextPing: Timestamp? {
    guard let handshake else { return nil }
    if version == .three { return lastSent.advanced(by: handshake.pingInterval) }
    return isVersionCertain
      ? nil : lastSent.advanced(by: handshake.pingInterval).advanced(by: handshake.pingTimeout / 4)
  }
}
