import FerryCore
import FerryRuntime
import FerryTransport

/// One session with the real-time server: texts in both directions, over polling, a WebSocket, or the one and then the
/// other. What is decided, `EngineClientSession` decides; this carries it out.
///
/// Made by `open`, used while `run` runs, once.
final class EngineLink: Sendable {
  enum Item: Hashable, Sendable {
    case opened(sid: String, EngineVersion)
    case message(String)
  }

  /// Where the server is. The query holds the key and the token: not for logs.
  struct Place: Hashable, Sendable {
    /// `http://127.0.0.1:8083`
    var origin: String
    /// `/APPID/`
    var path: String
    var query: String

    func url(_ version: EngineVersion, _ transport: EngineClientSession.Transport, sid: String? = nil) -> String {
      var url = "\(origin)\(path)?\(query)&EIO=\(version.rawValue)"
      url += transport == .polling ? "&transport=polling" : "&transport=websocket"
      // Otherwise an old server would answer with bytes.
      if version == .three, transport == .polling { url += "&b64=1" }
      if let sid { url += "&sid=\(PercentEncoding.encode(sid))" }
      return transport == .polling ? url : "ws" + url.dropFirst("http".count)
    }
  }

  enum Outgoing: Sendable {
    case packet(EnginePacket, EngineClientSession.Transport)
    /// Finished once everything before it has been sent.
    case mark(BoundedChannel<Void>)
  }

  struct State: Sendable {
    var session: EngineClientSession
    var outgoing: [Outgoing] = []
    var socket: WebSocket?
    var reason: String?
  }

  /// What the server says, in order; finished when the session is over.
  let inbound = BoundedChannel<Item>(capacity: inboundCapacity)
  let place: Place
  let client: HTTPClient
  let clock: any FerryClock
  let state: Locked<State>
  let first: [EnginePacket]
  let writing = BoundedChannel<Void>(capacity: 1)
  let socketWanted = BoundedChannel<Void>(capacity: 1)
  private let over = BoundedChannel<Void>(capacity: 1)

  private static let inboundCapacity = 256
  static let openDeadline = Duration.seconds(15)
  static let probeDeadline = Duration.seconds(15)
  static let postDeadline = Duration.seconds(30)
  static let payload = EnginePayload.Limits(bytes: 8 << 20, packets: 20_000)

  private init(
    _ session: EngineClientSession, place: Place, client: HTTPClient, clock: any FerryClock, first: [EnginePacket],
    socket: WebSocket?
  ) {
    self.place = place
    self.client = client
    self.clock = clock
    self.first = first
    state = Locked(State(session: session, socket: socket))
  }

  var version: EngineVersion { state.withLock { $0.session.version } }
  /// What the session is carried over at present.
  var transport: EngineClientSession.Transport { state.withLock { $0.session.transport } }
  /// Why the session ended, in words.
  var reason: String { state.withLock { $0.reason } ?? "the connection was lost" }

  // MARK: Opening

  /// The server speaks the other version: the next attempt may be made at once.
  struct OtherVersion: Error {}

  /// Opens a session in a version of the protocol. Throws `OtherVersion` where the server shows that it speaks another.
  static func open(
    _ place: Place, version: EngineVersion, transport: BackendlessAdapter.Settings.Transport, client: HTTPClient,
    clock: any FerryClock
  ) async throws -> EngineLink {
    let carrier: EngineClientSession.Transport = transport == .websocket ? .webSocket : .polling
    let session = EngineClientSession(
      version: version, transport: carrier, wantsUpgrade: transport == .auto, now: clock.now())
    if carrier == .webSocket {
      let socket = try await openSocket(place.url(version, .webSocket), client)
      return EngineLink(session, place: place, client: client, clock: clock, first: [], socket: socket)
    }
    let request = ClientRequest(url: place.url(version, .polling), deadline: openDeadline)
    let response = try await client.send(request)
    let body = try await response.collect(upTo: payload.bytes)
    guard response.isSuccess else { throw try refusal(response, body) }
    guard !isOther(body, than: version) else { throw OtherVersion() }
    let packets = try EnginePayload.decode(body, version: version, limits: payload)
    return EngineLink(session, place: place, client: client, clock: clock, first: packets, socket: nil)
  }

  static func openSocket(_ url: String, _ client: HTTPClient) async throws(FerryError) -> WebSocket {
    // The session has its own heartbeat.
    let settings = WebSocketSettings(messageBytes: 8 << 20, pingAfter: nil)
    return try await client.webSocket(url, settings: settings, deadline: openDeadline)
  }

  /// A payload of version 3 begins with a length, or with a byte that no text begins with.
  static func isOther(_ body: [UInt8], than version: EngineVersion) -> Bool {
    guard let first = body.first else { return false }
    let digits = body.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    let isThree = first <= 1 || (!digits.isEmpty && body.dropFirst(digits.count).first == UInt8(ascii: ":"))
    return isThree != (version == .three)
  }

  private static func refusal(_ response: ClientResponse, _ body: [UInt8]) throws(FerryError) -> any Error {
    let value = JSONText.value(body)
    let text = value?["message"]?.string ?? value?.string ?? String(decoding: body.prefix(400), as: UTF8.self)
    let isVersion = value?["code"]?.integer == 5 || text.lowercased().contains("unsupported")
    if response.status == 400, isVersion || text.lowercased().contains("protocol version") { return OtherVersion() }
    return ServiceFault(value, status: response.status).error(
      doing: "connect to the real-time service", retryAfter: response.headers["Retry-After"])
  }

  // MARK: Running

  /// Until the session is over or the task is cancelled; then nobody hears from it any more.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await self.write() }
      group.addTask { await self.keepTime() }
      if transport == .polling {
        group.addTask { await self.poll() }
        group.addTask { await self.upgrade() }
      } else {
        group.addTask { await self.readFirstSocket() }
      }
      _ = await over.next()
      group.cancelAll()
    }
    state.withLock { $0.socket }?.close()
    inbound.finish()
  }

  /// Tells the server that this was all. Of use over polling, where it would otherwise wait for the next poll.
  func sayGoodbye(_ last: String) async {
    let (sid, version, transport) = state.withLock {
      ($0.session.handshake?.sid, $0.session.version, $0.session.transport)
    }
    guard transport == .polling, let sid else { return }
    let body = EnginePayload.encode([EnginePacket(.message, last), EnginePacket(.close)], version: version)
    let request = ClientRequest(
      method: "POST", url: place.url(version, .polling, sid: sid),
      headers: ["Content-Type": "text/plain;charset=UTF-8"],
      body: .bytes(Array(body.utf8)), deadline: .milliseconds(500))
    _ = try? await client.send(request)
  }

  /// In order with everything that was sent before.
  func send(_ text: String) async { await perform { $0.send(EnginePacket(.message, text)) } }

  /// Lets the session decide and carries it out. What is delivered waits for room.
  func perform(_ input: (inout EngineClientSession) -> [EngineClientSession.Action]) async {
    let actions = state.withLock { state in
      let actions = input(&state.session)
      for case .write(let packet, let transport) in actions { state.outgoing.append(.packet(packet, transport)) }
      return actions
    }
    if !actions.isEmpty { _ = writing.offer(()) }
    for action in actions {
      switch action {
      case .write, .endPolling: continue
      case .deliver(.text(let text)): await deliver(.message(text))
      case .deliver(.binary): continue
      case .opened:
        let (sid, version) = state.withLock { ($0.session.handshake?.sid ?? "", $0.session.version) }
        await deliver(.opened(sid: sid, version))
      case .openSocket: _ = socketWanted.offer(())
      case .closeSocket: state.withLock { $0.socket }?.close()
      case .end(let ending): end(ending)
      }
    }
  }

  private func deliver(_ item: Item) async {
    if inbound.offer(item) == .full {
      await inbound.send(item)
      // While nobody read, the server's silence was no silence.
      let now = clock.now()
      state.withLock { _ = $0.session.receive(EnginePacket(.noop), over: $0.session.transport, now: now) }
    }
  }

  private func end(_ ending: EngineClientSession.Ending) {
    state.withLock { state in
      state.reason =
        state.reason
        ?? {
          switch ending {
          case .closedByServer: "the server closed the session"
          case .silence: "the server has fallen silent"
          case .transportGone: "the connection was lost"
          case .badPacket: "the server sent what is not understood"
          }
        }()
    }
    over.finish()
  }

  func fail(_ reason: String) { state.withLock { $0.reason = $0.reason ?? reason } }

  // MARK: Time

  private func keepTime() async {
    while !Task.isCancelled {
      let due = state.withLock { $0.session.nextDue }
      let wait = due.map { Duration.milliseconds($0.milliseconds - clock.now().milliseconds) } ?? .seconds(1)
      guard (try? await clock.sleep(for: min(max(wait, .milliseconds(20)), .seconds(5)))) != nil else { return }
      // Nobody reads at present, so nothing can be heard.
      guard inbound.count < Self.inboundCapacity else { continue }
      let now = clock.now()
      await perform { $0.tick(now: now) }
    }
  }
}
