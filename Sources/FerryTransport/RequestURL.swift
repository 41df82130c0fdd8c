import CCurl
import FerryCore

/// A URL taken apart by libcurl.
struct RequestURL {
  /// `http` or `https`; a WebSocket's scheme is that of its handshake.
  let scheme: String
  /// In lower case; an address without brackets.
  let host: String
  let port: String?
  let path: String
  let query: String?

  init(_ text: String) throws(FerryError) {
    guard let handle = curl_url() else {
      throw FerryError(.internal, "There is no memory for a URL.", retry: .now)
    }
    defer { curl_url_cleanup(handle) }
    guard curl_url_set(handle, CURLUPART_URL, text, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK,
      let scheme = Self.part(CURLUPART_SCHEME, of: handle), let host = Self.part(CURLUPART_HOST, of: handle),
      ["http", "https"].contains(scheme)
    else {
      throw FerryError(.badRequest, "An address is needed that starts with http:// or https:// and names a host.")
    }
    self.scheme = scheme
    self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host.lowercased()
    port = Self.part(CURLUPART_PORT, of: handle)
    path = Self.part(CURLUPART_PATH, of: handle) ?? "/"
    query = Self.part(CURLUPART_QUERY, of: handle)
  }

  /// For people: host and port, nothing that could be secret.
  var place: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return if let port { "\(host):\(port)" } else { host }
  }

  var isThisMachine: Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "::1" || host.hasPrefix("127.")
  }

  private static func part(_ part: CURLUPart, of handle: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(handle, part, &text, 0) == CURLUE_OK, let text else { return nil }
    defer { curl_free(text) }
    return String(cString: text)
  }
}
