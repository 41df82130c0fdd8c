import FerryChat
import FerryCore
import FerryTransport

extension LocalServer {
  func upload(_ request: HTTPRequest) async throws(FerryError) -> HTTPResponse {
    let type = request.headers["Content-Type"] ?? ""
    guard !type.lowercased().hasPrefix("multipart/") else {
      throw FerryError(.unsupported, "Send the bytes of one file as the body, and its name as \"?name=\".")
    }
    let name = request.query("name") ?? request.headers["Content-Disposition"].flatMap(ContentDisposition.fileName)
    let file = try await chat.store(
      request.body, name: name ?? "file", mediaType: request.query("type") ?? type,
      expectedSHA256: request.query("sha256"))
    let answer = Answers.File(
      sha256: file.sha256, name: file.name, type: file.mediaType, size: file.size, width: file.pixels?.width,
      height: file.pixels?.height, url: "/v1/files/\(file.sha256)")
    var response = HTTPResponse.json(answer, status: 201)
    response.headers.set("Location", answer.url)
    return response
  }

  func download(_ request: HTTPRequest, _ sha256: String) async throws(FerryError) -> HTTPResponse {
    let file = try await chat.file(sha256)
    let name = request.query("name") ?? file.name
    let tag = "\"\(file.sha256)\""
    // Uploaded bytes are strangers' bytes: nothing in them may run, wherever they are shown.
    let headers: HTTPHeaders = [
      "ETag": tag,
      "Cache-Control": "private, max-age=31536000, immutable",
      "Content-Disposition": ContentDisposition.header(name: name, inline: Self.mayShow(file.mediaType)),
      "X-Content-Type-Options": "nosniff",
      "Content-Security-Policy": "default-src 'none'; sandbox",
      "Cross-Origin-Resource-Policy": "cross-origin",
    ]
    if let known = request.headers["If-None-Match"],
      known.split(separator: ",").contains(where: { $0.filter { $0 != " " }.hasSuffix(tag) || $0 == "*" })
    {
      return HTTPResponse(status: 304, headers: headers, body: .empty)
    }
    var response = HTTPResponse(status: 200, headers: headers, body: .stream(try await chat.bytes(of: file)))
    response.headers.set("Content-Type", file.mediaType)
    return response
  }

  /// What a browser may show in a page. Everything else, HTML and SVG above all, is saved.
  private static func mayShow(_ type: String) -> Bool {
    switch type {
    case "image/png", "image/jpeg", "image/gif", "image/webp", "text/plain": true
    default: type.hasPrefix("audio/") || type.hasPrefix("video/")
    }
  }
}

/// The header that names a file.
/// Source: https://www.rfc-editor.org/rfc/rfc6266
enum ContentDisposition {
  static func header(name: String, inline: Bool) -> String {
    let plain = String(
      name.unicodeScalars.map { scalar -> Character in
        switch scalar {
        case " ", "!", "#"..."[", "]"..."~": Character(scalar)
        default: "_"
        }
      })
    let kind = inline ? "inline" : "attachment"
    return "\(kind); filename=\"\(plain)\"; filename*=UTF-8''\(PercentEncoding.encode(name))"
  }

  /// The file name in a header that somebody sent.
  static func fileName(_ header: String) -> String? {
    var plain: String?
    for part in header.split(separator: ";").dropFirst() {
      let pair = part.split(separator: "=", maxSplits: 1).map { $0.trimmed }
      guard pair.count == 2 else { continue }
      switch pair[0].lowercased() {
      case "filename*":
        let value = pair[1].split(separator: "'", omittingEmptySubsequences: false)
        if value.count == 3, value[0].lowercased() == "utf-8" { return PercentEncoding.decode(value[2]) }
      case "filename": plain = pair[1].filter { $0 != "\"" }
      default: continue
      }
    }
    return plain
  }
}

extension Substring {
  fileprivate var trimmed: String {
    let start = drop { $0 == " " }
    return String(start.reversed().drop { $0 == " " }.reversed())
  }
}
