package import FerryCore
import Glibc

/// JSON Lines, one thing that happened a line, as many programs write them: `{"time": ..., "author": ..., "text": ...}`.
///
/// A line without a `kind` is a message; `action`, `join` and `leave` are understood too. Lines without an `id` are known by
/// their number, so a file may grow at its end. A line that is not understood becomes a `skipped` record with its place.
package actor JSONLinesSource: RecordSource {
  /// Which members of a line mean what: the first that is there counts.
  package struct Fields: Hashable, Sendable {
    package var time = ["time", "timestamp", "ts", "date", "created_at"]
    package var kind = ["kind", "type"]
    package var author = ["author", "user", "sender", "from", "name", "nick"]
    package var text = ["text", "message", "body", "content"]
    package var id = ["id", "message_id"]
    package var replyTo = ["reply_to"]

    package init() {}

    /// `time=when,author=who`. Nil, and which word, for what is no such map.
    package init?(_ map: String) {
      for word in map.split(separator: ",") {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, !parts[1].isEmpty else { return nil }
        switch parts[0] {
        case "time": time = [parts[1]]
        case "kind": kind = [parts[1]]
        case "author": author = [parts[1]]
        case "text": text = [parts[1]]
        case "id": id = [parts[1]]
        case "reply_to": replyTo = [parts[1]]
        default: return nil
        }
      }
    }
  }

  private let path: String
  private let name: String
  private let channel: ChannelID
  private let fields: Fields
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var start = 0
  private var isAtEnd = false
  private var number = 0
  private var hasBegun = false

  /// Throws `notFound` when the file cannot be read.
  package init(_ path: String, channel: ChannelID, fields: Fields = Fields()) throws(FerryError) {
    self.path = path
    self.channel = channel
    self.fields = fields
    name = path.split(separator: "/").last.map(String.init) ?? path
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw FerryError(.notFound, "\(path) cannot be read.", cause: String(cString: strerror(errno)))
    }
  }

  deinit { close(descriptor) }

  package nonisolated func blob(_ sha256: String) -> ByteStream? { nil }

  package func next(limit: Int) throws(FerryError) -> [Record] {
    var records: [Record] = []
    if !hasBegun {
      hasBegun = true
      records.append(.channel(ChannelRecord(id: channel, name: channel.rawValue)))
    }
    while records.count < limit, let line = try nextLine() {
      number += 1
      guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0d }) else { continue }
      do throws(FerryError) { records.append(try record(line)) } catch {
        records.append(
          .skipped(SkippedRecord(channel: channel, reason: error.message, place: "\(name):\(number)")))
      }
    }
    return records
  }

  // MARK: Lines

  /// Without its end. One that is too long is cut, and then no JSON.
  private func nextLine() throws(FerryError) -> [UInt8]? {
    var searched = start
    while true {
      if let end = buffer[searched...].firstIndex(of: 0x0a) {
        defer { start = end + 1 }
        return Array(buffer[start..<end])
      }
      if isAtEnd {
        guard start < buffer.count else { return nil }
        defer { start = buffer.count }
        return Array(buffer[start...])
      }
      if start > 0 {
        buffer.removeFirst(start)
        start = 0
      }
      if buffer.count > 2 * Record.longestLine { buffer.removeLast(buffer.count - Record.longestLine - 1) }
      searched = buffer.count
      try fill()
    }
  }

  private func fill() throws(FerryError) {
    var piece = [UInt8](repeating: 0, count: 256 << 10)
    let count = read(descriptor, &piece, piece.count)
    if count < 0, errno == EINTR { return }
    guard count >= 0 else {
      throw FerryError(.storage, "\(path) could not be read on.", cause: String(cString: strerror(errno)))
    }
    isAtEnd = count == 0
    buffer += piece.prefix(count)
  }

  // MARK: Records

  private func record(_ line: [UInt8]) throws(FerryError) -> Record {
    let (reader, isLossy) = try Record.fields(line: line)
    let members = reader.rest
    func first(_ names: [String]) -> JSONValue? { names.lazy.compactMap { members[$0] }.first { $0 != .null } }
    guard let given = first(fields.time), let (time, precision) = Self.time(given) else {
      throw FerryError(.badData, "It has no time that is understood.")
    }
    let author = Self.author(first(fields.author))
    let kind = first(fields.kind)?.string ?? "message"
    switch kind {
    case "join", "leave":
      let member = MembershipRecord(
        channel: channel, member: author, time: time, timeRaw: nil, precision: precision)
      return kind == "join" ? .join(member) : .leave(member)
    case "message", "action":
      var message = Message(
        id: MessageID(first(fields.id)?.text ?? "L\(number)"), author: author, text: first(fields.text)?.text ?? "",
        time: time)
      message.replyTo = first(fields.replyTo)?.text.map { MessageID($0) }
      var record = MessageRecord(channel: channel, message: message, precision: precision)
      record.isAction = kind == "action"
      record.isLossy = isLossy
      return .message(record)
    default: throw FerryError(.badData, "Its kind \"\(kind.prefix(40))\" is not understood.")
    }
  }

  private static func author(_ value: JSONValue?) -> Author {
    if let text = value?.text { return Author(id: UserID(text.isEmpty ? "unknown" : text), name: text) }
    let name = value?["name"]?.text
    let id = value?["id"]?.text ?? name ?? "unknown"
    return Author(id: UserID(id.isEmpty ? "unknown" : id), name: name ?? id)
  }

  /// RFC 3339, or seconds or milliseconds since 1970, which tell themselves apart.
  private static func time(_ value: JSONValue) -> (Timestamp, TimePrecision)? {
    switch value {
    case .string(let text):
      if let time = Timestamp(rfc3339: text) { return (time, text.contains(".") ? .milliseconds : .seconds) }
      return Double(text).flatMap { Self.time($0) }
    case .integer(let number): return Self.time(Double(number))
    case .number(let number): return Self.time(number)
    default: return nil
    }
  }

  private static func time(_ number: Double) -> (Timestamp, TimePrecision)? {
    guard number.isFinite, abs(number) < 1e14 else { return nil }
    let isSeconds = abs(number) < 1e11
    let milliseconds = isSeconds ? number * 1000 : number
    return (
      Timestamp(milliseconds: Int64(milliseconds.rounded())),
      isSeconds && number == number.rounded() ? .seconds : .milliseconds
    )
  }
}
