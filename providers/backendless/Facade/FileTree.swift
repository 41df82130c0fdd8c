import FerryChat
import FerryCore
import FerryTransport

/// Names of stored files, in folders. Each folder is a collection of documents, so that listing one costs what it holds.
struct FileTree {
  struct Entry: Hashable, Sendable, Codable {
    /// Nil for a folder.
    var sha256: String?
    var size: Int64?
    var mediaType: String?
    /// Milliseconds since 1970.
    var created: Int64

    var isFolder: Bool { sha256 == nil }
  }

  struct Listed: Sendable {
    let path: FilePath
    let entry: Entry
  }

  /// Where pictures of the chat are kept.
  static let pictures = "tmpChatFiles"
  /// What one request may touch.
  private static let most = 10_000

  let transaction: ChatTransaction

  init(_ transaction: ChatTransaction) { self.transaction = transaction }

  private static func collection(_ folder: FilePath) -> String { "files/\(folder.text)" }

  // MARK: Reading

  /// The root is a folder that is always there.
  func entry(at path: FilePath) throws -> Entry? {
    if path.parts.isEmpty { return Entry(created: 0) }
    return try transaction.value(Entry.self, of: path.name, in: Self.collection(path.folder))
  }

  /// What lies in a folder, in the order of its making, and with `deep` in all folders below. Calls `body` with each
  /// until it returns false.
  func walk(_ folder: FilePath, deep: Bool, _ body: (Listed) throws -> Bool) throws {
    var folders = [folder]
    while let folder = folders.popLast() {
      var query = DocumentQuery(limit: 500)
      while true {
        let page = try transaction.documents(in: Self.collection(folder), query)
        for document in page {
          let item = Listed(path: try folder.appending(document.id), entry: try document.value(Entry.self))
          if deep, item.entry.isFolder { folders.append(item.path) }
          guard try body(item) else { return }
        }
        guard page.count == 500 else { break }
        query.after = page.last?.sequence
      }
    }
  }

  // MARK: Writing

  /// Makes the folders above, and refuses to put a file where a folder is.
  func put(
    sha256: String, size: Int64, mediaType: String, at path: FilePath, overwrite: Bool
  ) throws {
    guard !path.parts.isEmpty else { throw Fault.badPath }
    if let old = try entry(at: path) {
      if old.isFolder { throw Fault.nameTaken(path.text) }
      if !overwrite { throw Fault.fileExists(path.text) }
    }
    try makeFolder(path.folder)
    let entry = Entry(
      sha256: sha256, size: size, mediaType: mediaType, created: transaction.now.milliseconds)
    try transaction.put(entry, as: path.name, in: Self.collection(path.folder))
  }

  func makeFolder(_ path: FilePath) throws {
    var folder = FilePath.root
    for part in path.parts {
      let next = try folder.appending(part)
      if let entry = try entry(at: next) {
        if !entry.isFolder { throw Fault.nameTaken(next.text) }
      } else {
        try transaction.put(
          Entry(created: transaction.now.milliseconds), as: part, in: Self.collection(folder))
      }
      folder = next
    }
  }

  /// With everything below. Returns how many files and folders went.
  func remove(_ path: FilePath) throws -> Int {
    guard !path.parts.isEmpty, let found = try entry(at: path) else { throw Fault.noFile(path.text) }
    var count = 1
    if found.isFolder {
      var folders = [path]
      try walk(path, deep: true) { item in
        if item.entry.isFolder { folders.append(item.path) }
        return true
      }
      for folder in folders { count += try transaction.removeAll(from: Self.collection(folder)) }
    }
    try transaction.remove(path.name, from: Self.collection(path.folder))
    return count
  }

  /// Names are copied; the bytes are the same ones.
  func copy(_ source: FilePath, to target: FilePath) throws {
    guard !source.parts.isEmpty, let found = try entry(at: source) else { throw Fault.nothingToMove(source.text) }
    guard target != source, !target.isInside(source) else { throw Fault.existsInTarget(target.text) }
    if try entry(at: target) != nil { throw Fault.existsInTarget(target.text) }
    try makeFolder(target.folder)
    try transaction.put(found, as: target.name, in: Self.collection(target.folder))
    guard found.isFolder else { return }
    var items: [Listed] = []
    try walk(source, deep: true) { item in
      items.append(item)
      guard items.count <= Self.most else {
        throw Fault.badRequest("The folder holds more than \(Self.most) files and folders: copy them in parts")
      }
      return true
    }
    for item in items {
      let path = try FilePath(target.parts + item.path.parts.dropFirst(source.parts.count))
      try transaction.put(item.entry, as: path.name, in: Self.collection(path.folder))
    }
  }

  // MARK: Pictures of the chat

  /// Gives a file of the chat a path here, and returns that as it stands in a URL.
  static func keepPicture(_ attachment: Attachment, sha256: String, _ transaction: ChatTransaction) throws -> String {
    let path = try FilePath([pictures, "\(sha256).\(FileType.suffix(of: attachment.mediaType))"])
    try FileTree(transaction).put(
      sha256: sha256, size: attachment.size ?? 0, mediaType: attachment.mediaType, at: path, overwrite: true)
    return path.encoded
  }

  /// What a URL in an image member names: a file of this service, or one elsewhere. Nil for what is no URL.
  static func attachment(_ url: String, appID: String, _ transaction: ChatTransaction) throws -> Attachment? {
    let lower = url.prefix(8).lowercased()
    guard lower.hasPrefix("http://") || lower.hasPrefix("https://"), url.utf8.count <= 2048,
      !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
    else { return nil }
    let parts = url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/").dropFirst(2)
      .map { PercentEncoding.decode($0) }
    let name = String((parts.last ?? "file").prefix(64))
    if parts.count > 3, parts[0] == appID, parts[2] == "files", let path = try? FilePath(parts.dropFirst(3)),
      let entry = try FileTree(transaction).entry(at: path), let sha256 = entry.sha256
    {
      return Attachment(
        name: name, mediaType: entry.mediaType ?? FileType.unknown, size: entry.size, sha256: sha256,
        reference: .provider(sha256))
    }
    return Attachment(name: name, mediaType: FileType.of(name: name), reference: .url(url))
  }
}

/// Types by the ends of names, for where nothing else says.
enum FileType {
  static let unknown = "application/octet-stream"

  private static let types = [
    ("png", "image/png"), ("jpg", "image/jpeg"), ("jpeg", "image/jpeg"), ("gif", "image/gif"), ("webp", "image/webp"),
    ("svg", "image/svg+xml"), ("txt", "text/plain"), ("html", "text/html"), ("json", "application/json"),
    ("pdf", "application/pdf"), ("mp4", "video/mp4"), ("mp3", "audio/mpeg"),
  ]

  static func of(name: String) -> String {
    guard let dot = name.lastIndex(of: ".") else { return unknown }
    let suffix = name[name.index(after: dot)...].lowercased()
    return types.first { $0.0 == suffix }?.1 ?? unknown
  }

  static func suffix(of type: String) -> String { types.first { $0.1 == type }?.0 ?? "bin" }

  /// What a browser may show in a page. Everything else, HTML and SVG above all, is saved.
  static func mayShow(_ type: String) -> Bool {
    switch type {
    case "image/png", "image/jpeg", "image/gif", "image/webp", "text/plain": true
    default: type.hasPrefix("audio/") || type.hasPrefix("video/")
    }
  }
}
