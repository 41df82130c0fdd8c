import FerryCore
import FerryRuntime

/// The first file of a `multipart/form-data` body, as it arrives: nothing but the piece under way is in memory.
/// Source: RFC 7578, and RFC 2046, 5.1
final class MultipartReader: Sendable {
  struct Part: Sendable {
    let name: String
    let fileName: String?
    let mediaType: String?
  }

  private struct State: Sendable {
    var buffer: [UInt8] = []
    var isAtEnd = false
    var isPartDone = false
  }

  private static let longestHead = 16 << 10

  private let body: ByteStream
  /// What ends a part: a line break, two hyphens and the boundary.
  private let delimiter: [UInt8]
  private let state: Locked<State>

  /// Throws when the content type names no boundary.
  init(_ body: ByteStream, contentType: String) throws(FerryError) {
    guard let boundary = Self.parameter("boundary", in: contentType), (1...70).contains(boundary.utf8.count) else {
      throw FerryError(.badRequest, "The multipart body has no boundary in its Content-Type.")
    }
    self.body = body
    delimiter = Array("\r\n--\(boundary)".utf8)
    // As if a line had ended before: the first boundary has none.
    state = Locked(State(buffer: [0x0d, 0x0a]))
  }

  /// The part under `name`, else the first with a file's name; its content is read next.
  func file(named name: String) async throws(FerryError) -> (part: Part, content: ByteStream) {
    while true {
      while try await skim(upToDelimiter: true) != nil {}
      guard let part = try await head() else { throw FerryError(.badRequest, "The multipart body holds no file.") }
      state.withLock { $0.isPartDone = false }
      if part.name == name || part.fileName != nil {
        let content = ByteStream(mediaType: part.mediaType) { () async throws(FerryError) in
          try await self.skim(upToDelimiter: true)
        }
        return (part, content)
      }
    }
  }

  // MARK: Pieces

  private enum Step {
    case piece([UInt8])
    case done
    case more
  }

  /// The next bytes before the delimiter, which is taken away in the end. Nil at the end of the part and ever after.
  private func skim(upToDelimiter: Bool) async throws(FerryError) -> [UInt8]? {
    while true {
      switch state.withLock({ step(&$0) }) {
      case .piece(let bytes): return bytes
      case .done: return nil
      case .more: try await fill()
      }
    }
  }

  private func step(_ state: inout State) -> Step {
    if state.isPartDone { return .done }
    if let at = Self.find(delimiter, in: state.buffer) {
      let piece = Array(state.buffer[..<at])
      state.buffer.removeFirst(at)
      if !piece.isEmpty { return .piece(piece) }
      state.buffer.removeFirst(delimiter.count)
      state.isPartDone = true
      return .done
    }
    // Its last bytes may be the beginning of the delimiter.
    let count = state.buffer.count - delimiter.count + 1
    guard count > 0 else { return .more }
    let piece = Array(state.buffer[..<count])
    state.buffer.removeFirst(count)
    return .piece(piece)
  }

  private func fill() async throws(FerryError) {
    guard let piece = try await body.next() else {
      throw FerryError(.badRequest, "The multipart body ends within a part.")
    }
    state.withLock { $0.buffer += piece }
  }

  /// The lines behind a delimiter. Nil after the last.
  private func head() async throws(FerryError) -> Part? {
    let end = Array("\r\n\r\n".utf8)
    while true {
      let (text, isLast, isTooLong) = state.withLock { state -> (String?, Bool, Bool) in
        if state.buffer.starts(with: [0x2d, 0x2d]) { return (nil, true, false) }
        guard let at = Self.find(end, in: state.buffer) else {
          return (nil, false, state.buffer.count > Self.longestHead)
        }
        let text = String(decoding: state.buffer[..<at], as: UTF8.self)
        state.buffer.removeFirst(at + end.count)
        // The content may be empty: then the delimiter follows at once, without a line break of its own.
        state.buffer.insert(contentsOf: [], at: 0)
        return (text, false, false)
      }
      if isLast { return nil }
      if isTooLong { throw FerryError(.badRequest, "A part of the multipart body has too long a head.") }
      if let text { return Self.part(text) }
      try await fill()
    }
  }

  private static func part(_ text: String) -> Part {
    var disposition = ""
    var type: String?
    for line in text.split(separator: "\r\n") {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let value = String(line[line.index(after: colon)...].drop { $0 == " " })
      switch line[..<colon].lowercased() {
      case "content-disposition": disposition = value
      case "content-type": type = value
      default: break
      }
    }
    return Part(
      name: parameter("name", in: disposition) ?? "", fileName: parameter("filename", in: disposition), mediaType: type)
  }

  /// The value of a header's parameter, without its quotes.
  static func parameter(_ name: String, in header: String) -> String? {
    for part in header.split(separator: ";").dropFirst() {
      let pair = part.split(separator: "=", maxSplits: 1)
      guard pair.count == 2, pair[0].filter({ $0 != " " }).lowercased() == name else { continue }
      return String(pair[1].filter { $0 != "\"" && $0 != "\r" && $0 != "\n" }.drop { $0 == " " })
    }
    return nil
  }

  private static func find(_ needle: [UInt8], in bytes: [UInt8]) -> Int? {
    guard let first = needle.first, bytes.count >= needle.count else { return nil }
    var start = 0
    while let at = bytes[start...(bytes.count - needle.count)].firstIndex(of: first) {
      if bytes[at..<at + needle.count].elementsEqual(needle) { return at }
      start = at + 1
      if start > bytes.count - needle.count { return nil }
    }
    return nil
  }
}
