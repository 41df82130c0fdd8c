import FerryCore
import FerryRuntime
import FerryTransport

/// The first file of a form that a browser sends, as a stream.
/// Source: RFC 7578; RFC 2046, 5.1
struct MultipartFile: Sendable {
  let name: String?
  let type: String
  let bytes: ByteStream

  private static let headBytes = 16 << 10

  /// Nil when the form has no file in it. What follows the file is not looked at.
  static func first(in body: ByteStream, type: String) async throws(FerryError) -> MultipartFile? {
    guard let boundary = parameter("boundary", of: type), !boundary.isEmpty, boundary.utf8.count <= 200 else {
      return nil
    }
    let reader = Reader(body: body, delimiter: Array("\r\n--\(boundary)".utf8))
    try await reader.skipPreamble()
    while let head = try await reader.head(limit: headBytes) {
      var fields = HTTPHeaders()
      for line in head.split(separator: "\r\n") {
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2 else { continue }
        fields.add(String(parts[0]), String(parts[1].drop { $0 == " " }))
      }
      let disposition = fields["Content-Disposition"] ?? ""
      let part = MultipartFile(
        name: parameter("filename", of: disposition), type: fields["Content-Type"] ?? "application/octet-stream",
        bytes: ByteStream { () async throws(FerryError) -> [UInt8]? in try await reader.piece() })
      if part.name != nil || fields["Content-Type"] != nil { return part }
      while try await part.bytes.next() != nil {}
    }
    return nil
  }

  private static func parameter(_ name: String, of header: String) -> String? {
    for item in header.split(separator: ";").dropFirst() {
      let parts = item.split(separator: "=", maxSplits: 1)
      guard parts.count == 2, parts[0].filter({ $0 != " " }).lowercased() == name else { continue }
      let value = parts[1].drop { $0 == " " }
      guard value.hasPrefix("\"") else { return String(value.prefix { $0 != " " }) }
      return String(value.dropFirst().prefix { $0 != "\"" })
    }
    return nil
  }

  /// Used by one task at a time.
  private final class Reader: Sendable {
    private struct State {
      /// A line break first, so that a form may begin with its delimiter.
      var buffer: [UInt8] = [0x0d, 0x0a]
      var isAtEnd = false
      var isPartOver = true
    }

    private let body: ByteStream
    private let delimiter: [UInt8]
    private let state = Locked(State())

    init(body: ByteStream, delimiter: [UInt8]) {
      self.body = body
      self.delimiter = delimiter
    }

    func skipPreamble() async throws(FerryError) {
      state.withLock { $0.isPartOver = false }
      while try await piece() != nil {}
    }

    /// The fields of the next part; nil after the last.
    func head(limit: Int) async throws(FerryError) -> String? {
      while true {
        let (head, isTooLong) = state.withLock { state -> (String?, Bool) in
          if state.buffer.starts(with: Array("--".utf8)) { return (nil, true) }
          guard let end = state.buffer.firstRange(of: Array("\r\n\r\n".utf8)) else {
            return (nil, state.buffer.count > limit)
          }
          let head = String(decoding: state.buffer[..<end.lowerBound], as: UTF8.self)
          state.buffer.removeFirst(end.upperBound)
          state.isPartOver = false
          return (head, false)
        }
        if let head { return head }
        if isTooLong { return nil }
        guard try await more() else { return nil }
      }
    }

    /// The next bytes of the part; nil at its end.
    func piece() async throws(FerryError) -> [UInt8]? {
      while true {
        let (piece, isOver, isBroken) = state.withLock { state -> ([UInt8], Bool, Bool) in
          if state.isPartOver { return ([], true, false) }
          if let found = state.buffer.firstRange(of: delimiter) {
            let piece = Array(state.buffer[..<found.lowerBound])
            state.buffer.removeFirst(found.upperBound)
            state.isPartOver = true
            return (piece, piece.isEmpty, false)
          }
          if state.isAtEnd { return ([], false, true) }
          // The end of what is there may be the beginning of the delimiter.
          let safe = max(state.buffer.count - delimiter.count + 1, 0)
          let piece = Array(state.buffer[..<safe])
          state.buffer.removeFirst(safe)
          return (piece, false, false)
        }
        if !piece.isEmpty { return piece }
        if isOver { return nil }
        if isBroken { throw FerryError(.badRequest, "The form ends before its last part does.") }
        _ = try await more()
      }
    }

    private func more() async throws(FerryError) -> Bool {
      let piece = try await body.next()
      state.withLock { state in
        if let piece { state.buffer += piece } else { state.isAtEnd = true }
      }
      return piece != nil
    }
  }
}
