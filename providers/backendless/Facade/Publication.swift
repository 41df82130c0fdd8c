import FerryCore
import FerryRuntime

/// A message as it was published, with all that its listeners are told.
struct Publication: Hashable, Sendable, Codable {
  var id: String
  var channel: String
  var message: JSONValue
  var publisherID: String?
  var subtopic: String?
  var headers: [String: String] = [:]
  var policy: String?
  /// Milliseconds, seconds, milliseconds, as the service counts them; zero for none.
  var publishAt: Int64 = 0
  var repeatEvery: Int64 = 0
  var repeatExpiresAt: Int64 = 0
  /// Who was logged in.
  var user: UserReference?
  /// The file in the message's image member, which has no address of its own before somebody asks for it.
  var picture: Picture?

  struct Picture: Hashable, Sendable, Codable {
    let field: String
    /// Below the address of all files, encoded.
    let path: String
  }

  static func newID() -> String { "message:\(GUID.new())" }

  /// How the service makes strings of what publishers put into headers.
  static func headers(_ value: JSONValue?) -> [String: String] {
    (value?.object ?? [:]).mapValues { $0.text ?? ($0.bool.map(String.init) ?? JSON.text(of: $0)) }
  }

  /// What a listener of the channel receives: every member is there, as the strictest client expects.
  func json(at time: Timestamp, files: String) -> String {
    let headers = JSON.text(of: .object(headers.mapValues(JSONValue.string)))
    return #"{"messageId":\#(JSONText.quoted(id)),"message":\#(JSON.text(of: content(files: files))),"#
      + #""publisherId":\#(Self.text(publisherID)),"subtopic":\#(Self.text(subtopic)),"headers":\#(headers),"#
      + #""timestamp":\#(time.milliseconds),"pushSinglecast":null,"pushBroadcast":null,"#
      + #""publishPolicy":\#(Self.text(policy)),"query":null,"templateValues":null,"publishAt":\#(publishAt),"#
      + #""repeatEvery":\#(repeatEvery),"repeatExpiresAt":\#(repeatExpiresAt)}"#
  }

  /// What the older way of asking again and again is answered with: other names for some members, more headers.
  func polled(at time: Timestamp, files: String, appID: String, subscriber: String) -> JSONValue {
    var all = headers.mapValues(JSONValue.string)
    all["BL_APPLICATION_ID"] = .string(appID)
    all["DSId"] = "ferry"
    all["DSDstClientId"] = .string(subscriber)
    return [
      "messageId": .string(id), "data": content(files: files), "publishedAt": .integer(time.milliseconds),
      "publisherId": publisherID.map(JSONValue.string) ?? .null, "headers": .object(all),
    ]
  }

  private func content(files: String) -> JSONValue {
    guard let picture, case .object(var members) = message else { return message }
    members[picture.field] = .string(files + picture.path)
    return .object(members)
  }

  private static func text(_ value: String?) -> String { value.map(JSONText.quoted) ?? "null" }
}

/// Something that happened to rows of a table, as listeners of the table are told.
struct TableChange: Sendable {
  enum Data: Sendable {
    /// A whole row.
    case row(Row)
    /// The id is all that is said; the row decides who is told.
    case deleted(Row)
    case ids([String])
    case count(Int, whereClause: String)
  }

  let key: Hub.TableEvent
  let data: Data

  init(_ event: String, of table: String, _ data: Data) {
    key = Hub.TableEvent(table: table, event: event)
    self.data = data
  }

  /// Whether the listener's condition is true of the row. Of what happens in bulk everybody is told.
  func matches(_ condition: SQLCondition) -> Bool {
    switch data {
    case .row(let row), .deleted(let row): condition.matches(row.values)
    case .ids, .count: true
    }
  }

  func json(files: String) -> String {
    switch data {
    case .row(let row): JSON.text(of: row.shown(as: key.table, files: files))
    case .deleted(let row): #"{"objectId":\#(JSONText.quoted(row.id))}"#
    case .ids(let ids): JSON.text(of: .array(ids.map(JSONValue.string)))
    case .count(let count, let clause): #"{"whereClause":\#(JSONText.quoted(clause)),"count":\#(count)}"#
    }
  }
}
