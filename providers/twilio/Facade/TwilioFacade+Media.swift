import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// The media service: files on their own way in and out, never whole in memory.
extension TwilioFacade {
  func upload(_ request: HTTPRequest, _ call: Call, by identity: String?) async throws -> HTTPResponse {
    var type = request.headers["Content-Type"].flatMap { $0.isEmpty ? nil : $0 } ?? "application/octet-stream"
    var name = call.query["Filename"].flatMap { $0.isEmpty ? nil : $0 }
    var bytes = request.body
    if type.lowercased().hasPrefix("multipart/form-data") {
      guard let part = try await MultipartFile.first(in: request.body, type: type) else {
        throw TwilioError(400, 20001, "The form has no file in it")
      }
      type = part.type
      name = name ?? part.name
      bytes = part.bytes
    }
    let file = try await chat.store(bytes, name: name ?? "file", mediaType: type)
    let (contentType, filename) = (type, name)
    let body = try await write { ledger in
      let record = MediaRecord(
        sid: SID.make(.media), service: call.service, sha256: file.sha256, size: file.size, contentType: contentType,
        filename: filename, author: identity ?? "system", category: call.query["Category"] ?? "media",
        created: ledger.now, updated: ledger.now)
      try ledger.chat.put(record, as: record.sid, in: "media")
      try ledger.chat.put(record.created, as: record.sid, in: "unattached")
      ledger.chat.afterCommit { [schedule = self.schedule] in _ = schedule.offer(()) }
      return ledger.json(record, call, isNew: true)
    }
    return Self.json(body, status: 201)
  }

  func mediaContent(_ sid: String, _ call: Call) async throws -> HTTPResponse {
    try await content(of: try await read { try $0.media(sid, in: call.service) })
  }

  /// Several records at once, each with a code of its own.
  func mediaSet(_ request: HTTPRequest, _ call: Call) async throws -> HTTPResponse {
    let body = JSONText.value(try await request.body.collect(upTo: 1 << 20))
    guard body?["command"]?.string == "get", let list = body?["list"]?.array, list.count <= 100 else {
      throw TwilioError(400, 20001, "Invalid parameter: the command must be get, with a list of at most 100 media")
    }
    let answers = try await read { ledger in
      try list.map { item -> JSONValue in
        let sid = item["media_sid"]?.string ?? ""
        do {
          return ["code": 200, "media_record": ledger.json(try ledger.media(sid, in: call.service), call)]
        } catch let error as TwilioError where error.status == 404 {
          return ["code": 404, "media_sid": .string(sid)]
        }
      }
    }
    return Self.json(.array(answers), status: 200)
  }

  // MARK: Links

  /// An absolute URL that needs no credentials for five minutes.
  func link(to sid: String, base: String, at now: Int64) -> String {
    let end = now / 1000 + Int64(Limits.linkLasts)
    return "\(base)/media/\(sid)?Expires=\(end)&Signature=\(signature(of: sid, end))"
  }

  private func signature(of sid: String, _ end: Int64) -> String {
    Crypto.hex(Crypto.hmac(.sha256, key: (linkKey.withLock { $0 } ?? "").utf8, "\(sid) \(end)".utf8))
  }

  func linkedMedia(_ sid: String, _ request: HTTPRequest) async throws -> HTTPResponse {
    guard request.method == "GET" || request.method == "HEAD" else {
      throw TwilioError(405, 20004, "Method not allowed")
    }
    guard let end = request.query("Expires").flatMap({ Int64($0) }), let given = request.query("Signature"),
      Crypto.areEqual(given, signature(of: sid, end)), end > clock.now().milliseconds / 1000
    else { throw TwilioError(403, 20403, "The link has expired or is not one that was given out. Ask for a new one") }
    let record = try await read { ledger in
      if let record: MediaRecord = try ledger.chat.value(of: sid, in: "media") {
        guard !record.isGone(at: ledger.now) else { throw TwilioError.noMedia }
        return record
      }
      return try ledger.anyForeignMedia(sid)
    }
    return try await content(of: record)
  }

  private func content(of record: MediaRecord) async throws -> HTTPResponse {
    let bytes = try await chat.bytes(of: try await chat.file(record.sha256))
    var response = HTTPResponse(status: 200, body: .stream(bytes))
    response.headers.set("Content-Type", Self.headerText(record.contentType))
    // Whoever uploaded it, it must not act as a page of this server.
    response.headers.set("Content-Security-Policy", "sandbox; default-src 'none'")
    response.headers.set("X-Content-Type-Options", "nosniff")
    let name = PercentEncoding.encode(record.filename ?? record.sid)
    response.headers.set("Content-Disposition", "inline; filename*=UTF-8''\(name)")
    return response
  }

  private static func headerText(_ text: String) -> String {
    let isPlain = !text.isEmpty && text.utf8.allSatisfy { (0x20..<0x7f).contains($0) }
    return isPlain ? text : "application/octet-stream"
  }
}

extension Ledger {
  fileprivate func anyForeignMedia(_ sid: String) throws -> MediaRecord {
    guard let (id, _) = facade.sids.mediaPlace(sid), let room = try chat.room(ofMessage: id),
      let service = try conversation(ofRoom: room)?.service
    else { throw TwilioError.noMedia }
    return try media(sid, in: service)
  }
}
