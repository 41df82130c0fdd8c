package import FerryCore
import FerryRuntime

/// One session of Engine.IO at the server: what a packet, a poll or the clock means, decided in a value.
///
/// The shell calls one input at a time and carries out the actions in order.
package struct EngineServerSession: Sendable {
  package struct Settings: Sendable {
    package var pingInterval: Duration
    package var pingTimeout: Duration
    /// How long a WebSocket may take from its probe to the upgrade.
    package var upgradeTimeout: Duration
    /// The largest body or frame a client may send, and how much one poll is answered with.
    package var payloadBytes: Int
    /// How much may wait for a client that polls. One further behind is let go.
    package var queueBytes: Int

    package init(
      pingInterval: Duration = .seconds(25), pingTimeout: Duration = .seconds(20),
      upgradeTimeout: Duration = .seconds(10), payloadBytes: Int = 1_000_000, queueBytes: Int = 1 << 20
    ) {
      self.pingInterval = pingInterval
      self.pingTimeout = pingTimeout
      self.upgradeTimeout = upgradeTimeout
      self.payloadBytes = payloadBytes
      self.queueBytes = queueBytes
    }
  }

  package enum Transport: Hashable, Sendable { case polling, webSocket }

  package enum Ending: String, Hashable, Sendable {
    case closedByClient = "the client closed"
    case pingTimeout = "the client fell silent"
    case tooSlow = "the client does not keep up"
    case transportGone = "the connection broke"
    case badPacket = "the client broke the protocol"
    case pollTwice = "the client polled twice at once"
    case stopped = "the server stops"
  }

  package enum Action: Hashable, Sendable {
    /// Answers the poll that waits.
    case answer([EnginePacket])
    case write(EnginePacket)
    case deliver(EnginePacket.Body)
    /// The WebSocket that probed too long, or is one too many: it is closed, and the session goes on.
    case closeSocket
    case end(Ending)
  }

  private enum Upgrade { case none, probing(until: Timestamp), done }

  package let version: EngineVersion
  package let handshake: EngineHandshake
  package private(set) var transport: Transport
  package private(set) var isEnded = false
  private let settings: Settings
  private var upgrade: Upgrade
  /// A poll waits for something to be said.
  private var isPolled = false
  private var queue: [EnginePacket] = []
  /// How much waits for a poll.
  package private(set) var queuedBytes = 0
  private var lastHeard: Timestamp
  /// Version 4: when the client is asked whether it is there.
  private var nextPing: Timestamp

  /// `begin` is called next, before any other input.
  package init(version: EngineVersion, transport: Transport, sid: String, settings: Settings, now: Timestamp) {
    self.version = version
    self.transport = transport
    self.settings = settings
    handshake = EngineHandshake(
      sid: sid, canUpgrade: transport == .polling, pingInterval: settings.pingInterval,
      pingTimeout: settings.pingTimeout, maxPayload: version == .four ? settings.payloadBytes : nil)
    upgrade = transport == .polling ? .none : .done
    lastHeard = now
    nextPing = now.advanced(by: settings.pingInterval)
  }

  /// The greeting. Version 3 joins everybody to the root namespace unasked.
  package mutating func begin() -> [Action] {
    var packets = [EnginePacket(.open, handshake.text)]
    if version == .three { packets.append(SocketPacket(.connect(nil), in: SocketPacket.root).message) }
    return packets.flatMap { send($0) }
  }

  // MARK: Out

  /// Writes, answers the poll that waits, or queues for the next.
  package mutating func send(_ packet: EnginePacket) -> [Action] {
    if isEnded { return [] }
    if transport == .webSocket { return [.write(packet)] }
    queue.append(packet)
    queuedBytes += packet.size
    if queuedBytes > settings.queueBytes, queue.count > 1, !isPolled { return end(.tooSlow) }
    return isPolled ? answerPoll() : []
  }

  /// A poll came. While a WebSocket takes over, it is sent away at once, so that the client can go on with that.
  package mutating func poll(now: Timestamp) -> [Action] {
    if isEnded { return [] }
    guard !isPolled else { return end(.pollTwice) }
    lastHeard = now
    isPolled = true
    if case .none = upgrade { return queue.isEmpty ? [] : answerPoll() }
    return queue.isEmpty ? answer([EnginePacket(.noop)]) : answerPoll()
  }

  /// The poll that waited will not be answered: its client is gone. It may poll again.
  package mutating func pollLost() { isPolled = false }

  /// As much as fits into one answer, and at least one packet.
  private mutating func answerPoll() -> [Action] {
    var bytes = 0
    let count = queue.prefix { packet in
      bytes += packet.size + 8
      return bytes <= settings.payloadBytes
    }.count
    let packets = Array(queue.prefix(max(count, 1)))
    queue.removeFirst(packets.count)
    queuedBytes -= packets.reduce(0) { $0 + $1.size }
    return answer(packets)
  }

  private mutating func answer(_ packets: [EnginePacket]) -> [Action] {
    isPolled = false
    return [.answer(packets)]
  }

  // MARK: In

  /// A packet that came over one of the transports.
  package mutating func receive(_ packet: EnginePacket, over source: Transport, now: Timestamp) -> [Action] {
    if isEnded { return [] }
    lastHeard = now
    switch packet.kind {
    case .close: return end(.closedByClient)
    case .ping where source == .webSocket && transport == .polling: return probed(packet, now: now)
    case .ping: return send(EnginePacket(.pong, packet.text))
    case .upgrade where source == .webSocket: return upgraded()
    case .message: return [.deliver(packet.body)]
    case .pong, .noop, .open, .upgrade: return []
    }
  }

  private mutating func probed(_ packet: EnginePacket, now: Timestamp) -> [Action] {
    upgrade = .probing(until: now.advanced(by: settings.upgradeTimeout))
    return [.write(EnginePacket(.pong, packet.text))] + (isPolled ? answer([EnginePacket(.noop)]) : [])
  }

  private mutating func upgraded() -> [Action] {
    guard case .probing = upgrade else { return [] }
    upgrade = .done
    transport = .webSocket
    defer {
      queue = []
      queuedBytes = 0
    }
    return (isPolled ? answer([EnginePacket(.noop)]) : []) + queue.map(Action.write)
  }

  /// A WebSocket of this session closed. One that only probed leaves the session where it was.
  package mutating func socketClosed() -> [Action] {
    if isEnded { return [] }
    if transport == .webSocket { return end(.transportGone) }
    upgrade = .none
    return []
  }

  /// Something came that is no packet.
  package mutating func receivedRubbish() -> [Action] { end(.badPacket) }

  package mutating func stop() -> [Action] { end(.stopped) }

  private mutating func end(_ ending: Ending) -> [Action] {
    if isEnded { return [] }
    isEnded = true
    queue = []
    queuedBytes = 0
    let goodbye = EnginePacket(.close)
    var actions: [Action] = []
    if isPolled { actions += answer(ending == .closedByClient ? [EnginePacket(.noop)] : [goodbye]) }
    return actions + [.end(ending)]
  }

  // MARK: Time

  /// When `tick` has something to do, unless other inputs come first.
  package var nextDue: Timestamp? {
    if isEnded { return nil }
    var due = deadline
    if version == .four { due = min(due, nextPing) }
    if case .probing(let until) = upgrade { due = min(due, until) }
    return due
  }

  package mutating func tick(now: Timestamp) -> [Action] {
    if isEnded { return [] }
    if now >= deadline { return end(.pingTimeout) }
    var actions: [Action] = []
    if case .probing(let until) = upgrade, now >= until {
      upgrade = .none
      actions.append(.closeSocket)
    }
    if version == .four, now >= nextPing {
      nextPing = now.advanced(by: settings.pingInterval)
      actions += send(EnginePacket(.ping))
    }
    return actions
  }

  private var deadline: Timestamp { lastHeard.advanced(by: settings.pingInterval).advanced(by: settings.pingTimeout) }
}

extension EnginePacket {
  /// About how much it takes to be sent.
  var size: Int {
    switch body {
    case .text(let text): text.utf8.count + 1
    case .binary(let bytes): bytes.count * 4 / 3 + 4
    }
  }
}
