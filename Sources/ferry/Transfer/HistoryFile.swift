import FerryCore
import FerryHistory

/// A file or folder with somebody's past in it.
struct HistoryFile: Sendable {
  enum Format: String, Sendable, CaseIterable { case archive, jsonl, slack }

  let path: String
  let format: Format
  /// What stands in the stamps of what is imported, unless the records say otherwise.
  let source: Address
  /// The same for the same history, wherever it lies.
  let identity: String
  private let fields: JSONLinesSource.Fields

  init(_ path: String, _ arguments: Arguments) throws {
    self.path = path
    format = try Self.format(of: path, arguments)
    var fields = JSONLinesSource.Fields()
    if let map = arguments["fields"] {
      guard let given = JSONLinesSource.Fields(map) else {
        throw arguments.fail(
          "--fields is a list such as time=ts,author=user, of time, kind, author, author_id, text, id, channel, edited, "
            + "reply_to and thread")
      }
      fields = given
    }
    self.fields = fields
    switch format {
    case .archive:
      let header = try ArchiveReader(path).header
      source = Address(header.source) ?? Address(account: "archive", channel: ChannelID(header.id))
      identity = header.id
    case .jsonl, .slack:
      let name = path.split(separator: "/").last.map(String.init) ?? path
      source = Address(account: AccountName(format.rawValue), channel: ChannelID(name))
      identity = source.description
    }
  }

  private static func format(of path: String, _ arguments: Arguments) throws -> Format {
    guard let name = arguments["format"] else {
      let lower = path.lowercased()
      if lower.hasSuffix(".zip") { return .slack }
      return lower.hasSuffix(".jsonl") || lower.hasSuffix(".ndjson") ? .jsonl : .archive
    }
    guard let format = Format(rawValue: name) else {
      throw arguments.fail("--format is \(Format.allCases.map(\.rawValue).joined(separator: " or "))")
    }
    return format
  }

  /// From the beginning. `only` is the channel that is wanted: the others are left out where that saves reading them.
  func open(only channel: ChannelID? = nil) throws(FerryError) -> any RecordSource {
    switch format {
    case .archive: try ArchiveReader(path)
    case .jsonl: try JSONLinesSource(path, channel: source.channel, fields: fields)
    case .slack: try SlackSource(path, only: channel?.rawValue)
    }
  }

  struct Channel: Sendable {
    let id: ChannelID
    var name: String
    /// How many records are about it; nil where they were not counted.
    var records: Int?
  }

  /// Those that have records, in the order of their first one.
  func channels() async throws(FerryError) -> [Channel] {
    let records = try open()
    var found: [ChannelID: Channel] = [:]
    var order: [ChannelID] = []
    while true {
      let page = try await records.next(limit: 500)
      if page.isEmpty { break }
      for record in page {
        guard let id = record.channel else { continue }
        if found[id] == nil { order.append(id) }
        var channel = found[id] ?? Channel(id: id, name: id.rawValue, records: 0)
        if case .channel(let described) = record { channel.name = described.name }
        channel.records = channel.records.map { $0 + 1 }
        found[id] = channel
      }
      // All lines belong to the one channel that the file is, so there is no need to read on.
      if format == .jsonl, !order.isEmpty {
        return order.compactMap { found[$0] }.map { Channel(id: $0.id, name: $0.name, records: nil) }
      }
    }
    return order.compactMap { found[$0] }
  }
}
