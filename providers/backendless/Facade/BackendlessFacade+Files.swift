import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// `/files`: storing, and the one path at which a file is fetched and a folder is listed.
extension BackendlessFacade {
  func files(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let parts = context.path
    switch (context.request.method, parts.first) {
    case ("PUT", "binary"):
      return try await store(
        context.request.body.decodingBase64(), at: try FilePath(parts.dropFirst()), context, answersText: true)
    case (_, "append") where ["POST", "PUT"].contains(context.request.method):
      return try await append(Array(parts.dropFirst()), context)
    case ("PUT", "rename"): return try await rename(context)
    case ("PUT", "copy"), ("PUT", "move"): return try await copy(context, isMove: parts.first == "move")
    case ("PUT", "permissions"): throw .unsupported("Permissions of files")
    case ("POST", _) where parts.last == "":
      let path = try FilePath(parts)
      try await change { try FileTree($0.transaction).makeFolder(path) }
      return .nothing
    case ("POST", _): return try await upload(at: try FilePath(parts), context)
    case ("GET", _), ("HEAD", _): return try await fetch(try FilePath(parts), context)
    case ("DELETE", _):
      let path = try FilePath(parts)
      let count = try await change { try FileTree($0.transaction).remove(path) }
      return .value(.integer(Int64(count)))
    default: throw .nothingHere
    }
  }

  // MARK: Storing

  /// Either a form with the file, or JSON with the address from which it is to be fetched.
  private func upload(at path: FilePath, _ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let (content, type) = try await uploaded(context)
    return try await store(content, at: path, context, type: type, answersText: false)
  }

  private func uploaded(_ context: RequestContext) async throws(Fault) -> (ByteStream, type: String?) {
    let type = context.request.headers["Content-Type"] ?? ""
    do throws(FerryError) {
      if type.lowercased().hasPrefix("multipart/") {
        let (part, content) = try await MultipartReader(context.request.body, contentType: type).file(named: "file")
        return (content, part.mediaType)
      }
    } catch {
      throw Fault(error)
    }
    guard let url = try await context.object()["url"]?.string else { throw .missing("url") }
    return try await fetched(url)
  }

  /// Whoever names an address must not reach what only this machine can.
  private func fetched(_ url: String) async throws(Fault) -> (ByteStream, type: String?) {
    do throws(FerryError) {
      let response = try await client.send(
        ClientRequest(url: url, deadline: .seconds(60), redirects: 3, isTrusted: false))
      guard response.isSuccess else {
        throw FerryError(.badRequest, "The address was answered with \(response.status).")
      }
      return (response.body, response.headers["Content-Type"])
    } catch {
      throw Fault(400, 8000, "The file could not be fetched from the URL: \(error.message)")
    }
  }

  private func store(
    _ content: ByteStream, at path: FilePath, _ context: RequestContext, type: String? = nil, answersText: Bool,
    overwrite: Bool? = nil
  ) async throws(Fault) -> HTTPResponse {
    guard !path.parts.isEmpty else { throw .badPath }
    let overwrite = overwrite ?? context.flag("overwrite")
    // Asked before the bytes come, and once more when they are written down.
    let old = try await read { try FileTree($0).entry(at: path) }
    if let old, old.isFolder || !overwrite { throw old.isFolder ? .nameTaken(path.text) : .fileExists(path.text) }
    let file: StoredFile
    do throws(FerryError) {
      file = try await chat.store(
        content.limited(to: settings.fileBytes), name: path.name, mediaType: Self.type(type, path))
    } catch {
      throw Fault(error)
    }
    // The same bytes may be known under another type: that of this name counts here.
    var named = file
    if !FileType.mayShow(file.mediaType) || file.mediaType == "text/plain" { named.mediaType = Self.type(type, path) }
    let stored = named
    try await change {
      try FileTree($0.transaction).put(
        sha256: stored.sha256, size: stored.size, mediaType: stored.mediaType, at: path, overwrite: overwrite)
    }
    let url = JSONValue.string(context.files + path.encoded)
    return .value(answersText ? url : ["fileURL": url])
  }

  /// As declared, or else by the end of the name. What a text says of itself is believed, an image's bytes decide.
  private static func type(_ declared: String?, _ path: FilePath) -> String {
    let known = FileType.of(name: path.name)
    guard let declared, !declared.isEmpty, declared.utf8.count <= 128 else { return known }
    let plain = declared.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    return plain == FileType.unknown ? known : plain
  }

  private func append(_ parts: [String], _ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let isBase64 = parts.first == "binary" && context.request.method == "PUT"
    let path = try FilePath(isBase64 ? Array(parts.dropFirst()) : parts)
    let isPut = context.request.method == "PUT"
    let added: ByteStream
    if isBase64 {
      added = context.request.body.decodingBase64()
    } else if isPut {
      added = context.request.body
    } else {
      added = try await uploaded(context).0
    }
    guard let entry = try await read({ try FileTree($0).entry(at: path) }), let sha256 = entry.sha256 else {
      return try await store(added, at: path, context, answersText: isPut, overwrite: true)
    }
    let old: ByteStream
    do throws(FerryError) { old = try await chat.bytes(of: try await chat.file(sha256)) } catch { throw Fault(error) }
    return try await store(
      old.followed(by: added), at: path, context, type: entry.mediaType, answersText: isPut, overwrite: true)
  }

  // MARK: Moving

  private func rename(_ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard let old = body["oldPathName"]?.string else { throw .missing("oldPathName") }
    guard let name = body["newName"]?.string, !name.isEmpty else { throw .missing("newName") }
    let source = try FilePath(old)
    let target = try source.folder.appending(name)
    if target != source, try await read({ try FileTree($0).entry(at: target) }) != nil { throw .nameTaken(target.text) }
    return try await move(source, to: target, context, keepsSource: false)
  }

  /// Into the folder at the target, under the same name, or to the path it names when there is nothing.
  private func copy(_ context: RequestContext, isMove: Bool) async throws(Fault) -> HTTPResponse {
    let body = try await context.object()
    guard let from = body["sourcePath"]?.string else { throw .missing("sourcePath") }
    guard let to = body["targetPath"]?.string else { throw .missing("targetPath") }
    let source = try FilePath(from)
    var target = try FilePath(to)
    let folder = target
    switch try await read({ try FileTree($0).entry(at: folder) })?.isFolder {
    case true?: target = try target.appending(source.name)
    case false?: throw .moveOntoFile
    case nil: if to.hasSuffix("/") { target = try target.appending(source.name) }
    }
    return try await move(source, to: target, context, keepsSource: !isMove)
  }

  private func move(
    _ source: FilePath, to target: FilePath, _ context: RequestContext, keepsSource: Bool
  ) async throws(Fault) -> HTTPResponse {
    try await change { writer in
      let tree = FileTree(writer.transaction)
      try tree.copy(source, to: target)
      if !keepsSource { _ = try tree.remove(source) }
    }
    return .value(.string(context.files + target.encoded))
  }

  // MARK: Fetching and listing

  private func fetch(_ path: FilePath, _ context: RequestContext) async throws(Fault) -> HTTPResponse {
    let entry = try await read { try FileTree($0).entry(at: path) }
    switch context.request.query("action") {
    case "exists": return .value(.bool(entry != nil))
    case "count":
      guard entry?.isFolder == true else { throw .noFile(path.text) }
      return try await list(path, context, isCount: true)
    case nil, "": break
    default: throw .unsupported("This action on files")
    }
    guard let entry else { throw .noFile(path.text) }
    guard let sha256 = entry.sha256 else { return try await list(path, context, isCount: false) }
    return try await download(sha256, entry, path)
  }

  private func download(_ sha256: String, _ entry: FileTree.Entry, _ path: FilePath) async throws(Fault) -> HTTPResponse
  {
    let type = entry.mediaType ?? FileType.unknown
    let kind = FileType.mayShow(type) ? "inline" : "attachment"
    do throws(FerryError) {
      let content = try await chat.bytes(of: try await chat.file(sha256))
      // Uploaded bytes are strangers' bytes: nothing in them may run, wherever they are shown.
      return HTTPResponse(
        status: 200,
        headers: [
          "Content-Type": type, "ETag": "\"\(sha256)\"",
          "Content-Disposition": "\(kind); filename*=UTF-8''\(PercentEncoding.encode(path.name))",
          "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
          "Cross-Origin-Resource-Policy": "cross-origin",
        ], body: .stream(content))
    } catch {
      throw Fault(error)
    }
  }

  private func list(_ folder: FilePath, _ context: RequestContext, isCount: Bool) async throws(Fault) -> HTTPResponse {
    let request = context.request
    let pattern = request.query("pattern") ?? "*"
    guard pattern.utf8.count <= 256 else { throw .badRequest("The pattern is too long") }
    let deep = context.flag("sub")
    if isCount {
      let countsFolders = context.flag("countDirectories")
      let count = try await read { transaction in
        var count = 0
        try FileTree(transaction).walk(folder, deep: deep) { item in
          if countsFolders || !item.entry.isFolder, FileName.matches(item.path.name, pattern) { count += 1 }
          return true
        }
        return count
      }
      return .value(.integer(Int64(count)))
    }
    let offset = max(request.query("offset").flatMap { Int($0) } ?? 0, 0)
    let size = min(max(request.query("pagesize").flatMap { Int($0) } ?? 100, 1), 100)
    let items = try await read { transaction in
      var skipped = 0
      var items: [FileTree.Listed] = []
      try FileTree(transaction).walk(folder, deep: deep) { item in
        guard FileName.matches(item.path.name, pattern) else { return true }
        if skipped < offset { skipped += 1 } else { items.append(item) }
        return items.count < size
      }
      return items
    }
    return .value(.array(items.map { Self.shown($0, context) }))
  }

  private static func shown(_ item: FileTree.Listed, _ context: RequestContext) -> JSONValue {
    var shown: [String: JSONValue] = [
      "name": .string(item.path.name), "createdOn": .integer(item.entry.created),
      "publicUrl": .string(context.files + item.path.encoded), "url": .string(item.path.text),
    ]
    if let size = item.entry.size { shown["size"] = .integer(size) }
    return .object(shown)
  }
}

enum FileName {
  /// `*` is any text, `?` any one character.
  static func matches(_ name: String, _ pattern: String) -> Bool {
    if pattern == "*" || pattern.isEmpty { return true }
    // As a pattern of LIKE, whose own signs stand for themselves here.
    var like = ""
    var text = ""
    let signs: [Character: Character] = ["%": "\u{1}", "_": "\u{2}"]
    for character in pattern {
      like.append(character == "*" ? "%" : character == "?" ? "_" : signs[character] ?? character)
    }
    for character in name { text.append(signs[character] ?? character) }
    return SQLPattern.matches(text, like)
  }
}
