package import FerryCore
import FerryRuntime

/// JSON Lines of messages, joins and leaves: a log from elsewhere, or what `ferry history --json` and `ferry tail --json`
/// print.
///
/// A line that cannot be understood becomes a `skipped` record with its place. Messages without an identifier get one
/// from the line and its number, so that reading again gives the same. Runs on a thread of its own.
package actor JSONLinesSource: RecordSource {
  private let path: String
  private let fields: Fields
  private let channel: ChannelID?
  private let reader: LineReader
  private let loop: LoopExecutor
  private let counter: CheckIndex
  private var channels: [ChannelID] = []
  private var people: Set<UserID> = []
  private var pending: [Record] = []
  private var notes: [CheckIndex.Note] = []
  private var hasEnded = false

  /// So many people are remembered as described; to describe one twice does no harm.
  private static let mostPeople = 50_000

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `channel` is where lines belong that name none: without it they are skipped.
  package init(_ path: String, channel: ChannelID?, fields: Fields = Fields()) throws(FerryError) {
    self.path = path
    self.fields = fields
    self.channel = channel
    let file = try DiskFile(path)
    reader = LineReader(OpenFile(size: try file.size()) { (limit) throws(FerryError) in try file.read(upTo: limit) })
    counter = try CheckIndex()
    loop = try LoopExecutor(name: "ferry-lines")
  }

  deinit { loop.stop() }

  package func blob(_ sha256: String) -> ByteStream? { nil }

  package func next(limit: Int) async throws(FerryError) -> [Record] {
    while pending.count < limit, !hasEnded { try await readLine() }
    let records = Array(pending.prefix(limit))
    pending.removeFirst(records.count)
    return records
  }

  private func readLine() async throws(FerryError) {
    guard try takeLine() else { return try await end() }
    if notes.count >= 4000 {
      try await counter.add(notes)
      notes = []
    }
  }

  /// False at the end of the file.
  private func takeLine() throws(FerryError) -> Bool {
    let place = "\(path), line \(reader.count + 1)"
    do throws(FerryError) {
      guard let line = try reader.next()?.bytes else { return false }
      guard line.contains(where: { ![0x20, 0x09, 0x0d].contains($0) }) else { return true }
      let (value, isLossy) = try Record.fields(line: line)
      try add(value.rest, isLossy: isLossy, line: line)
    } catch {
      guard error.code == .badData else { throw error }
      // A line that is too long has not been read to its end.
      if reader.isWithinLine { try reader.skipLine() }
      pending.append(.skipped(SkippedRecord(channel: channel, reason: error.message, place: place)))
    }
    return true
  }

  private func end() async throws(FerryError) {
    hasEnded = true
    try await counter.add(notes)
    for channel in channels {
      let count = try await counter.messages(in: channel)
      pending.append(.end(EndRecord(channel: channel, isComplete: true, messages: count)))
    }
  }

  // MARK: A line

  private func add(_ given: [String: JSONValue], isLossy: Bool, line: [UInt8]) throws(FerryError) {
    var members = given
    let kind = fields.take(.kind, from: &members)?.string ?? "message"
    let channel = try takeChannel(&members)
    let author = try takeAuthor(&members)
    guard let time = fields.take(.time, from: &members).flatMap(LooseTime.init) else {
      throw FerryError(.badData, "The field \"\(fields.name(.time))\" is missing or no time.")
    }
    let id = fields.take(.id, from: &members)?.text
    var records: [Record] = []
    switch kind {
    case "message", "action", "edit", "system":
      let id = MessageID(id ?? "\(Crypto.hex(Crypto.digest(.sha256, of: line).prefix(6)))-\(reader.count)")
      guard let author else { throw FerryError(.badData, "The field \"\(fields.name(.author))\" is missing.") }
      var record = try message(id, author, time, channel, &members)
      record.isAction = kind == "action"
      record.system = kind == "system" ? "" : nil
      record.isLossy = isLossy
      records.append(kind == "edit" ? .edit(record) : .message(record))
    case "join", "leave":
      guard let author else { throw FerryError(.badData, "The field \"\(fields.name(.author))\" is missing.") }
      let record = MembershipRecord(
        channel: channel, member: author, time: time.time, timeRaw: time.raw, precision: time.precision,
        attributes: Self.attributes(members))
      records.append(kind == "join" ? .join(record) : .leave(record))
    case "delete":
      guard let id else { throw FerryError(.badData, "The field \"\(fields.name(.id))\" is missing.") }
      records.append(.delete(DeleteRecord(channel: channel, id: MessageID(id), by: author, time: time.time)))
    case "reaction":
      guard let id, let author, let emoji = (members["emoji"] ?? members["key"])?.string else {
        throw FerryError(.badData, "A reaction needs a message, an author and an emoji.")
      }
      let reaction = Reaction(
        message: MessageID(id), by: author, emoji: emoji, added: members["on"]?.bool ?? true)
      records.append(.reaction(ReactionRecord(channel: channel, reaction: reaction, time: time.time)))
    case "typing", "read": throw FerryError(.badData, "Lines of the kind \"\(kind)\" are not kept.")
    default: throw FerryError(.badData, "There is no kind \"\(kind.prefix(40))\".")
    }
    begin(channel, author)
    for record in records {
      if case .message(let message) = record {
        notes.append(CheckIndex.note(of: message))
      }
    }
    pending += records
  }

  private func begin(_ channel: ChannelID, _ author: Author?) {
    if !channels.contains(channel) {
      channels.append(channel)
      pending.append(.channel(ChannelRecord(id: channel, name: channel.rawValue)))
    }
    if people.count > Self.mostPeople { people = [] }
    if let author, people.insert(author.id).inserted {
      pending.append(.person(PersonRecord(id: author.id, name: author.name)))
    }
  }

  private func takeChannel(_ members: inout [String: JSONValue]) throws(FerryError) -> ChannelID {
    let named = fields.take(.channel, from: &members)?.text
    let address = members.removeValue(forKey: "address")?.string.flatMap(Address.init)
    if let channel { return channel }
    if let named, !named.isEmpty { return ChannelID(named) }
    if let address { return address.channel }
    throw FerryError(.badData, "The line names no channel, and none was given for those.")
  }

  /// A name, or an object with `id` and `name`.
  private func takeAuthor(_ members: inout [String: JSONValue]) throws(FerryError) -> Author? {
    let id = fields.take(.authorID, from: &members)?.text
    switch fields.take(.author, from: &members) {
    case .object(let author)?:
      guard let id = id ?? author["id"]?.text else { throw FerryError(.badData, "The author has no \"id\".") }
      return Author(id: UserID(id), name: author["name"]?.string ?? id, avatar: author["avatar"]?.string)
    case let name?:
      guard let name = name.text else { throw FerryError(.badData, "The author is no name.") }
      return Author(id: UserID(id ?? name), name: name)
    case nil: return id.map { Author(id: UserID($0), name: $0) }
    }
  }

  private func message(
    _ id: MessageID, _ author: Author, _ time: LooseTime, _ channel: ChannelID, _ members: inout [String: JSONValue]
  ) throws(FerryError) -> MessageRecord {
    let text = fields.take(.text, from: &members)?.text ?? ""
    let format = fields.take(.format, from: &members)?.string.flatMap(TextFormat.init) ?? .plain
    var message = Message(id: id, author: author, text: text, format: format, time: time.time)
    if let edited = fields.take(.edited, from: &members).flatMap(LooseTime.init) {
      message.edited = edited.time
      message.revision = 1
    }
    message.replyTo = fields.take(.replyTo, from: &members)?.text.map { MessageID($0) }
    let thread = fields.take(.thread, from: &members)?.text.map { MessageID($0) }
    var rest = FieldReader(members)
    var files: [FileState] = []
    for var attachment in try rest.objects("attachments") {
      message.attachments.append(try attachment.attachment())
      files.append(FileState(status: .remote))
    }
    var extra = ExtraFields.none
    message.stamp = try rest.origin(&extra).stamp
    message.attributes = Self.attributes(rest.rest)
    return MessageRecord(
      channel: channel, message: message, precision: time.precision, timeRaw: time.raw, thread: thread, files: files)
  }

  private static func attributes(_ members: [String: JSONValue]) -> JSONValue? {
    let kept = members.filter { $0.value != .null }
    return kept.isEmpty ? nil : .object(kept)
  }
}
