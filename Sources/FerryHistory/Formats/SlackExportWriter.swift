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
    /// Who has come or written, and not gone since; for channels that do not tell their members.
    var seen: [ChannelID: Set<UserID>] = [:]

    mutating func meet(_ author: Author, in channel: ChannelID) {
      // Who is known by a number alone may have a name yet.
      if people[author.id] == nil || people[author.id]?.name == author.id.rawValue {
        people[author.id] = PersonRecord(id: author.id, name: author.name, type: people[author.id]?.type)
      }
      seen[channel, default: []].insert(author.id)
    }

    /// Importers look up everybody who is named anywhere.
    mutating func name(_ user: UserID) {
      if people[user] == nil { people[user] = PersonRecord(id: user, name: user.rawValue) }
    }
  }

  private let folder: String
  private let scratch: ScratchFolder
  let database: Database
  private let state = Locked(State())

  init(_ folder: String) throws(FerryError) {
    self.folder = folder
    scratch = try ScratchFolder()
    database = try Database(
      path: "\(scratch.path)/slack.db",
      migrations: [
        """
        CREATE TABLE message (
          channel TEXT NOT NULL, ts INTEGER NOT NULL, id TEXT, line BLOB NOT NULL, author TEXT, reply TEXT, root INTEGER,
          PRIMARY KEY (channel, ts)
        ) WITHOUT ROWID;
        CREATE UNIQUE INDEX message_id ON message (channel, id);
        CREATE INDEX message_reply ON message (channel, ts) WHERE reply IS NOT NULL;
        CREATE INDEX message_root ON message (channel, root) WHERE root IS NOT NULL;
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
        state.meet(message.message.author, in: message.channel)
        for tally in message.reactions { for user in tally.users { state.name(user) } }
        if !message.isDeleted { return true }
        state.report.dropped["deleted message", default: 0] += 1
      case .join(let membership), .leave(let membership):
        state.meet(membership.member, in: membership.channel)
        if case .leave = record { state.seen[membership.channel]?.remove(membership.member.id) }
        return membership.time != nil
      case .reaction(let reaction):
        state.name(reaction.reaction.by.id)
        return true
      case .delete: return true
      case .read, .gap, .skipped, .unknown: state.report.dropped[record.kind, default: 0] += 1
      case .end: break
      }
      return false
    }
  }

  /// What it answers: the first message of the thread, as far as that is told.
  private static func root(_ message: MessageRecord) -> MessageID? { message.thread ?? message.message.replyTo }

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
        "UPDATE message SET line = ?, reply = ? WHERE channel = ? AND id = ?", .blob(Record.message(message).line()),
        SQLValue(root(message)?.rawValue), .text(message.channel.rawValue), .text(message.message.id.rawValue))
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
    var author: UserID?
    var reply: MessageID?
    switch record {
    case .message(let message):
      author = message.message.author.id
      reply = root(message)
    default: break
    }
    try connection.execute(
      "INSERT INTO message(channel, ts, id, line, author, reply) VALUES (?, ?, ?, ?, ?, ?)", room, .integer(ts),
      SQLValue(id?.rawValue), .blob(record.line()), SQLValue(author?.rawValue), SQLValue(reply?.rawValue))
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

  func note(_ count: Int, lostAs what: String) { state.withLock { $0.report.dropped[what, default: 0] += count } }

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
    var gathered = state.withLock { $0 }
    let channels = gathered.channels.values.sorted { $0.id < $1.id }
    var members: [ChannelID: [UserID]] = [:]
    for channel in channels {
      members[channel.id] = channel.members ?? (gathered.seen[channel.id] ?? []).sorted()
      for user in members[channel.id] ?? [] { gathered.name(user) }
    }
    let people = gathered.people.values.sorted { $0.id < $1.id }
    state.withLock { state in
      state.report.channels = channels.count
      state.report.people = people.count
    }
    var names = SlackNames.Taken()
    var lists: [String: [[UInt8]]] = ["channels": [], "groups": [], "dms": [], "mpims": []]
    for channel in channels {
      let id = SlackNames.id(channel.id.rawValue, prefix: "C")
      let inside = members[channel.id] ?? []
      let list = Self.list(of: channel, inside.count)
      // A conversation of two has no name, and lies under its identifier.
      let name = list == "dms" ? nil : names.take(channel.name, id)
      let creator = (inside.first ?? people.first?.id).map { SlackNames.id($0.rawValue, prefix: "U") } ?? "USLACKBOT"
      let object = SlackMessageJSON.channel(channel, id: id, name: name, members: inside, creator: creator)
      lists[list, default: []].append(object)
      try await findThreads(in: channel.id)
      try await writeDays(of: channel, into: name ?? id)
    }
    for (list, objects) in lists { try Self.write(objects, to: "\(folder)/\(list).json") }
    var users = SlackNames.Taken(SlackNames.reserved)
    let objects = people.map { person in
      let id = SlackNames.id(person.id.rawValue, prefix: "U")
      let name = person.name.isEmpty ? person.id.rawValue : person.name
      return SlackMessageJSON.person(person, id: id, username: users.take(name, id))
    }
    try Self.write(objects, to: "\(folder)/users.json")
    try Self.write([], to: "\(folder)/integration_logs.json")
    return state.withLock { $0.report }
  }

  /// Importers take conversations of exactly two, and groups of up to eight.
  private static func list(of channel: ChannelRecord, _ members: Int) -> String {
    switch channel.type {
    case "private": "groups"
    case "direct" where members == 2: "dms"
    case "direct" where (3...8).contains(members), "group" where (2...8).contains(members): "mpims"
    case "direct", "group": "groups"
    default: "channels"
    }
  }

  private func writeDays(of described: ChannelRecord, into name: String) async throws(FerryError) {
    let channel = described.id
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
          "SELECT ts, line, root FROM message WHERE channel = ? AND ts > ? ORDER BY ts LIMIT 500",
          .text(channel.rawValue), .integer(start)
        ) { row in (ts: row.integer(0), record: try Record(line: row.blob(1)), root: row.optionalInteger(2)) }
      }
      guard let last = rows.last else { break }
      after = last.ts
      let threads = try await threads(of: rows.map { ($0.ts, $0.root) }, in: channel)
      for row in rows {
        let today = String(Timestamp(milliseconds: row.ts / 1000).iso8601.prefix(10))
        if today != day {
          try flush()
          day = today
        }
        if case .message = row.record { count += 1 }
        objects.append(SlackMessageJSON.message(row.record, ts: row.ts, thread: threads[row.ts]))
      }
    }
    if day.isEmpty {
      // Importers list the folder of every channel.
      let time = described.created ?? Timestamp(milliseconds: 0)
      try DiskFile.makeFolder("\(folder)/\(name)")
      try Self.write([], to: "\(folder)/\(name)/\(time.iso8601.prefix(10)).json")
    }
    try flush()
    state.withLock { $0.report.messages += count }
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
