import FerryRuntime
import FerryTransport

/// A file of a page, as it is in the program.
struct PageFile: Sendable {
  let type: String
  let bytes: [UInt8]
  let tag: String

  enum Kind { case markup, style, script, picture }

  init(_ kind: Kind, _ source: [UInt8]) {
    switch kind {
    case .markup:
      type = "text/html; charset=utf-8"
      bytes = Compaction.compact(source, .markup)
    case .style:
      type = "text/css; charset=utf-8"
      bytes = Compaction.compact(source, .style)
    case .script:
      type = "text/javascript; charset=utf-8"
      bytes = Compaction.compact(source, .script)
    case .picture:
      type = "image/svg+xml"
      bytes = source
    }
    tag = "\"\(Crypto.hex(Crypto.digest(.sha256, of: bytes)).prefix(32))\""
  }

  /// The chat page of a service whose apps write a message when somebody comes; any other file as it is.
  func withJoinNotice(_ text: String) -> PageFile {
    guard type.hasPrefix("text/html"), text.utf8.allSatisfy({ !#"<>&""#.utf8.contains($0) }) else { return self }
    let page = String(decoding: bytes, as: UTF8.self)
    let place = #"<meta name="join-notice" content="">"#
    guard let range = page.firstRange(of: place) else { return self }
    let told = page[..<range.lowerBound] + place.dropLast(2) + text + "\">" + page[range.upperBound...]
    return PageFile(.markup, Array(told.utf8))
  }

  /// Asked for again at every load, and answered with 304 as long as it is the same: a new version of the program is
  /// never mixed with files of an old one.
  func answer(_ request: HTTPRequest, policy: String) -> HTTPResponse {
    let headers: HTTPHeaders = [
      "ETag": tag,
      "Cache-Control": "no-cache",
      "Content-Security-Policy": policy,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
      "Cross-Origin-Opener-Policy": "same-origin",
      "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    ]
    if request.headers.list("If-None-Match", contains: tag) { return HTTPResponse(status: 304, headers: headers) }
    var response = HTTPResponse(status: 200, headers: headers, body: .bytes(bytes))
    response.headers.set("Content-Type", type)
    return response
  }
}
