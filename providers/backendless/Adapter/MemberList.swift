import FerryCore

/// Who is connected to a channel. A connection, not a user, is what comes and goes: a user is there as long as one of
/// their connections is. A pure value.
struct MemberList: Sendable {
  enum Status: String, Sendable {
    case listing = "LISTING", connected = "CONNECTED", disconnected = "DISCONNECTED", updated = "USERUPDATE"
  }

  struct Change: Hashable, Sendable {
    var joined: [String] = []
    var left: [String] = []
    var isEmpty: Bool { joined.isEmpty && left.isEmpty }
  }

  private static let longestID = 512
  private static let mostConnections = 50_000

  /// By connection; the user's id, nil for one who is not logged in.
  private var connections: [String: String?] = [:]
  /// Whether a listing came: before it, nobody is news.
  private var isListed = false

  var users: Set<String> { Set(connections.values.compactMap { $0 }) }

  /// `own` are this client's own connections, which are nobody's news.
  mutating func apply(_ frame: JSONValue, own: Set<String>) -> Change {
    guard let status = frame["status"]?.string.flatMap({ Status(rawValue: $0.uppercased()) }) else { return Change() }
    let before = users
    let wasListed = isListed
    let entries = frame["data"]?.array ?? frame["data"].map { [$0] } ?? []
    if status == .listing {
      connections = [:]
      isListed = true
    }
    for entry in entries {
      guard let connection = entry["connectionId"]?.text, connection.utf8.count <= Self.longestID,
        !own.contains(connection)
      else { continue }
      if status == .disconnected {
        connections[connection] = nil
        continue
      }
      guard connections.count < Self.mostConnections || connections[connection] != nil else { continue }
      let user = entry["userId"]?.text.flatMap { $0.isEmpty || $0.utf8.count > Self.longestID ? nil : $0 }
      connections.updateValue(user, forKey: connection)
    }
    // The first listing says who was there before anybody listened.
    if status == .listing, !wasListed { return Change() }
    return Change(joined: users.subtracting(before).sorted(), left: before.subtracting(users).sorted())
  }
}
