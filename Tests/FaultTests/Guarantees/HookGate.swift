import FerryCore
import FerryRuntime
import FerryTransport

/// The public address of a relay: stays when the relay ends and comes back, and treats webhooks badly on demand.
final class HookGate: Sendable {
  enum Mischief: Sendable { case none, repeats, delays, swaps, drops }

  private struct State: Sendable {
    var relay: String?
    var mischief = Mischief.none
    /// Webhooks to be treated so.
    var left = 0
    var done = 0
    /// What came in, as it was handed on; the newest last.
    var recorded: [Recorded] = []
  }

  /// A webhook as its service sent it, signature and all.
  struct Recorded: Sendable {
    let method: String
    let target: String
    let headers: HTTPHeaders
    let body: [UInt8]

    /// `onMessageAdded` and so on.
    var event: String? {
      let text = String(decoding: body, as: UTF8.self)
      return text.split(separator: "&").first { $0.hasPrefix("EventType=") }.map { String($0.dropFirst(10)) }
    }

    func request(to relay: String) -> ClientRequest {
      var request = ClientRequest(method: method, url: relay + target)
      request.headers = headers
      if !body.isEmpty { request.body = .bytes(body) }
      return request
    }
  }

  let server: HTTPServer
  private let state: Locked<State>
  private let task: Task<Void, Never>

  init(loop: LoopExecutor, client: HTTPClient) throws {
    let state = Locked(State())
    self.state = state
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(100)), loop: loop, logger: .silent
    ) { request in
      do { return try await Self.handle(request, state, client) } catch {
        return HTTPResponse(status: 503)
      }
    }
    self.server = server
    task = Task { await server.run() }
  }

  /// Where the relay is, or nil while there is none.
  func lead(to relay: String?) { state.withLock { $0.relay = relay } }

  /// The next `count` webhooks are treated so.
  func play(_ mischief: Mischief, _ count: Int) {
    state.withLock { state in
      state.mischief = mischief
      state.left = count
    }
  }

  /// Every webhook so far.
  var recorded: [Recorded] { state.withLock { $0.recorded } }

  /// How many webhooks were treated badly.
  var done: Int { state.withLock { $0.done } }

  func close() async {
    task.cancel()
    await task.value
  }

  private static func handle(
    _ request: HTTPRequest, _ state: Locked<State>, _ client: HTTPClient
  ) async throws -> HTTPResponse {
    let body = try await request.body.collect(upTo: 1 << 20)
    let mischief = state.withLock { state in
      guard request.segments.first == "hooks", state.left > 0 else { return Mischief.none }
      state.left -= 1
      state.done += 1
      return state.mischief
    }
    switch mischief {
    case .none: break
    case .repeats: _ = try await forward(request, body, state, client)
    case .delays: try await SystemClock().sleep(for: .milliseconds(400))
    // Answered at once, and handed on when later ones have been.
    case .swaps: try await SystemClock().sleep(for: .milliseconds(120))
    case .drops: return HTTPResponse(status: 200)
    }
    return try await forward(request, body, state, client)
  }

  private static func forward(
    _ request: HTTPRequest, _ body: [UInt8], _ state: Locked<State>, _ client: HTTPClient
  ) async throws -> HTTPResponse {
    guard let relay = state.withLock({ $0.relay }) else { return HTTPResponse(status: 503) }
    let query = request.rawQuery.isEmpty ? "" : "?" + request.rawQuery
    var headers = HTTPHeaders()
    for name in ["X-Twilio-Signature", "Content-Type", "I-Twilio-Idempotency-Token"] {
      if let value = request.headers[name] { headers.set(name, value) }
    }
    let onward = Recorded(method: request.method, target: request.path + query, headers: headers, body: body)
    if request.segments.first == "hooks" {
      state.withLock { state in
        state.recorded.append(onward)
        if state.recorded.count > 1000 { state.recorded.removeFirst(500) }
      }
    }
    let response = try await client.send(onward.request(to: relay))
    headers = HTTPHeaders()
    if let type = response.headers["Content-Type"] { headers.set("Content-Type", type) }
    return HTTPResponse(
      status: response.status, headers: headers, body: .bytes(try await response.collect(upTo: 1 << 20)))
  }
}
