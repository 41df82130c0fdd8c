import FerryConfig
import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct AdapterSettingsTests {
  private func settings(_ yaml: String) throws -> BackendlessAdapter.Settings {
    try BackendlessAdapter.Settings(try ConfigNode.parse("{ \(yaml) }").mapping())
  }

  private static let app = "app_id: A, api_key: K"

  @Test func `id and key are enough for the service's own cloud`() throws {
    let settings = try settings(Self.app)
    #expect(settings.base == "https://api.backendless.com/A/K")
    #expect(settings.table == "ChatMessage")
    #expect(settings.pollInterval == .seconds(60))
  }

  @Test func `everything can be set`() throws {
    let settings = try settings(
      """
      \(Self.app), server_url: "http://host:8080/api/", login: ann, password: pw, table: Msg, engine: 3,
      transport: polling, receive: legacy_polling, poll: 2s, poll_window: 5, join_notice: "came", leave_notice: false,
      typing: { start: T, stop: [S, U] }, reads: { command: R, delivered: D }, files_folder: a/b, sends_per_second: 5,
      headers: { room: a, n: 5 }, subtopic: s.t, uploads: base64,
      fields: { author: [who, user], text: what, picture: pic, channel: room, time: at, ferry: extra }
      """)
    #expect(settings.base == "http://host:8080/api/A/K")
    #expect(settings.messageClass == "Msg")
    #expect(settings.engine == .three)
    #expect(settings.fields.author == ["who", "user"])
    #expect(settings.fields.channel == "room")
    #expect(settings.leaveNotice == nil)
    #expect(settings.headers == ["room": "a", "n": "5"] && settings.subtopic == "s.t" && settings.uploads == .base64)
    #expect(settings.commands.typingStopped == ["S", "U"])
    let capabilities = BackendlessAdapter.capabilities(settings)
    #expect(!capabilities.typing)
    #expect(!capabilities.reads)
    #expect(capabilities.members)
    #expect(capabilities.absent["typing"]?.contains("legacy_polling") == true)
  }

  @Test func `a domain stands for all three`() throws {
    #expect(try settings(#"domain: "https://chat.backendless.app/""#).base == "https://chat.backendless.app/api")
    #expect(throws: FerryError.self) { try settings(#"domain: "https://a", app_id: A"#) }
  }

  @Test(arguments: [
    "app_id: A", "api_key: K", "\(app), server_url: ftp://x", "\(app), server_url: 'http://a b'", "\(app), engine: 5",
    "\(app), table: 'a b'", "\(app), fields: { channel: 'x = 1 or y' }", "\(app), fields: { text: objectId }",
    "\(app), files_folder: ../x", "\(app), poll: 10ms", "\(app), join_notice: true", "\(app), password: x",
    "\(app), sends_per_second: 0", "\(app), reads: {}", "\(app), tabel: X", "\(app), headers: { ferry: x }",
    "\(app), headers: { room: '' }", "\(app), subtopic: ''", "\(app), uploads: zip", "\(app), selector: a = 1",
  ])
  func `what is wrong is refused with its place`(yaml: String) {
    let error = #expect(throws: FerryError.self) { try settings(yaml) }
    #expect(error?.code == .badConfiguration)
    #expect(error?.message.contains(":1:") == true)
  }

  @Test func `an account without a table can neither edit nor look back, and says so`() throws {
    let settings = try settings("\(Self.app), table: none, join_notice: false, selector: room = 'a'")
    #expect(settings.selector == "room = 'a'")
    let capabilities = BackendlessAdapter.capabilities(settings)
    #expect(!capabilities.edits && !capabilities.deletes && !capabilities.members)
    #expect(capabilities.history == .none)
    #expect(capabilities.certainty == .none)
    #expect(Set(capabilities.absent.keys) == ["reactions", "history", "edits", "deletes", "members", "reads"])
  }

  @Test func `a URL needs no configuration`() throws {
    let url = "backendless+http://APP-1:KEY%2F1@127.0.0.1:8083/room%20one/x"
    let (settings, channel) = try #require(try BackendlessAdapter.settings(fromURL: url))
    #expect(settings.base == "http://127.0.0.1:8083/APP-1/KEY%2F1")
    #expect(channel == "room one/x")
    let cloud = try BackendlessAdapter.settings(fromURL: "backendless://A:K@api.backendless.com/default")
    #expect(cloud?.settings.base == "https://api.backendless.com/A/K")
    #expect(try BackendlessAdapter.settings(fromURL: "pusher://a") == nil)
    for bad in ["backendless://A@h/c", "backendless://A:K@h/", "backendless://A:K@/c", "backendless://:K@h/c"] {
      #expect(throws: FerryError.self) { try BackendlessAdapter.settings(fromURL: bad) }
    }
  }

  @Test func `a port of 0 is filled in`() throws {
    var server = try settings("\(Self.app), server_url: 'http://127.0.0.1:0'")
    server.fill(port: 8083)
    #expect(server.base == "http://127.0.0.1:8083/A/K")
    var path = try settings("\(Self.app), server_url: 'http://127.0.0.1:0/api'")
    path.fill(port: 8083)
    #expect(path.base == "http://127.0.0.1:8083/api/A/K")
    var other = try settings("\(Self.app), server_url: 'http://127.0.0.1:80'")
    other.fill(port: 8083)
    #expect(other.base == "http://127.0.0.1:80/A/K")
  }
}

@Suite struct AdapterErrorTests {
  @Test(arguments: [
    (1000, 404, FerryError.Code.notFound), (1009, 404, .notFound), (2002, 400, .badCredentials),
    (3000, 400, .badCredentials), (3003, 401, .badCredentials), (3036, 400, .badCredentials),
    (3064, 401, .badCredentials), (3090, 401, .badCredentials), (4000, 403, .forbidden), (5040, 400, .notFound),
    (6000, 404, .notFound), (6006, 400, .badRequest), (6018, 400, .conflict), (8011, 400, .badRequest),
    (99_999, 400, .badRequest), (99_999, 403, .forbidden),
  ])
  func `a code of the service means one thing, and nothing was done`(code: Int, status: Int, expected: FerryError.Code)
  {
    let fault = ServiceFault(["code": .integer(Int64(code)), "message": "words", "errorData": [:]], status: status)
    let error = fault.error(doing: "try")
    #expect(error.code == expected)
    #expect(error.didNotAct)
    #expect(error.retry == .never)
    #expect(error.cause?.contains("words") == true)
    #expect(error.message.hasPrefix("Could not try: "))
  }

  @Test func `what may pass by itself may be tried again`() {
    for code in [3002, 3044] {
      #expect(
        ServiceFault(["code": .integer(Int64(code))], status: 400).error(doing: "x").retry == .after(.seconds(60)))
    }
    let limited = ServiceFault(["code": 999, "message": "limit"], status: 429).error(doing: "x", retryAfter: "7")
    #expect(limited.code == .rateLimited)
    #expect(limited.retry == .after(.seconds(7)))
    #expect(limited.didNotAct)
    let down = ServiceFault(nil, status: 502).error(doing: "x")
    #expect(down.code == .unavailable)
    #expect(!down.didNotAct)
  }

  @Test func `a column that is missing is told from other refusals`() {
    let fault = ServiceFault(["code": 1017, "message": "Column 'channel' does not exist in table 'T'"], status: 400)
    #expect(fault.isMissingTableOrColumn)
    #expect(fault.error(doing: "x").code == .notFound)
    #expect(!ServiceFault(["code": 1000, "message": "Entity with ID X not found"]).isMissingTableOrColumn)
  }

  @Test func `codes may be strings, and errors anything`() {
    #expect(ServiceFault(["code": "5003", "message": "m"]).code == 5003)
    #expect(ServiceFault(.null).error(doing: "x").code == .badRequest)
    #expect(ServiceFault("text", status: 500).error(doing: "x").code == .unavailable)
  }
}

@Suite struct AdapterConditionTests {
  @Test func `values stay values`() {
    #expect(Condition.quoted("it's") == "'it''s'")
    #expect(Condition.quoted("' or 1=1 --") == "''' or 1=1 --'")
    #expect(Condition.quoted("a\\") == nil)
    #expect(Condition.quoted("a\u{0}b") == nil)
    #expect(Condition.quoted("комната 1") == "'комната 1'")
  }

  @Test func `conditions are joined with their values quoted`() throws {
    let name = try #require(Condition.quoted("a' or '1'='1"))
    #expect(Condition.all(["channel = \(name)", "x is null", nil]) == "(channel = 'a'' or ''1''=''1') and (x is null)")
    #expect(Condition.all([nil]) == "")
  }

  @Test func `ids of sends look like the service's own and differ by channel`() {
    let id = ChatWriter.objectID("k", in: "a")
    #expect(id == ChatWriter.objectID("k", in: "a"))
    #expect(id != ChatWriter.objectID("k", in: "b"))
    #expect(id.count == 36)
    #expect(id.split(separator: "-").map(\.count) == [8, 4, 4, 4, 12])
    #expect(id == id.uppercased())
  }
}
