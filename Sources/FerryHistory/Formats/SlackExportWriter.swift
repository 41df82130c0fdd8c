import FerryCore
import FerryRuntime
import FerryStorage
import Glibc

/// Gathers records in a temporary database, where later ones find what they change, and writes the days at the end.
final class SlackExportWriter: Sendable {
  private struct State {
    var report = SlackExport.Report()
    var channels: [ChannelID: ChannelRecord] = [:]
    var people: [UserID: PersonRecord] = [:]
  }

  private let folder: String
  private let scratch: ScratchFolder
  private let database: Database
  private let state = Locked(State())

  init(_ folder: String) throws(FerryError) {
    self.folder = folder
    scratch = try ScratchFolder()
    database = try Database(
      path: "\(scratch.path)/slack.db",
      migrations: [
        """
        CREATE TABLE message (
          channel TEXT NOT NULL, ts INTEGER NOT NULL, id TEXT, line BLOB NOT NULL, PRIMARY KEY (channel, ts)
        ) WITHOUT ROWID;
        CREATE UNIQUE INDEX message_id ON message (channel, id);
        """
      ])
  }

  deinit { database.close() }

  // MARK: Taking

  func take(_ records: [Record], from source: any RecordSource) async throws(FerryError) {
    for record in records {
      switch record {
      case .message(let message), .edit(let message): try await takeFiles(of: message, from: source)
      default: break
      }
    }
    let kept = records.filter(note)
    try await database.write { connection in for record in kept { try Self.write(record, connection) } }
  }

  /// Whether there is more to do with it.
  private func note(_ record: Record) -> Bool {
    state.withLock { state in
      if let channel = record.channel, state.channels[channel] == nil {
        state.channels[channel] = ChannelRecord(id: channel, name: channel.rawValue)
      }
      switch record {
      case .channel(let channel): state.channels[channel.id] = channel
      case .person(let person): state.people[person.id] = person
      case .message(let message), .edit(let message):
        let author = message.message.author
        if state.people[author.id] == nil { state.people[author.id] = PersonRecord(id: author.id, name: author.name) }
        if !message.isDeleted { return true }
        state.report.dropped["deleted message", default: 0] += 1
      case .join(let membership), .leave(let membership):
        let author = membership.member
        if state.people[author.id] == nil { state.people[author.id] = PersonRecord(id: author.id, name: author.name) }
        return membership.time != nil
      case .delete, .reaction: return true
      case .read, .gap, .skipped, .unknown: state.report.dropped[record.kind, default: 0] += 1
      case .end: break
      }
      return false
    }
  }

  private static func write(_ record: Record, _ connection: Connection) throws {
    switch record {
    case .message(let message):
      try connection.execute(
        "DELETE FROM message WHERE channel = ? AND id = ?", .text(message.channel.rawValue),
        .text(message.message.id.rawValue))
      try insert(
        record, message.channel, id: message.message.id, time: message.message.time, message.timeRaw, connection)
    case .edit(let message):
      try connection.execute(
        "UPDATE message SET line = ? WHERE channel = ? AND id = ?", .blob(Record.message(message).line()),
        .text(message.channel.rawValue), .text(message.message.id.rawValue))
    case .delete(let deletion):
      try connection.execute(
        "DELETE FROM message WHERE channel = ? AND id = ?", .text(deletion.channel.rawValue),
        .text(deletion.id.rawValue))
    case .join(let membership), .leave(let membership):
      guard let time = membership.time else { return }
      try insert(record, membership.channel, id: nil, time: time, membership.timeRaw, connection)
    case .reaction(let reaction): try apply(reaction, connection)
    default: break
    }
  }

  /// At its time to the microsecond where that is known, else behind what has the same millisecond already, so that the
  /// order stays; and at the next time that is free: in Slack the time is the identifier.
  private static func insert(
    _ record: Record, _ channel: ChannelID, id: MessageID?, time: Timestamp, _ raw: String?, _ connection: Connection
  ) throws {
    let (start, isOver) = max(time.milliseconds, 0).multipliedReportingOverflow(by: 1000)
    guard !isOver else { return }
    let room = SQLValue.text(channel.rawValue)
    var ts = start
    if let exact = microseconds(raw) {
      ts = exact
    } else {
      let last = try connection.first(
        "SELECT max(ts) FROM message WHERE channel = ? AND ts BETWEEN ? AND ?", room, .integer(start),
        .integer(start + 999)
      ) { $0.optionalInteger(0) }
      if let last = last ?? nil { ts = last + 1 }
    }
    while try connection.first(
      "SELECT 1 FROM message WHERE channel = ? AND ts = ?", room, .integer(ts), map: { $0.integer(0) }) != nil
    { ts += 1 }
    try connection.execute(
      "INSERT INTO message VALUES (?, ?, ?, ?)", room, .integer(ts), id.map { .text($0.rawValue) } ?? .null,
      .blob(record.line()))
  }

  /// Of a time that Slack wrote.
  private static func microseconds(_ raw: String?) -> Int64? {
    let parts = raw?.split(separator: ".") ?? []
    guard parts.count == 2, parts[1].utf8.count == 6, let seconds = Int64(parts[0]), let rest = Int64(parts[1]),
      (0..<1_000_000_000_000).contains(seconds), rest >= 0
    else { return nil }
    return seconds * 1_000_000 + rest
  }

  private static func apply(_ record: ReactionRecord, _ connection: Connection) throws {
    let (channel, id) = (SQLValue.text(record.channel.rawValue), SQLValue.text(record.reaction.message.rawValue))
    let line = try connection.first("SELECT line FROM message WHERE channel = ? AND id = ?", channel, id) { $0.blob(0) }
    guard let line, case .message(var message) = try Record(line: line) else { return }
    let (key, user) = (record.reaction.emoji, record.reaction.by.id)
    var tallies = message.reactions
    let index = tallies.firstIndex { $0.key == key && $0.tone == record.tone } ?? tallies.count
    if index == tallies.count { tallies.append(ReactionTally(key: key, tone: record.tone)) }
    let before = tallies[index].users.count
    tallies[index].users.removeAll { $0 == user }
    if record.reaction.added { tallies[index].users.append(user) }
    tallies[index].count += tallies[index].users.count - before
    message.reactions = tallies.filter { $0.count > 0 }
    try connection.execute(
      "UPDATE message SET line = ? WHERE channel = ? AND id = ?", .blob(Record.message(message).line()), channel, id)
  }

  // MARK: Files

  private func takeFiles(of record: MessageRecord, from source: any RecordSource) async throws(FerryError) {
    for (index, attachment) in record.message.attachments.enumerated() where record.file(at: index).status == .present {
      guard let sha256 = attachment.sha256, let bytes = try await source.blob(sha256) else { continue }
      let id = SlackMessageJSON.fileID(record, index)
      let uploads = "\(folder)/__uploads"
      try DiskFile.makeFolder(uploads)
      try DiskFile.makeFolder("\(uploads)/\(id)")
      let path = "\(uploads)/\(id)/\(SlackMessageJSON.fileName(attachment))"
      let file = try DiskFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC)
      while let piece = try await bytes.next() { try file.write(piece) }
      state.withLock { $0.report.files += 1 }
    }
  }

  // MARK: Writing

  func finish() async throws(FerryError) -> SlackExport.Report {
    let (channels, people) = state.withLock { state in
      state.report.channels = state.channels.count
      state.report.people = state.people.count
      return (state.channels.values.sorted { $0.id < $1.id }, state.people.values.sorted { $0.id < $1.id })
    }
    let creator = people.first.map { SlackNames.id($0.id.rawValue, prefix: "U") } ?? "USLACKBOT"
    var names: Set<String> = []
    var lists: [String: [[UInt8]]] = ["channels": [], "groups": [], "dms": [], "mpims": []]
    for channel in channels {
      let id = SlackNames.id(channel.id.rawValue, prefix: "C")
      var name = SlackNames.plain(channel.name, else: id)
      if !names.insert(name).inserted { name = "\(name)-\(id.lowercased())" }
      names.insert(name)
      let list = ["private": "groups", "direct": "dms", "group": "mpims"][channel.type ?? ""] ?? "channels"
      let members = channel.members ?? people.map(\.id)
      let object = SlackMessageJSON.channel(channel, id: id, name: name, members: members, creator: creator)
      lists[list, default: []].append(object)
      try await writeDays(of: channel.id, into: list == "dms" ? id : name)
    }
    for (list, objects) in lists { try Self.write(objects, to: "\(folder)/\(list).json") }
    try Self.write(people.map(SlackMessageJSON.person), to: "\(folder)/users.json")
    try Self.write([], to: "\(folder)/integration_logs.json")
    return state.withLock { $0.report }
  }

  private func writeDays(of channel: ChannelID, into name: String) async throws(FerryError) {
    var after: Int64 = -1
    var day = ""
    var objects: [[UInt8]] = []
    var count = 0
    func flush() throws(FerryError) {
      guard !objects.isEmpty else { return }
      try DiskFile.makeFolder("\(folder)/\(name)")
      try Self.write(objects, to: "\(folder)/\(name)/\(day).json")
      objects = []
    }
    while true {
      let start = after
      let rows = try await database.read { connection in
        try connection.rows(
          "SELECT ts, line FROM message WHERE channel = ? AND ts > ? ORDER BY ts LIMIT 500", .text(channel.rawValue),
          .integer(start)
        ) { row in (row.integer(0), try Record(line: row.blob(1))) }
      }
      guard let last = rows.last else { break }
      after = last.0
      let threads = try await times(of: rows.compactMap { Self.root($0.1) }, in: channel)
      for (ts, record) in rows {
        let today = String(Timestamp(milliseconds: ts / 1000).iso8601.prefix(10))
        if today != day {
          try flush()
          day = today
        }
        if case .message = record { count += 1 }
        objects.append(SlackMessageJSON.message(record, ts: ts, root: Self.root(record).flatMap { threads[$0] }))
      }
    }
    try flush()
    state.withLock { $0.report.messages += count }
  }

  private static func root(_ record: Record) -> MessageID? {
    if case .message(let message) = record { message.thread ?? message.message.replyTo } else { nil }
  }

  private func times(of ids: [MessageID], in channel: ChannelID) async throws(FerryError) -> [MessageID: Int64] {
    guard !ids.isEmpty else { return [:] }
    return try await database.read { connection in
      var times: [MessageID: Int64] = [:]
      for id in Set(ids) {
        times[id] = try connection.first(
          "SELECT ts FROM message WHERE channel = ? AND id = ?", .text(channel.rawValue), .text(id.rawValue)
        ) { $0.integer(0) }
      }
      return times
    }
  }

  private static func write(_ objects: [[UInt8]], to path: String) throws(FerryError) {
    let file = try DiskFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC)
    var text: [UInt8] = [UInt8(ascii: "[")]
    for (index, object) in objects.enumerated() {
      text += index == 0 ? [0x0a] : [UInt8(ascii: ","), 0x0a]
      text += object
      if text.count > 256 << 10 {
        try file.write(text)
        text.removeAll(keepingCapacity: true)
      }
    }
    try file.write(text + [0x0a, UInt8(ascii: "]"), 0x0a])
  }
}
