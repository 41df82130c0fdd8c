import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials

@testable import TwilioProvider

/// As much of Twilio as an adapter sees, told by each test what to say: lists, dates, indexes and refusals are as the
/// test wants them, not as a service would have them.
final class ScriptedTwilio: Sendable {
  struct Message: Sendable {
    var sid: String
    var index: Int64
    var author = "bob"
    var body: String
    var attributes = "{}"
    var created = "2026-01-02T03:04:05Z"
    var updated: String?
    var participant: String?
    var media: JSONValue = .null
    var delivery: JSONValue = .null

    var json: JSONValue {
      [
        "sid": .string(sid), "conversation_sid": .string(ScriptedTwilio.conversation), "index": .integer(index),
        "author": .string(author), "body": .string(body), "attributes": .string(attributes),
        "date_created": .string(created), "date_updated": .string(updated ?? created),
        "participant_sid": participant.map { .string($0) } ?? .null, "media": media, "delivery": delivery,
      ]
    }
  }

  struct Request: Sendable {
    let method: String
    /// Below `/v1`.
    let path: String
    let query: Form
    let form: Form
    let headers: HTTPHeaders
    let body: [UInt8]

    /// `POST Conversations/lobby/Messages`
    var line: String { "\(method) \(path)" }
  }

  struct Canned: Sendable {
    /// What the request's line starts with, its query included.
    let line: String
    let response: HTTPResponse
  }

  struct State: Sendable {
    var messages: [Message] = []
    var participants: [JSONValue] = []
    var users: [String: String] = [:]
    var receipts: [String: [JSONValue]] = [:]
    var webhooks: [JSONValue] = []
    var exists = true
    var conversation = ScriptedTwilio.conversation
    var canned: [Canned] = []
    var requests: [Request] = []
    var last: Int64 = 0
  }

  static let conversation = "CH" + String(repeating: "c", count: 32)
  static let account = "AC" + String(repeating: "a", count: 32)
  static let service = "IS" + String(repeating: "5", count: 32)
  static let key = "SK" + String(repeating: "6", count: 32)

  let state = Observed(State())
  /// What happens when a request with this line has been answered, before the answer arrives.
  let meanwhile = Locked<(@Sendable (_ line: String) -> Void)?>(nil)

  /// Of the messages, participants and so on.
  static func sid(_ prefix: String, _ number: Int64) -> String {
    let digits = String(number, radix: 16)
    return prefix + String(repeating: "0", count: 32 - digits.utf8.count) + digits
  }

  static func message(_ index: Int64, _ body: String, author: String = "bob") -> Message {
    Message(sid: sid("IM", index), index: index, author: author, body: body)
  }

  func add(_ messages: Message...) { state.update { $0.messages += messages } }

  static func participant(_ number: Int64, _ identity: String, read: Int64? = nil, attributes: String = "{}")
    -> JSONValue
  {
    [
      "sid": .string(sid("MB", number)), "identity": .string(identity), "attributes": .string(attributes),
      "last_read_message_index": read.map { .integer($0) } ?? .null, "date_created": "2026-01-02T03:04:05Z",
    ]
  }

  /// The next request whose line starts so is answered with this.
  func answer(_ line: String, _ status: Int, _ body: JSONValue = .null, retryAfter: String? = nil, times: Int = 1) {
    var response = HTTPResponse.json(body, status: status)
    if let retryAfter { response.headers.set("Retry-After", retryAfter) }
    let canned = Canned(line: line, response: response)
    state.update { $0.canned += Array(repeating: canned, count: times) }
  }

  func refuse(_ line: String, _ status: Int, code: Int, times: Int = 1) {
    answer(
      line, status, ["code": .integer(Int64(code)), "message": "no", "status": .integer(Int64(status))], times: times)
  }

  /// The requests so far whose line starts so.
  func requests(_ line: String = "") -> [Request] { state.value.requests.filter { $0.line.hasPrefix(line) } }

  // MARK: Serving

  @Sendable func handle(_ request: HTTPRequest) async -> HTTPResponse {
    let body = (try? await request.body.collect(upTo: 64 << 20)) ?? []
    var path = request.segments.dropFirst()
    if path.first == "Services" { path = path.dropFirst(2) }
    let seen = Request(
      method: request.method, path: path.joined(separator: "/"), query: Form(decoding: Array(request.rawQuery.utf8)),
      form: Form(decoding: body), headers: request.headers, body: body)
    defer { meanwhile.withLock { $0 }?(seen.line) }
    return state.update { state in
      state.requests.append(seen)
      let line = seen.line + (request.rawQuery.isEmpty ? "" : "?" + request.rawQuery)
      if let index = state.canned.firstIndex(where: { line.hasPrefix($0.line) }) {
        return state.canned.remove(at: index).response
      }
      return Self.answer(seen, Array(path), host: request.headers["Host"] ?? "", &state)
    }
  }

  private static func answer(_ request: Request, _ path: [String], host: String, _ state: inout State) -> HTTPResponse {
    switch (request.method, path.first, path.count) {
    case ("POST", "Conversations", 1):
      state.exists = true
      return .json(conversation(state), status: 201)
    case ("GET", "Users", 2):
      guard let name = state.users[path[1]] else { return missing }
      return .json(["identity": .string(path[1]), "friendly_name": .string(name)] as JSONValue)
    case ("POST", "Users", 2):
      let name = request.form["FriendlyName"] ?? ""
      state.users[path[1]] = name
      return .json(["identity": .string(path[1]), "friendly_name": .string(name)] as JSONValue)
    case ("GET", "Configuration", 1):
      return .json(["default_chat_service_sid": .string(service)] as JSONValue)
    case ("GET", "Configuration", 2): return .json(["post_webhook_url": .null] as JSONValue)
    case ("GET", "Conversations", 1):
      return .json(
        ["meta": ["key": "conversations", "next_page_url": .null], "conversations": [conversation(state)]] as JSONValue)
    case (_, "Conversations", 2...): break
    default: return missing
    }
    let names = [state.conversation, "lobby"]
    guard state.exists, names.contains(path[1]) else { return missing }
    switch (request.method, path.dropFirst(2).first, path.count) {
    case ("GET", nil, 2): return .json(conversation(state))
    case ("GET", "Messages", 3): return messages(request, host, state)
    case ("POST", "Messages", 3):
      let index = (state.messages.map(\.index).max() ?? -1) + 1
      var message = ScriptedTwilio.message(
        index, request.form["Body"] ?? "", author: request.form["Author"] ?? "system")
      message.attributes = request.form["Attributes"] ?? "{}"
      message.created = request.form["DateCreated"] ?? message.created
      state.messages.append(message)
      return .json(message.json, status: 201)
    case (_, "Messages", 4): return message(request, path[3], &state)
    case ("GET", "Messages", 5):
      return list("delivery_receipts", state.receipts[path[3]] ?? [])
    case ("GET", "Participants", 3): return list("participants", state.participants)
    case ("POST", "Participants", 3):
      state.last += 1
      let added = participant(
        1000 + state.last, request.form["Identity"] ?? "", attributes: request.form["Attributes"] ?? "{}")
      state.participants.append(added)
      return .json(added, status: 201)
    case (_, "Participants", 4): return participant(request, path[3], &state)
    case ("GET", "Webhooks", 3): return list("webhooks", state.webhooks)
    case ("POST", "Webhooks", _): return .json(["sid": "WH1"] as JSONValue, status: 201)
    default: return missing
    }
  }

  private static func conversation(_ state: State) -> JSONValue {
    [
      "sid": .string(state.conversation), "unique_name": "lobby", "friendly_name": "The lobby", "state": "active",
      "chat_service_sid": .string(service),
    ]
  }

  private static func list(_ key: String, _ records: [JSONValue]) -> HTTPResponse {
    .json(["meta": ["key": .string(key), "next_page_url": .null], key: .array(records)] as JSONValue)
  }

  /// Pages are told by the index at which they begin.
  private static func messages(_ request: Request, _ host: String, _ state: State) -> HTTPResponse {
    let isDescending = request.query["Order"] == "desc"
    var all = state.messages.sorted { $0.index < $1.index }
    if isDescending { all.reverse() }
    if let token = request.query["PageToken"].flatMap({ Int64($0) }) {
      all = all.filter { isDescending ? $0.index <= token : $0.index >= token }
    }
    let size = request.query["PageSize"].flatMap { Int($0) } ?? 50
    var next: JSONValue = .null
    if all.count > size {
      next = .string(
        "http://\(host)/v1/Conversations/\(state.conversation)/Messages?Order=\(isDescending ? "desc" : "asc")"
          + "&PageSize=\(size)&PageToken=\(all[size].index)")
    }
    return .json(
      ["meta": ["key": "messages", "next_page_url": next], "messages": .array(all.prefix(size).map(\.json))]
        as JSONValue)
  }

  private static func message(_ request: Request, _ sid: String, _ state: inout State) -> HTTPResponse {
    guard let index = state.messages.firstIndex(where: { $0.sid == sid }) else { return missing }
    switch request.method {
    case "DELETE":
      state.messages.remove(at: index)
      return HTTPResponse(status: 204)
    case "POST":
      state.messages[index].body = request.form["Body"] ?? state.messages[index].body
      state.messages[index].attributes = request.form["Attributes"] ?? state.messages[index].attributes
    default: break
    }
    return .json(state.messages[index].json)
  }

  private static func participant(_ request: Request, _ name: String, _ state: inout State) -> HTTPResponse {
    let index = state.participants.firstIndex { $0["identity"]?.string == name || $0["sid"]?.string == name }
    guard let index else { return missing }
    guard request.method == "POST" || request.method == "GET" else {
      state.participants.remove(at: index)
      return HTTPResponse(status: 204)
    }
    var members = state.participants[index].object ?? [:]
    if let read = request.form["LastReadMessageIndex"].flatMap({ Int64($0) }) {
      members["last_read_message_index"] = .integer(read)
    }
    if let attributes = request.form["Attributes"] { members["attributes"] = .string(attributes) }
    state.participants[index] = .object(members)
    return .json(state.participants[index])
  }

  private static let missing = HTTPResponse.json(
    ["code": 20404, "message": "not found", "status": 404] as JSONValue, status: 404)
}

/// An adapter at a scripted service.
struct AdapterRig: Sendable {
  let twilio: ScriptedTwilio
  let server: HTTPServer
  let client: HTTPClient
  let adapter: TwilioAdapter
  let inbox: RecordingInbox
  let clock: any FerryClock

  static let token = "0123456789abcdef0123456789abcdef"
  static let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "lobby"), id: "1")
  static let webhook = "https://bridge.example.org/hooks/support?tenant=7"

  /// Calls `body` with an adapter; `run` listens on `lobby` meanwhile when `isListening`.
  static func with(
    clock: any FerryClock = SystemClock(), twilio: ScriptedTwilio = ScriptedTwilio(),
    inbox: RecordingInbox = RecordingInbox(),
    listening subscription: Subscription? = nil, handler: (@Sendable (HTTPRequest) async -> HTTPResponse)? = nil,
    logger: Logger = .silent, adjust: @Sendable (inout TwilioAdapter.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (AdapterRig) async throws -> Void
  ) async throws {
    let loop = try LoopExecutor(name: "twilio-adapter-test")
    defer { loop.stop() }
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(100)), loop: loop, logger: .silent,
      handler: handler ?? { await twilio.handle($0) })
    var settings = TwilioAdapter.Settings(
      accountSID: ScriptedTwilio.account, authToken: Secret(token), api: server.url)
    settings.poll = .milliseconds(20)
    // Nothing here depends on how fast the machine is.
    settings.answerTime = .seconds(60)
    settings.lookupTime = .seconds(20)
    adjust(&settings)
    let adapter = TwilioAdapter(settings: settings, client: client, clock: clock, logger: logger)
    let rig = AdapterRig(
      twilio: twilio, server: server, client: client, adapter: adapter, inbox: inbox, clock: clock)
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { await server.run() }
      if let subscription {
        group.addTask { try await adapter.run([subscription], into: inbox) }
        await inbox.connected()
      }
      try await body(rig)
    }
  }

  static func listening(
    clock: any FerryClock = SystemClock(), twilio: ScriptedTwilio = ScriptedTwilio(),
    inbox: RecordingInbox = RecordingInbox(),
    cursor: Cursor? = nil, adjust: @Sendable (inout TwilioAdapter.Settings) -> Void = { _ in },
    _ body: @escaping @Sendable (AdapterRig) async throws -> Void
  ) async throws {
    try await with(
      clock: clock, twilio: twilio, inbox: inbox, listening: Subscription(channel: "lobby", cursor: cursor),
      adjust: adjust, body)
  }

  static func outgoing(_ text: String, id: String = "1", revision: Int = 0, time: Timestamp? = nil) -> OutgoingMessage {
    var stamp = Self.stamp
    stamp.id = MessageID(id)
    stamp.revision = revision
    return OutgoingMessage(
      key: stamp.key, author: Author(id: "ann-1", name: "Ann"), text: text, time: time, stamp: stamp)
  }

  // MARK: Webhooks

  /// The fields of an announcement, as Twilio sends them.
  static func announcement(_ event: String, _ message: ScriptedTwilio.Message, updated: String? = nil) -> Form {
    var form: Form = [
      ("AccountSid", ScriptedTwilio.account), ("EventType", event), ("ConversationSid", ScriptedTwilio.conversation),
      ("MessageSid", message.sid), ("Index", String(message.index)), ("Body", message.body),
      ("Author", message.author), ("Attributes", message.attributes), ("DateCreated", "2026-01-02T03:04:05.678Z"),
      ("RetryCount", "0"), ("Source", "SDK"),
    ]
    form.add("DateUpdated", optional: updated)
    return form
  }

  /// A signed request as the relay's listener would hand it on.
  func announce(_ form: Form, method: String = "POST", signature: String? = nil) async -> Int {
    await adapter.webhook(request(form, method: method, signature: signature)).status
  }

  func request(_ form: Form, method: String = "POST", signature: String? = nil) -> HTTPRequest {
    let signer = WebhookSignature(authToken: Secret(Self.token))
    let isPost = method == "POST"
    let query = isPost ? "tenant=7" : "tenant=7&" + form.encoded
    let url = "https://bridge.example.org/hooks/support?" + query
    return HTTPRequest(
      method: method, path: "/hooks/support", rawQuery: query,
      headers: ["X-Twilio-Signature": signature ?? signer.sign(url: url, form: isPost ? form.fields : [])],
      body: isPost ? .bytes(Array(form.encoded.utf8)) : .none)
  }
}

extension RecordingInbox.Record {
  var texts: [String] {
    events.compactMap { event in if case .posted(let message) = event.kind { message.text } else { nil } }
  }

  var edits: [Message] {
    events.compactMap { event in if case .edited(let message) = event.kind { message } else { nil } }
  }

  var deletions: [Deletion] {
    events.compactMap { event in if case .deleted(let deletion) = event.kind { deletion } else { nil } }
  }

  var marks: [ReadMark] {
    events.compactMap { event in if case .read(let mark) = event.kind { mark } else { nil } }
  }
}

enum ServiceJSON {
  static func bytes(_ value: JSONValue) throws -> [UInt8] { [UInt8](try JSONEncoder().encode(value)) }
}
