import FerryCore
import FerryRuntime

/// Who is on a presence channel: users, each counted once however many connections they have.
struct PresenceList: Sendable {
  struct Member: Sendable {
    let id: String
    /// JSON text of an object. The first connection's counts for as long as the user stays.
    let info: String
  }

  private var members: [String: (info: String, connections: Int)] = [:]
  private var order: [String] = []

  var count: Int { order.count }
  /// In the order of their coming, each with the JSON text of their information.
  var users: [(id: String, info: String)] { order.map { ($0, members[$0]?.info ?? "{}") } }

  func contains(_ id: String) -> Bool { members[id] != nil }

  /// True when this is the user's first connection.
  mutating func join(_ member: Member) -> Bool {
    if members[member.id] != nil {
      members[member.id]?.connections += 1
      return false
    }
    members[member.id] = (member.info, 1)
    order.append(member.id)
    return true
  }

  /// True when this was the user's last connection.
  mutating func leave(_ id: String) -> Bool {
    guard let connections = members[id]?.connections else { return false }
    if connections > 1 {
      members[id]?.connections = connections - 1
      return false
    }
    members[id] = nil
    order.removeAll { $0 == id }
    return true
  }

  /// What a new subscriber is told. Always objects, also when empty.
  var text: String {
    let ids = order.map(JSONText.quoted).joined(separator: ",")
    let hash = order.map { "\(JSONText.quoted($0)):\(members[$0]?.info ?? "{}")" }.joined(separator: ",")
    return #"{"presence":{"ids":[\#(ids)],"hash":{\#(hash)},"count":\#(count)}}"#
  }
}

extension PresenceList.Member {
  private struct ChannelData: Decodable {
    let userID: JSONValue?
    let userInfo: JSONValue?

    enum CodingKeys: String, CodingKey {
      case userID = "user_id"
      case userInfo = "user_info"
    }
  }

  /// From the `channel_data` of a subscription; ids that are numbers become strings.
  init(channelData: String) throws(Refusal) {
    guard let data = JSONText.decode(ChannelData.self, from: channelData) else {
      throw Refusal(400, "Invalid channel_data: it must be a JSON object with a user_id")
    }
    guard let id = data.userID?.text, !id.isEmpty else {
      throw Refusal(400, "Invalid channel_data: user_id is missing, or neither a string nor a number")
    }
    guard id.count <= Limits.userIDLength else {
      throw Refusal(400, "Invalid user_id: it is longer than \(Limits.userIDLength) characters")
    }
    self.init(id: id, info: try Self.info(data.userInfo))
  }

  /// JSON text of what a user is said to be; an empty object when nothing is.
  static func info(_ value: JSONValue?) throws(Refusal) -> String {
    // Wrapped a few times more, it must not become what JSON libraries refuse: one member would spoil the whole list.
    guard value?.depth ?? 0 <= JSONValue.deepest else {
      throw Refusal(400, "Invalid user_info: it is nested deeper than \(JSONValue.deepest) levels")
    }
    let info = value.map { $0 == .null ? "{}" : JSON.text(of: $0) } ?? "{}"
    guard info.utf8.count <= Limits.userInfoBytes else {
      throw Refusal(400, "Invalid user_info: it is larger than \(Limits.userInfoBytes) bytes")
    }
    return info
  }
}
