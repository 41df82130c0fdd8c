package import FerryCore
import FerryRuntime
import FerryStorage
package import FerryTransport

/// What the relay answers over HTTP: its health, its metrics, its status, and the files it serves under links.
package struct RelayListener: Sendable {
  private let relay: Relay
  private let access: ConsoleAccess
  private let console: ConsoleAPI
  /// Accounts whose services call us, by the path that they call.
  private let webhooks: [String: any WebhookReceiver]

  /// Without `token` everything that needs one is refused; `readToken` may look and change nothing. Throws when two
  /// accounts want their webhooks at one path.
  package init(
    relay: Relay, token: String?, readToken: String? = nil, facts: ConsoleFacts = ConsoleFacts(),
    listenHost: String? = nil
  ) throws(FerryError) {
    self.relay = relay
    access = ConsoleAccess(
      token: token, readToken: readToken, publicURL: relay.settings.publicURL, listenHost: listenHost)
    console = ConsoleAPI(
      relay: relay, access: access, facts: facts, feed: ConsoleFeed(relay: relay, providers: facts.providers))
    webhooks = try Self.webhooks(of: relay.settings.accounts)
  }

  /// Throws `badConfiguration` when two accounts want their webhooks at one path.
  package static func checkWebhooks(of accounts: [AccountName: any ChatProvider]) throws(FerryError) {
    _ = try webhooks(of: accounts)
  }

  private static func webhooks(
    of accounts: [AccountName: any ChatProvider]
  ) throws(FerryError) -> [String: any WebhookReceiver] {
    var webhooks: [String: any WebhookReceiver] = [:]
    for (name, provider) in accounts.sorted(by: { $0.key < $1.key }) {
      guard let receiver = provider as? any WebhookReceiver, let path = receiver.webhookPath else { continue }
      guard webhooks.updateValue(receiver, forKey: path) == nil else {
        throw FerryError(
          .badConfiguration, "Account \(name) has its webhook at \(path), where another account has its own.")
      }
    }
    return webhooks
  }

  /// Whether a service calls us by this request.
  package func isWebhook(_ request: HTTPRequest) -> Bool { webhook(for: request) != nil }

  private func webhook(for request: HTTPRequest) -> (any WebhookReceiver)? {
    webhooks["/" + request.segments.joined(separator: "/")]
  }

  /// Another one takes over: who follows the console's live status has to ask that one, with a token that it knows.
  package func retire() { console.feed.retire() }

  package func handle(_ request: HTTPRequest) async -> HTTPResponse {
    if let receiver = webhook(for: request) { return await receiver.webhook(request) }
    let isRead = request.method == "GET" || request.method == "HEAD"
    do throws(FerryError) {
      switch request.segments.first {
      case "healthz" where isRead: return .text("ok\n")
      case "readyz" where isRead: return await ready()
      case "metrics" where isRead: return try await metrics()
      case "files" where isRead: return try await file(request)
      case "status" where isRead:
        _ = try access.authorise(request)
        return .json(try await relay.status())
      case "api" where isRead && request.segments == ["api", "trace"]:
        try access.refuseOtherSites(request)
        _ = try access.authorise(request)
        return ConsoleAPI.guarded(.json(try await trace(request)))
      case "api": return try await console.handle(request, Array(request.segments.dropFirst()))
      case "dead": return try await dead(request)
      default: throw FerryError(.notFound, "There is nothing at this path.")
      }
    } catch {
      return .error(error)
    }
  }

  /// Ready when every account that a bridge listens to is connected.
  private func ready() async -> HTTPResponse {
    do throws(FerryError) {
      let waiting = try await relay.status().accounts.filter { $0.state != "connected" && $0.state != "idle" }
      if waiting.isEmpty { return .text("ready\n") }
      let lines = waiting.map { "\($0.name) is \($0.state)\($0.reason.map { ": \($0)" } ?? "")\n" }
      return .text(lines.joined(), status: 503)
    } catch {
      return .text("\(error.message)\n", status: 503)
    }
  }

  private func metrics() async throws(FerryError) -> HTTPResponse {
    let settings = relay.settings
    let now = settings.clock.now()
    for (lane, counts) in try await relay.laneCounts() {
      let labels = ["lane": lane.description]
      settings.metrics.set("ferry_lane_pending", labels, to: Double(counts.pending))
      settings.metrics.set("ferry_lane_waiting", labels, to: Double(counts.waiting))
      settings.metrics.set("ferry_lane_dead", labels, to: Double(counts.dead))
      settings.metrics.set("ferry_lane_stopped", labels, to: relay.stopped(lane) == nil ? 0 : 1)
      let age = counts.oldest.map { max(now.milliseconds - $0.milliseconds, 0) } ?? 0
      settings.metrics.set("ferry_lane_oldest_seconds", labels, to: Double(age) / 1000)
    }
    settings.metrics.set("ferry_spool_bytes", to: Double(settings.spool.bytes))
    return .text(settings.metrics.text(), type: "text/plain; version=0.0.4; charset=utf-8")
  }

  /// `GET /api/trace?id=ID[&address=ADDRESS]`: the way of the messages that any id of theirs names.
  private func trace(_ request: HTTPRequest) async throws(FerryError) -> RelayTrace {
    guard let id = request.query("id"), !id.isEmpty else {
      throw FerryError(.badRequest, "Say which message: /api/trace?id=ID, and &address=ACCOUNT:CHANNEL if you know it.")
    }
    let place = request.query("address")
    let address = place.flatMap { Address($0) }
    guard place == nil || address != nil else {
      throw FerryError(.badRequest, "The address is not one; write ACCOUNT:CHANNEL.")
    }
    return try await RelayTrace(of: id, at: address, in: relay.settings.journal, relay.settings.bridges)
  }

  /// `/files/TOKEN/NAME`: the token decides, the name is for people.
  private func file(_ request: HTTPRequest) async throws(FerryError) -> HTTPResponse {
    let segments = request.segments
    guard segments.count == 3, let file = try await relay.settings.journal.file(token: segments[1]) else {
      throw FerryError(.notFound, "There is no such file.")
    }
    // Only what cannot run as a page is shown in place.
    let isImage = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(file.mediaType)
    var headers: HTTPHeaders = [
      "Content-Type": isImage ? file.mediaType : "application/octet-stream",
      "Content-Length": String(file.size),
      "Cache-Control": "public, max-age=31536000, immutable",
      "ETag": "\"\(file.sha256)\"",
      "X-Content-Type-Options": "nosniff",
    ]
    if !isImage { headers.add("Content-Disposition", "attachment") }
    if request.headers["If-None-Match"] == "\"\(file.sha256)\"" { return HTTPResponse(status: 304, headers: headers) }
    let stored = Spool.File(sha256: file.sha256, size: file.size, mediaType: file.mediaType)
    return HTTPResponse(status: 200, headers: headers, body: .stream(try relay.settings.spool.read(stored)))
  }

  /// `GET /dead` lists; `POST /dead/ID/retry` and `POST /dead/ID/drop` decide.
  private func dead(_ request: HTTPRequest) async throws(FerryError) -> HTTPResponse {
    _ = try access.authorise(request)
    let segments = request.segments
    let journal = relay.settings.journal
    if request.method == "GET", segments.count == 1 {
      return .json(try await journal.deadLetters().map { DeadLetterLine($0) })
    }
    guard request.method == "POST", segments.count == 3, let id = Int64(segments[1]) else {
      throw FerryError(.notFound, "Write GET /dead, POST /dead/ID/retry or POST /dead/ID/drop.")
    }
    try access.authoriseAction(request)
    let isDone =
      switch segments[2] {
      case "retry": try await journal.retryDead(id)
      case "drop": try await journal.dropDead(id)
      default: throw FerryError(.notFound, "A dead letter can be retried or dropped.")
      }
    guard isDone else { throw FerryError(.notFound, "There is no dead letter \(id).") }
    await relay.lettersDecided()
    return .json(["id": id])
  }
}

/// A dead letter in the answer of `/dead`.
package struct DeadLetterLine: Codable, Sendable {
  package let id: Int64
  package let bridge: BridgeName
  package let source: Address
  package let destination: Address
  package let key: EventKey
  package let reason: String

  init(_ letter: DeadLetter) {
    id = letter.delivery
    bridge = letter.lane.bridge
    source = letter.source
    destination = letter.lane.destination
    key = letter.key
    reason = letter.reason
  }
}
