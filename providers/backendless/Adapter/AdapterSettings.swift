package import FerryConfig
package import FerryCore
import FerryTransport

extension BackendlessAdapter {
  /// Where the app is and how it uses the service.
  package struct Settings: Sendable {
    /// How the app is addressed.
    package enum Place: Sendable {
      /// A server that many apps share: id and key are in the path.
      case app(server: String, id: String, key: Secret)
      /// A domain of the app's own, without a slash at the end; id and key are asked for.
      case domain(String)
    }

    package enum Engine: String, Sendable, CaseIterable { case auto, three = "3", four = "4" }
    package enum Transport: String, Sendable, CaseIterable { case auto, websocket, polling }
    package enum Uploads: String, Sendable, CaseIterable { case form, base64 }
    package enum Receive: String, Sendable, CaseIterable { case realtime, legacyPolling = "legacy_polling" }

    package struct Login: Sendable {
      package var name: String
      package var password: Secret

      package init(name: String, password: Secret) {
        self.name = name
        self.password = password
      }
    }

    package var place: Place
    package var login: Login?
    /// Nil: messages are published and nothing is kept.
    package var table: String? = "ChatMessage"
    /// What `___class` of the app's messages says.
    package var messageClass = "ChatMessage"
    package var fields = ChatFieldNames()
    package var commands = CommandNames()
    /// The text by which the app says that somebody has come; nil: it does not.
    package var joinNotice: String? = "joined"
    package var leaveNotice: String? = "left"
    /// What every message is published with, and under. By headers others choose what they hear.
    package var headers: [String: String] = [:]
    package var subtopic: String?
    /// A condition of SQL-92 over the headers: what is published and does not meet it is not heard.
    package var selector: String?
    package var engine = Engine.auto
    package var transport = Transport.auto
    package var receive = Receive.realtime
    /// How often the table is compared with what is known; nil: 60 s with the real-time service, 5 s without.
    package var poll: Duration?
    /// How many of the last messages are looked at for deletions.
    package var pollWindow = 100
    package var filesFolder = "tmpChatFiles"
    package var uploads = Uploads.form
    package var sendsPerSecond: Double?

    package init(server: String, appID: String, key: Secret) {
      place = .app(server: Self.withoutSlash(server), id: appID, key: key)
    }

    package init(domain: String) { place = .domain(Self.withoutSlash(domain)) }

    /// Reads every key of an account's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      self.init(domain: "")
      place = try Self.place(mapping)
      if let login = mapping.optional("login") {
        self.login = Login(name: try login.nonEmptyString(), password: try mapping.secret("password"))
      } else if let password = mapping.optional("password") {
        throw password.error("password goes with login, which is missing")
      }
      if let node = mapping.optional("table") {
        let name = try node.nonEmptyString()
        guard ChatFieldNames.isColumn(name) else { throw node.error("a table's name has letters, digits and _") }
        table = name == "none" ? nil : name
      }
      messageClass = try mapping.optional("class")?.nonEmptyString() ?? table ?? messageClass
      if let node = mapping.optional("fields") { fields = try ChatFieldNames(try node.mapping()) }
      if let node = mapping.optional("typing") { try commands.readTyping(try node.mapping()) }
      if let node = mapping.optional("reads") { try commands.readMarks(try node.mapping()) }
      if let node = mapping.optional("join_notice") { joinNotice = try ChatFields.notice(node) }
      if let node = mapping.optional("leave_notice") { leaveNotice = try ChatFields.notice(node) }
      try readPublishing(mapping)
      try readConnection(mapping)
      if let node = mapping.optional("files_folder") { filesFolder = try Self.folder(node) }
      if let node = mapping.optional("uploads") { uploads = try node.choice(Uploads.self) }
      try mapping.finish()
    }

    private mutating func readPublishing(_ mapping: ConfigMapping) throws(FerryError) {
      if let node = mapping.optional("headers") {
        for (name, key, value) in try node.mapping().names() {
          guard !name.isEmpty, name != FerryMark.name else { throw key.error("\"\(name)\" cannot name a header here") }
          headers[name] = try value.nonEmptyString()
        }
      }
      subtopic = try mapping.optional("subtopic")?.nonEmptyString()
      if let node = mapping.optional("selector") {
        selector = try node.nonEmptyString()
        guard table == nil else {
          throw node.error("\"selector\" goes with table: none, as rows have no headers to choose by")
        }
      }
    }

    private mutating func readConnection(_ mapping: ConfigMapping) throws(FerryError) {
      if let node = mapping.optional("engine") { engine = try node.choice(Engine.self) }
      if let node = mapping.optional("transport") { transport = try node.choice(Transport.self) }
      if let node = mapping.optional("receive") { receive = try node.choice(Receive.self) }
      if let node = mapping.optional("poll") {
        let duration = try node.duration()
        guard duration >= .seconds(1) else { throw node.error("\"poll\" must be 1s or more") }
        poll = duration
      }
      if let node = mapping.optional("poll_window") { pollWindow = Int(try node.integer(in: 0...1000)) }
      if let node = mapping.optional("sends_per_second") {
        let rate = try node.number()
        guard rate > 0 else { throw node.error("\"sends_per_second\" must be more than 0") }
        sendsPerSecond = rate
      }
    }

    private static func place(_ mapping: ConfigMapping) throws(FerryError) -> Place {
      let server = mapping.optional("server_url")
      if let domain = mapping.optional("domain") {
        if let other = server ?? mapping.optional("app_id") ?? mapping.optional("api_key") {
          throw other.error("domain stands alone: it replaces server_url, app_id and api_key")
        }
        return .domain(try url(domain))
      }
      let address = try server.map { node throws(FerryError) in try url(node) } ?? Self.cloud
      return .app(
        server: address, id: try mapping.required("app_id").nonEmptyString(), key: try mapping.secret("api_key"))
    }

    static let cloud = "https://api.backendless.com"

    private static func url(_ node: ConfigNode) throws(FerryError) -> String {
      let text = withoutSlash(try node.nonEmptyString())
      let rest = text.hasPrefix("https://") ? text.dropFirst(8) : text.hasPrefix("http://") ? text.dropFirst(7) : ""
      guard !rest.isEmpty, !rest.hasPrefix("/"),
        rest.unicodeScalars.allSatisfy({ !"?#@\\\"".unicodeScalars.contains($0) && $0.value > 0x20 })
      else { throw node.error("an address is written https://HOST, with a port and a path where needed") }
      return text
    }

    private static func folder(_ node: ConfigNode) throws(FerryError) -> String {
      let parts = try node.nonEmptyString().split(separator: "/")
      guard !parts.isEmpty, parts.allSatisfy({ $0 != "." && $0 != ".." && !$0.contains("\\") }) else {
        throw node.error("a folder is written NAME or NAME/NAME")
      }
      return parts.joined(separator: "/")
    }

    static func withoutSlash(_ text: String) -> String {
      var text = text
      while text.hasSuffix("/") { text.removeLast() }
      return text
    }

    // MARK: Addresses

    /// Replaces a port of 0: that of a facade in the same process, known once it listens.
    package mutating func fill(port: UInt16) {
      func filled(_ url: String) -> String {
        guard let start = url.firstRange(of: "://")?.upperBound else { return url }
        let end = url[start...].firstIndex(of: "/") ?? url.endIndex
        guard url[start..<end].hasSuffix(":0") else { return url }
        return url[..<end].dropLast() + String(port) + url[end...]
      }
      switch place {
      case .app(let server, let id, let key): place = .app(server: filled(server), id: id, key: key)
      case .domain(let domain): place = .domain(filled(domain))
      }
    }

    /// What every path of the REST API begins with. Holds the key: not for logs.
    var base: String {
      switch place {
      case .app(let server, let id, let key):
        "\(server)/\(PercentEncoding.encode(id))/\(PercentEncoding.encode(key.reveal()))"
      case .domain(let domain): domain + "/api"
      }
    }

    var pollInterval: Duration { poll ?? (receive == .realtime ? .seconds(60) : .seconds(5)) }
  }

  /// Reads `backendless://APPID:KEY@HOST/CHANNEL`; with `backendless+http` there is no TLS. Nil when the URL is another
  /// kind's.
  package static func settings(fromURL url: String) throws(FerryError) -> (settings: Settings, channel: ChannelID)? {
    let scheme: String
    let rest: Substring
    if url.hasPrefix("backendless://") {
      (scheme, rest) = ("https", url.dropFirst("backendless://".count))
    } else if url.hasPrefix("backendless+http://") {
      (scheme, rest) = ("http", url.dropFirst("backendless+http://".count))
    } else {
      return nil
    }
    guard let slash = rest.firstIndex(of: "/"), let at = rest[..<slash].lastIndex(of: "@"),
      let colon = rest[..<at].firstIndex(of: ":")
    else { throw malformed }
    let id = PercentEncoding.decode(rest[..<colon])
    let key = PercentEncoding.decode(rest[rest.index(after: colon)..<at])
    let host = rest[rest.index(after: at)..<slash]
    let channel = PercentEncoding.decode(rest[rest.index(after: slash)...])
    guard !id.isEmpty, !key.isEmpty, !host.isEmpty, !channel.isEmpty else { throw malformed }
    return (Settings(server: "\(scheme)://\(host)", appID: id, key: Secret(key)), ChannelID(channel))
  }

  private static let malformed = FerryError(
    .badConfiguration, "A Backendless address is written backendless://APPID:KEY@api.backendless.com/CHANNEL.")
}
