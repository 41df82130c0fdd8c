package import FerryCore
import FerryRuntime
import FerryStorage
import FerryTransport
import FoundationEssentials

/// What the console asks, under `/api/`. Every answer is bounded and says nothing of secrets.
///
/// Reading is GET and needs either token; acting is POST, needs the token that may act, and is refused to pages of
/// other sites.
struct ConsoleAPI: Sendable {
  let relay: Relay
  let access: ConsoleAccess
  let facts: ConsoleFacts
  let feed: ConsoleFeed

  private static let bodyBytes = 64 << 10
  private static let pageSize = 100

  /// `segments` are those after `api`.
  func handle(_ request: HTTPRequest, _ segments: [String]) async throws(FerryError) -> HTTPResponse {
    if request.method == "POST" {
      try access.authoriseAction(request)
      switch segments {
      case ["dead", "retry"]: return Self.guarded(try await decide(request, retry: true))
      case ["dead", "drop"]: return Self.guarded(try await decide(request, retry: false))
      case ["test"]: return Self.guarded(try await test(request))
      default: throw Self.nothingHere
      }
    }
    guard request.method == "GET" else { throw Self.nothingHere }
    try access.refuseOtherSites(request)
    let level = try access.authorise(request)
    return Self.guarded(try await read(request, segments, level))
  }

  private func read(
    _ request: HTTPRequest, _ segments: [String], _ level: ConsoleAccess.Level
  ) async throws(FerryError) -> HTTPResponse {
    let journal = relay.settings.journal
    switch segments {
    case ["session"]: return .json(Session(version: facts.version, mayAct: level == .acting))
    case ["status"]: return .json(try await relay.consoleStatus(providers: facts.providers))
    case ["live"]: return feed.follow()
    case ["history"]:
      return .json(
        ConsoleHistory(
          relay.history, accounts: relay.settings.accounts.keys.sorted(),
          lanes: Array(
            relay.laneIDs.sorted { ($0.bridge, $0.destination) < ($1.bridge, $1.destination) }
              .prefix(ConsoleStatus.laneLimit))))
    case ["configuration"]: return .json(facts.settings)
    case ["events"]:
      let events = try await journal.events(before: try Self.before(request), limit: try Self.limit(request))
      return .json(events.map { EventLine($0) })
    case ["dead"]:
      let filter = try Self.filter(request)
      let (count, newest) = try await journal.countDeadLetters(filter)
      let letters = try await journal.deadLetters(
        filter, before: try Self.before(request), limit: try Self.limit(request))
      return .json(DeadPage(count: count, newest: newest, letters: letters.map { DeadLine($0) }))
    case ["body"]:
      guard let address = request.query("address").flatMap({ Address($0) }), let key = request.query("key"),
        let event = try await journal.event(EventKey(key), at: address)
      else {
        throw FerryError(.notFound, "There is no such event.")
      }
      return .json(BodyLine(event))
    default: throw Self.nothingHere
    }
  }

  // MARK: Actions

  private func decide(_ request: HTTPRequest, retry: Bool) async throws(FerryError) -> HTTPResponse {
    let wish: Decision = try await Self.body(of: request)
    let journal = relay.settings.journal
    var done = 0
    if let ids = wish.ids {
      guard ids.count <= 1000 else { throw FerryError(.badRequest, "Name at most 1000 at once.") }
      for id in ids {
        let isDone = retry ? try await journal.retryDead(id) : try await journal.dropDead(id)
        if isDone { done += 1 }
      }
    } else if let newest = wish.newest {
      done = try await journal.decideDead(
        DeadFilter(bridge: wish.bridge, destination: wish.to, text: wish.text), upTo: newest, retry: retry)
    } else {
      throw FerryError(.badRequest, "Name the ids, or the newest that is meant and a filter.")
    }
    await relay.lettersDecided()
    relay.settings.logger.notice("console: \(retry ? "retried" : "dropped") \(done) dead letters")
    feed.changed()
    return .json(["done": done])
  }

  private func test(_ request: HTTPRequest) async throws(FerryError) -> HTTPResponse {
    let wish: TestWish = try await Self.body(of: request)
    let test = try TestMessage(wish.bridge, from: wish.from, relay.settings)
    relay.settings.logger.notice("console: a test message goes through \(wish.bridge) from \(wish.from)")
    let body = ByteStream { () throws(FerryError) -> [UInt8]? in
      guard let lines = try await test.next() else { return nil }
      return lines.flatMap { Self.encode($0) + [0x0a] }
    }
    return HTTPResponse(status: 200, headers: ["Content-Type": "application/x-ndjson"], body: .stream(body))
  }

  // MARK: Reading requests, writing answers

  private static let nothingHere = FerryError(.notFound, "There is nothing at this path.")

  private static func before(_ request: HTTPRequest) throws(FerryError) -> Int64 {
    guard let text = request.query("before") else { return .max }
    guard let before = Int64(text), before >= 0 else {
      throw FerryError(.badRequest, "\"before\" is the id of an event or a dead letter, a number.")
    }
    return before
  }

  /// At most 500, however many are asked for.
  private static func limit(_ request: HTTPRequest) throws(FerryError) -> Int {
    guard let text = request.query("limit") else { return pageSize }
    guard let limit = Int(text), limit > 0 else {
      throw FerryError(.badRequest, "\"limit\" is a number from 1 to 500.")
    }
    return min(limit, 500)
  }

  private static func filter(_ request: HTTPRequest) throws(FerryError) -> DeadFilter {
    let bridge = request.query("bridge").flatMap { $0.isEmpty ? nil : BridgeName($0) }
    var destination: Address?
    if let text = request.query("to"), !text.isEmpty {
      guard let address = Address(text) else { throw FerryError(.badRequest, "An address is written account:channel.") }
      destination = address
    }
    return DeadFilter(bridge: bridge, destination: destination, text: request.query("text"))
  }

  private static func body<Value: Decodable>(of request: HTTPRequest) async throws(FerryError) -> Value {
    guard request.headers["Content-Type"]?.lowercased().hasPrefix("application/json") == true else {
      throw FerryError(.badRequest, "The body is JSON and says so in its Content-Type.")
    }
    let bytes = try await request.body.collect(upTo: bodyBytes)
    do { return try JSONDecoder().decode(Value.self, from: Data(bytes)) } catch {
      throw FerryError(.badRequest, "The body is not what this takes.")
    }
  }

  static func encode(_ value: some Encodable) -> [UInt8] {
    guard case .bytes(let bytes) = HTTPResponse.json(value).body else { return [] }
    return bytes
  }

  /// Nobody keeps it, guesses its type or embeds it.
  static func guarded(_ response: HTTPResponse) -> HTTPResponse {
    var response = response
    response.headers.set("Cache-Control", "no-store")
    response.headers.set("X-Content-Type-Options", "nosniff")
    response.headers.set("Cross-Origin-Resource-Policy", "same-origin")
    return response
  }
}

/// What the console shows and the relay does not know by itself.
package struct ConsoleFacts: Sendable {
  package var version: String
  /// The kind of provider of each account.
  package var providers: [AccountName: String]
  /// The effective configuration, without secrets, as JSON goes out.
  var settings: [ConsoleSetting]

  package init(version: String = "", providers: [AccountName: String] = [:], settings: [ConsoleSetting] = []) {
    self.version = version
    self.providers = providers
    self.settings = settings
  }
}

/// One setting as people may see it.
package struct ConsoleSetting: Sendable, Encodable {
  let key: String
  let value: String
  /// `written`, `default` or `masked`.
  let kind: String

  package init(key: String, value: String, kind: String) {
    self.key = key
    self.value = value
    self.kind = kind
  }
}
