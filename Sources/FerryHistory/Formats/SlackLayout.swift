import FerryCore
import FerryRuntime

/// Where things lie in a Slack export: its root, its channels and their days.
struct SlackLayout {
  struct Channel {
    var id: ChannelID
    var name: String
    var type: String
    var topic: String?
    var members: [UserID]?
    var created: Timestamp?
    /// Files of days, in order.
    var days: [String] = []
  }

  /// Ends with a slash, unless it is the whole tree.
  let root: String
  private(set) var channels: [Channel] = []
  private(set) var people: [UserID: PersonRecord] = [:]
  /// Files whose bytes are in the export, by the identifier of the file.
  private(set) var uploads: [String: String] = [:]
  private(set) var skipped = SkippedCounts()

  /// Throws `badData` for what is no export, and `unsupported` for one of texts.
  init(_ tree: ExportTree) throws(FerryError) {
    root = try Self.root(of: tree)
    for name in ["users.json", "org_users.json"] { try readPeople(tree, name) }
    for (name, type) in [
      ("channels.json", "public"), ("groups.json", "private"), ("dms.json", "direct"), ("mpims.json", "group"),
    ] { try readChannels(tree, name, type) }
    sortFiles(tree)
  }

  /// The shallowest folder with a list of channels: an export that was packed again lies in a folder of its own.
  private static func root(of tree: ExportTree) throws(FerryError) -> String {
    let lists = tree.names.filter {
      ($0 == "channels.json" || $0.hasSuffix("/channels.json")) && !$0.hasPrefix("__MACOSX/")
    }
    let roots = lists.map { String($0.dropLast("channels.json".count)) }
    let depth: (String) -> Int = { $0.utf8.count { $0 == UInt8(ascii: "/") } }
    guard let shallowest = roots.map(depth).min() else {
      if tree.names.contains(where: { $0.hasSuffix(".txt") }) {
        throw FerryError(.unsupported, "\(tree.path) is an export in TXT, which cannot be read. Export as JSON.")
      }
      throw FerryError(.badData, "\(tree.path) is no export from Slack: there is no channels.json in it.")
    }
    let candidates = roots.filter { depth($0) == shallowest }
    guard candidates.count == 1, let root = candidates.first else {
      throw FerryError(
        .badData, "\(tree.path) holds several exports: \(candidates.joined(separator: ", ")). Name one folder.")
    }
    return root
  }

  private mutating func readPeople(_ tree: ExportTree, _ name: String) throws(FerryError) {
    try readObjects(tree, name) { layout, object in
      guard let id = object["id"]?.string, !id.isEmpty else { return false }
      let profile = object["profile"]
      let names = [
        profile?["display_name"]?.string, profile?["real_name"]?.string, object["real_name"]?.string,
        object["name"]?.string,
      ]
      let user = UserID(id)
      let isBot = object["is_bot"]?.bool == true || id == "USLACKBOT"
      layout.people[user] = PersonRecord(
        id: user, name: names.compactMap { $0 }.first { !$0.isEmpty } ?? id, type: isBot ? "bot" : "person")
      return true
    }
  }

  private mutating func readChannels(_ tree: ExportTree, _ name: String, _ type: String) throws(FerryError) {
    try readObjects(tree, name) { layout, object in
      guard let id = object["id"]?.string, !id.isEmpty else { return false }
      let members = (object["members"]?.array)?.compactMap(\.string).map { UserID($0) }
      let shown = object["name"]?.string ?? members?.compactMap { layout.people[$0]?.name }.joined(separator: ", ")
      let created = object["created"]?.text.flatMap { Int64($0) } ?? 0
      layout.channels.append(
        Channel(
          id: ChannelID(id), name: shown ?? id, type: type, topic: object["topic"]?["value"]?.string, members: members,
          // One means that Slack does not know.
          created: created > 1 ? LooseTime(.integer(created))?.time : nil))
      return true
    }
  }

  private mutating func readObjects(
    _ tree: ExportTree, _ name: String, _ take: (inout SlackLayout, [String: JSONValue]) -> Bool
  ) throws(FerryError) {
    guard let file = try tree.open(root + name) else { return }
    let elements = JSONElements(file)
    while true {
      let element: JSONElements.Element?
      do throws(FerryError) { element = try elements.next() } catch {
        guard error.code == .badData else { throw error }
        skipped.add("a broken file: \(error.message)", in: nil, at: name)
        return
      }
      guard let element else { return }
      let value = try? JSONReader.read(element.bytes, lenient: true).value
      if value?.object.map({ take(&self, $0) }) != true {
        skipped.add("an entry of \(name) without an \"id\"", in: nil, at: "\(name): byte \(element.offset)")
      }
    }
  }

  // MARK: Files

  private static let lists: Set<String> = [
    "channels.json", "groups.json", "dms.json", "mpims.json", "users.json", "org_users.json", "integration_logs.json",
  ]

  private mutating func sortFiles(_ tree: ExportTree) {
    var folders: [String: Int] = [:]
    for (index, channel) in channels.enumerated() { folders[channel.name] = index }
    for (index, channel) in channels.enumerated() { folders[channel.id.rawValue] = index }
    for name in tree.names {
      guard name.hasPrefix(root) else {
        note(unread: name)
        continue
      }
      let parts = name.dropFirst(root.count).split(separator: "/").map(String.init)
      if parts.count == 2, Self.isDay(parts[1]) {
        if folders[parts[0]] == nil {
          folders[parts[0]] = unlisted(parts[0], folders)
        }
        if let index = folders[parts[0]] { channels[index].days.append(name) }
      } else if let id = Self.uploadID(parts) {
        uploads[id] = name
      } else if parts.count != 1 || !Self.lists.contains(parts[0]) {
        note(unread: name)
      }
    }
    for index in channels.indices { channels[index].days.sort() }
  }

  private mutating func note(unread name: String) {
    guard !name.hasPrefix("__MACOSX/"), !name.hasSuffix(".DS_Store") else { return }
    skipped.add("a file that is not read", in: nil, at: name)
  }

  /// A folder that no list names is a channel all the same. Some tools wrote `b'lobby'` for `lobby`.
  private mutating func unlisted(_ folder: String, _ folders: [String: Int]) -> Int {
    if folder.hasPrefix("b'"), folder.hasSuffix("'"), let index = folders[String(folder.dropFirst(2).dropLast())] {
      skipped.add("a folder's name that another tool spoilt, and that was put right", in: nil, at: folder)
      return index
    }
    channels.append(Channel(id: ChannelID(folder), name: folder, type: "unknown"))
    return channels.count - 1
  }

  /// `2024-01-02.json`
  private static func isDay(_ name: String) -> Bool {
    let pattern = Array("0000-00-00.json".utf8)
    return name.utf8.count == pattern.count
      && zip(name.utf8, pattern).allSatisfy { $1 == UInt8(ascii: "0") ? (0x30...0x39).contains($0) : $0 == $1 }
  }

  /// `__uploads/ID/NAME`, `lobby/attachments/ID-NAME`, `CHANNELID/ID-NAME`: names were changed, identifiers were not.
  private static func uploadID(_ parts: [String]) -> String? {
    if parts.count == 3, parts[0] == "__uploads" { return parts[1] }
    guard parts.count == 3 && parts[1] == "attachments" || parts.count == 2, let name = parts.last,
      let dash = name.firstIndex(of: "-"), name.first == "F"
    else { return nil }
    let id = name[..<dash]
    return id.utf8.count >= 6 && id.allSatisfy { $0.isASCII && ($0.isNumber || $0.isUppercase) } ? String(id) : nil
  }
}
