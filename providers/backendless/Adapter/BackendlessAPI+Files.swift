import FerryCore
import FerryRuntime
import FerryTransport

/// The file service.
extension BackendlessAPI {
  private static let deadline = Duration.seconds(600)

  private static func path(_ path: String) -> String {
    "/files/" + path.split(separator: "/").map { segment($0) }.joined(separator: "/")
  }

  /// Streams a file to `folder/name`, replacing what was there, and returns its address as the service gave it. Sent as
  /// Base64, its type is told by the name alone.
  func upload(
    _ bytes: ByteStream, to path: String, name: String, mediaType: String,
    as kind: BackendlessAdapter.Settings.Uploads = .form, doing: String
  ) async throws(FerryError) -> String {
    var request: ClientRequest
    switch kind {
    case .form:
      let form = MultipartFile(bytes, name: name, mediaType: mediaType)
      request = ClientRequest(method: "POST", url: base + Self.path(path), body: .stream(form.body))
      request.headers.set("Content-Type", form.contentType)
    case .base64:
      request = ClientRequest(
        method: "PUT", url: base + Self.path("binary/" + path), body: .stream(Base64File(bytes).body))
      request.headers.set("Content-Type", "text/plain")
    }
    request.url += "?overwrite=true"
    request.deadline = Self.deadline
    let response = try await send(request, doing: doing)
    let text = try await response.collect(upTo: 64 << 10)
    // A bare address, with or without quotes, or an object with it.
    let answer = JSONText.value(text) ?? .string(String(decoding: text, as: UTF8.self))
    guard let url = answer["fileURL"]?.string ?? answer.string, Self.origin(url) != nil else {
      throw FerryError(.badData, "Could not \(doing): the answer names no address.", retry: .now, didNotAct: false)
    }
    return url
  }

  // MARK: Downloads

  /// The service's own hosts for files.
  private static let contentOrigins = ["https://backendlessappcontent.com", "https://eu.backendlessappcontent.com"]

  /// Whether an address is that of a file of this app, at this deployment: only there does the user's token go.
  func isOwnFile(_ url: String, of place: BackendlessAdapter.Settings.Place) -> Bool {
    guard let origin = Self.origin(url) else { return false }
    let path = url.dropFirst(origin.utf8.count).prefix { $0 != "?" && $0 != "#" }
    // As a path is after percent-decoding, however often somebody decodes it.
    let parts = path.split(separator: "/", omittingEmptySubsequences: true).map { PercentEncoding.decode($0) }
    guard
      !parts.contains(where: { $0 == "." || $0 == ".." || $0.contains("/") || $0.contains("\\") || $0.contains("%2") })
    else { return false }
    switch place {
    case .app(let server, let id, _):
      guard let own = Self.origin(server) else { return false }
      let isAtHome = origin == own || (own == "https://api.backendless.com" && origin == Self.contentOrigins[0])
      let isEurope = own == "https://eu-api.backendless.com" && origin == Self.contentOrigins[1]
      guard isAtHome || isEurope, let start = parts.firstIndex(of: id) else { return false }
      // The key's segment may be another key's: files of cloud code carry its own.
      return parts.count > start + 3 && parts[start + 2] == "files" && start <= 2
    case .domain(let domain):
      return origin == Self.origin(domain) && parts.count > 2 && parts[0] == "api" && parts[1] == "files"
    }
  }

  /// The bytes of a file of this app.
  func download(_ url: String) async throws(FerryError) -> ByteStream {
    let request = ClientRequest(method: "GET", url: url, deadline: Self.deadline)
    return try await send(request, doing: "fetch a picture").body
  }
}

/// One file as the body of a form.
struct MultipartFile: Sendable {
  let contentType: String
  let body: ByteStream

  init(_ bytes: ByteStream, name: String, mediaType: String, boundary: String = "ferry-" + Crypto.randomHex(bytes: 12))
  {
    contentType = "multipart/form-data; boundary=\(boundary)"
    let head =
      "--\(boundary)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(Self.quotable(name))\"\r\n"
      + "Content-Type: \(Self.headerSafe(mediaType))\r\n\r\n"
    let tail = "\r\n--\(boundary)--\r\n"
    let size = bytes.size.map { $0 + Int64(head.utf8.count + tail.utf8.count) }
    let rest = Locked<[Piece]>([.bytes(Array(head.utf8)), .content, .bytes(Array(tail.utf8))])
    body = ByteStream(size: size) { () async throws(FerryError) -> [UInt8]? in
      while let piece = rest.withLock({ $0.first }) {
        switch piece {
        case .bytes(let bytes):
          rest.withLock { _ = $0.removeFirst() }
          return bytes
        case .content:
          if let next = try await bytes.next() { return next }
          rest.withLock { _ = $0.removeFirst() }
        }
      }
      return nil
    }
  }

  private enum Piece: Sendable {
    case bytes([UInt8])
    case content
  }

  /// As browsers write a file's name in a form: quotes and line breaks escaped.
  /// Source: https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#multipart-form-data
  private static func quotable(_ name: String) -> String {
    var quoted = ""
    for scalar in name.unicodeScalars {
      switch scalar {
      case "\"": quoted += "%22"
      case "\r": quoted += "%0D"
      case "\n": quoted += "%0A"
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted
  }

  private static func headerSafe(_ mediaType: String) -> String {
    let isSafe = !mediaType.isEmpty && mediaType.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    return isSafe ? mediaType : "application/octet-stream"
  }
}
