package import FerryCore
import FerryRuntime

/// A request as the server received it.
package struct HTTPRequest: Sendable {
  package var method: String
  /// As sent, still percent-encoded, without the query.
  package var path: String
  /// As sent, without the question mark; empty when there is none.
  package var rawQuery: String
  package var headers: HTTPHeaders
  /// The client's IP address.
  package var peer: String
  /// Whether it came over TLS.
  package var isSecure: Bool
  /// Streams. What is not read is discarded.
  package var body: ByteStream

  package init(
    method: String, path: String, rawQuery: String = "", headers: HTTPHeaders = [:], peer: String = "127.0.0.1",
    isSecure: Bool = false, body: ByteStream = .none
  ) {
    self.method = method
    self.path = path
    self.rawQuery = rawQuery
    self.headers = headers
    self.peer = peer
    self.isSecure = isSecure
    self.body = body
  }

  /// The path split at slashes, each part percent-decoded; `/` has none.
  package var segments: [String] { path.split(separator: "/").map { PercentEncoding.decode($0) } }

  /// What the client calls this server, in lower case, without port and brackets.
  package var host: String? { headers["Host"].map { RequestHost.name(in: $0) } }

  /// Percent-decoded, in order.
  package var queryItems: [(name: String, value: String)] { PercentEncoding.pairs(rawQuery) }

  /// The first value under `name`, percent-decoded.
  package func query(_ name: String) -> String? { queryItems.first { $0.name == name }?.value }
}

extension ByteStream {
  /// No bytes at all.
  package static var none: ByteStream { ByteStream(size: 0, read: emptyRead) }

  /// Bytes that are there already, as one piece.
  package static func bytes(_ bytes: [UInt8], mediaType: String? = nil) -> ByteStream {
    let rest = Locked(bytes)
    return ByteStream(size: Int64(bytes.count), mediaType: mediaType) { () async throws(FerryError) -> [UInt8]? in
      let piece = rest.withLock { rest in
        defer { rest = [] }
        return rest
      }
      return piece.isEmpty ? nil : piece
    }
  }
}

@Sendable private func emptyRead() async throws(FerryError) -> [UInt8]? { nil }
