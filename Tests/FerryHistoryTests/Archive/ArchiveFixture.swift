import FerryCore
import FerryHistory
import FerryRuntime
import FoundationEssentials

/// Archives to try things on.
enum ArchiveFixture {
  static let start = Timestamp(milliseconds: 1_706_860_800_000)
  static let header = ArchiveHeader(created: start, source: "here:lobby")

  static func message(_ number: Int, text: String? = nil, channel: ChannelID = "lobby") -> Record {
    let author = Author(id: UserID("U\(number % 7)"), name: "ada \(number % 7)")
    let message = Message(
      id: MessageID("m\(number)"), author: author, text: text ?? "message \(number) ü🙂",
      time: Timestamp(milliseconds: start.milliseconds + Int64(number)),
      replyTo: number % 10 == 9 ? MessageID("m\(number - 1)") : nil)
    return .message(MessageRecord(channel: channel, message: message))
  }

  static func messages(_ numbers: Range<Int>) -> [Record] { numbers.map { message($0) } }

  static func end(_ count: Int) -> Record { .end(EndRecord(channel: "lobby", isComplete: true, messages: count)) }

  static func stream(_ bytes: [UInt8], pieces: Int = 3) -> ByteStream {
    let left = Locked(bytes[...])
    return ByteStream(size: Int64(bytes.count)) { () async throws(FerryError) in
      left.withLock { left in
        let piece = Array(left.prefix(pieces))
        left = left.dropFirst(pieces)
        return piece.isEmpty ? nil : piece
      }
    }
  }

  static func all(_ source: any RecordSource) async throws -> [Record] {
    var records: [Record] = []
    while true {
      let next = try await source.next(limit: 700)
      if next.isEmpty { return records }
      records += next
    }
  }

  /// A finished archive of so many messages in segments of ten lines.
  static func finished(_ count: Int, in folder: String) async throws {
    let writer = try ArchiveWriter(folder: folder, header: header, limits: SegmentLimits(records: 10))
    try await writer.append(messages(0..<count) + [end(count)])
    try await writer.finish()
  }

  static func bytes(_ path: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: path))) }

  static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  static func copy(_ from: String, to: String) throws { try FileManager.default.copyItem(atPath: from, toPath: to) }
  static func remove(_ path: String) throws { try FileManager.default.removeItem(atPath: path) }
  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}
