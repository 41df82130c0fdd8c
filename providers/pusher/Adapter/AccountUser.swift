package import FerryConfig
package import FerryCore
import FerryRuntime

/// As whom an account signs in and joins presence channels. Its own coming and going is nobody's news.
package struct AccountUser: Hashable, Sendable {
  package let id: String
  /// What other members are shown.
  package let info: [String: JSONValue]

  /// Who Ferry is where the configuration names nobody.
  static let ferry = AccountUser(id: "ferry", info: ["name": "Ferry"])

  package init(id: String, info: [String: JSONValue]) {
    self.id = id
    self.info = info
  }

  package init(_ mapping: ConfigMapping) throws(FerryError) {
    let id = try mapping.required("id")
    let text = try id.nonEmptyString()
    // Also the charset of sign-ins, which is that of channel names.
    guard ChannelName(text, longest: Limits.userIDLength) != nil else {
      throw id.error("a user id has 1 to \(Limits.userIDLength) letters, digits and signs _-=@,.;")
    }
    var info: [String: JSONValue] = [:]
    if let node = mapping.optional("info") {
      for (name, _, value) in try node.mapping().names() { info[name] = .string(try value.string()) }
      guard JSON.text(of: JSONValue.object(info)).utf8.count <= Limits.userInfoBytes else {
        throw node.error("info is longer than the \(Limits.userInfoBytes) bytes that Pusher takes")
      }
    }
    try mapping.finish()
    self.init(id: text, info: info.isEmpty ? ["name": .string(text)] : info)
  }

  /// What joins a presence channel.
  var channelData: String { JSON.text(of: JSONValue.object(["user_id": .string(id), "user_info": .object(info)])) }

  /// What signs in.
  var userData: String { JSON.text(of: JSONValue.object(["id": .string(id), "user_info": .object(info)])) }
}
