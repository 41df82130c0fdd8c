package import FerryConfig
package import FerryCore

extension BackendlessFacade {
  package struct Settings: Sendable {
    package var appID: String
    package var apiKey: Secret
    /// Without a slash at the end. Nil: what the client calls the server in its `Host` header.
    package var publicURL: String?
    package var fields = ChatFields()
    package var fileBytes: Int64 = 64 << 20
    /// A session of a user ends after this long without a request.
    package var sessionTimeout: Duration = .seconds(3600)
    /// Rounds of the function that passwords are kept by.
    package var passwordRounds = 200_000
    package var engine = EngineServerSession.Settings()
    /// Real-time sessions in all, and subscriptions of one.
    package var sessions = 20_000
    package var subscriptions = 1000
    /// How much may wait for all who poll. While it is more, whoever is furthest behind is let go.
    package var queuedBytes = 64 << 20

    /// What the server has to let through: Base64 takes four bytes for three.
    package var bodyBytes: Int { Int(fileBytes) / 3 * 4 + (2 << 20) }

    package init(appID: String, apiKey: Secret) {
      self.appID = appID
      self.apiKey = apiKey
    }

    /// Reads every key of a facade's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let appID = try mapping.required("app_id")
      self.init(appID: try appID.nonEmptyString(), apiKey: try mapping.secret("api_key"))
      guard self.appID.utf8.allSatisfy(Self.isPlain), !["files", "ferry"].contains(self.appID) else {
        throw appID.error("app_id must be of letters, digits and hyphens, such as a GUID")
      }
      if let node = mapping.optional("public_url") {
        var url = try node.nonEmptyString()
        while url.hasSuffix("/") { url.removeLast() }
        guard url.hasPrefix("http://") || url.hasPrefix("https://"), url.split(separator: "/").count == 2 else {
          throw node.error(
            "public_url must be http:// or https:// and a host, without a path: clients append their own")
        }
        publicURL = url
      }
      if let table = mapping.optional("table") {
        fields.table = try table.nonEmptyString()
        guard TableName.isValid(fields.table) else { throw table.error("a table has letters, digits and underscores") }
      }
      if let node = mapping.optional("fields") { fields = try ChatFields(try node.mapping(), over: fields) }
      if let node = mapping.optional("join_notice") { fields.joinNotice = try ChatFields.notice(node) }
      if let node = mapping.optional("file_bytes") { fileBytes = min(try node.byteCount(), 1 << 40) }
      try mapping.finish()
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
  }
}

extension ChatFields {
  /// The keys `channel`, `text`, `sender` and `image`, each one name or several.
  package init(_ mapping: ConfigMapping, over defaults: ChatFields) throws(FerryError) {
    self = defaults
    channel = try Self.names("channel", mapping) ?? channel
    text = try Self.names("text", mapping) ?? text
    sender = try Self.names("sender", mapping) ?? sender
    image = try Self.names("image", mapping) ?? image
    try mapping.finish()
  }

  /// A notice's text, or `false` for none.
  static func notice(_ node: ConfigNode) throws(FerryError) -> String? {
    if let isOn = try? node.bool() {
      if isOn { throw node.error("write the notice's text, or false for none") }
      return nil
    }
    return try node.nonEmptyString()
  }

  private static func names(_ key: String, _ mapping: ConfigMapping) throws(FerryError) -> [String]? {
    guard let node = mapping.optional(key) else { return nil }
    let names = try node.strings()
    guard names.allSatisfy(TableName.isValid) else { throw node.error("a column has letters, digits and underscores") }
    return names
  }
}
