package import FerryCore
import FerryRuntime

extension Record {
  /// The longest line that is read, in bytes.
  package static let longestLine = 16 << 20

  /// Reads a line, without its end. `badData` says what is wrong and at which byte; the caller names file and line.
  package init(line: [UInt8]) throws(FerryError) { self = try Self.read(line: line).record }

  /// Reads a line with its number in the log, where it has one.
  package static func read(line: [UInt8]) throws(FerryError) -> (seq: Int64?, record: Record) {
    if let read = quick(line: line) { return read }
    var fields = try Self.fields(line: line)
    let seq = try fields.reader.integer("seq")
    return (seq, try Record(&fields.reader, isLossy: fields.isLossy))
  }

  static func fields(line: [UInt8]) throws(FerryError) -> (reader: FieldReader, isLossy: Bool) {
    guard line.count <= longestLine else {
      throw FerryError(.badData, "The line is longer than \(longestLine >> 20) MiB.")
    }
    let value: JSONValue
    let isLossy: Bool
    do throws(JSONReader.Fault) {
      (value, isLossy) = try JSONReader.read(line)
    } catch {
      throw FerryError(.badData, "The line is not JSON that can be read: byte \(error.offset): \(error.reason).")
    }
    guard let members = value.object else { throw FerryError(.badData, "The line is not a JSON object.") }
    return (FieldReader(members), isLossy)
  }

  init(_ fields: inout FieldReader, isLossy: Bool) throws(FerryError) {
    let kind = try fields.needString("kind")
    switch kind {
    case "message": self = .message(try MessageRecord(&fields, isLossy: isLossy))
    case "edit": self = .edit(try MessageRecord(&fields, isLossy: isLossy))
    case "channel": self = .channel(try ChannelRecord(&fields))
    case "person": self = .person(try PersonRecord(&fields))
    case "delete": self = .delete(try DeleteRecord(&fields))
    case "reaction": self = .reaction(try ReactionRecord(&fields))
    case "join": self = .join(try MembershipRecord(&fields))
    case "leave": self = .leave(try MembershipRecord(&fields))
    case "read": self = .read(try ReadRecord(&fields))
    case "gap": self = .gap(try GapRecord(&fields))
    case "skipped": self = .skipped(try SkippedRecord(&fields))
    case "end": self = .end(try EndRecord(&fields))
    default: self = .unknown(kind: kind, .object(fields.rest))
    }
  }
}

extension MessageRecord {
  init(_ fields: inout FieldReader, isLossy: Bool) throws(FerryError) {
    var extra = ExtraFields.none
    let channel = ChannelID(try fields.needID("channel"))
    let id = MessageID(try fields.needID("id"))
    guard let author = try fields.author(&extra) else { throw FieldReader.missing("author") }
    let format = try fields.string("format") ?? TextFormat.plain.rawValue
    var message = Message(
      id: id, author: author, text: try fields.string("text") ?? "", format: TextFormat(rawValue: format) ?? .plain,
      time: try fields.needTime("time"))
    var editedBy: UserID?
    if var edited = try fields.object("edited") {
      message.edited = try edited.time("time")
      editedBy = try edited.string("by").map { UserID($0) }
      message.revision = try edited.count("revision") ?? 1
      extra.edited = edited.rest
    }
    var files: [FileState] = []
    for var attachment in try fields.objects("attachments") {
      message.attachments.append(try attachment.attachment())
      files.append(try attachment.fileState())
    }
    message.replyTo = try fields.string("reply_to").map { MessageID($0) }
    message.mentions = try fields.users("mentions") ?? []
    let origin = try fields.origin(&extra)
    message.stamp = origin.stamp
    message.attributes = fields.take("attributes")
    var reactions: [ReactionTally] = []
    for var tally in try fields.objects("reactions") { reactions.append(try ReactionTally(&tally)) }
    self.init(
      channel: channel, message: message, precision: try fields.precision(), timeRaw: try fields.string("time_raw"),
      zone: try fields.string("zone"), textRaw: try fields.string("text_raw"),
      formatName: TextFormat(rawValue: format) == nil ? format : nil,
      thread: try fields.string("thread").map { MessageID($0) }, isDeleted: try fields.bool("deleted") ?? false,
      system: try fields.string("system"), isAction: try fields.bool("action") ?? false,
      isBroadcast: try fields.bool("broadcast") ?? false, editedBy: editedBy, reactions: reactions,
      files: files.contains { $0 != FileState() } ? files : [], parts: origin.parts,
      isLossy: try fields.bool("lossy") ?? isLossy)
    extra.record = fields.rest
    self.extra = extra
  }
}

extension ReactionTally {
  init(_ fields: inout FieldReader) throws(FerryError) {
    let key = try fields.needString("key")
    let tone = try fields.count("tone")
    let users = try fields.users("users") ?? []
    let count = try fields.count("count")
    self.init(key: key, tone: tone, users: users, count: count, extra: fields.rest)
  }
}

extension ChannelRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    let id = ChannelID(try fields.needID("channel"))
    self.init(
      id: id, name: try fields.string("name") ?? id.rawValue, type: try fields.string("type"),
      topic: try fields.string("topic"), members: try fields.users("members"), created: try fields.time("created"),
      attributes: fields.take("attributes"))
    extra.record = fields.rest
  }
}

extension PersonRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    self.init(
      id: UserID(try fields.needString("id")), name: try fields.string("name") ?? "", type: try fields.string("type"),
      avatar: try fields.string("avatar"), attributes: fields.take("attributes"))
    extra.record = fields.rest
  }
}

extension DeleteRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    var extra = ExtraFields.none
    self.init(
      channel: ChannelID(try fields.needID("channel")), id: MessageID(try fields.needID("id")),
      by: try fields.author(&extra), time: try fields.time("time"), stamp: try fields.origin(&extra).stamp)
    extra.record = fields.rest
    self.extra = extra
  }
}

extension ReactionRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    var extra = ExtraFields.none
    let channel = ChannelID(try fields.needID("channel"))
    guard let author = try fields.author(&extra) else { throw FieldReader.missing("author") }
    let reaction = Reaction(
      message: MessageID(try fields.needID("id")), by: author, emoji: try fields.needString("key"),
      added: try fields.bool("on") ?? true, stamp: try fields.origin(&extra).stamp)
    self.init(channel: channel, reaction: reaction, tone: try fields.count("tone"), time: try fields.time("time"))
    extra.record = fields.rest
    self.extra = extra
  }
}

extension MembershipRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    var extra = ExtraFields.none
    let channel = ChannelID(try fields.needID("channel"))
    guard let member = try fields.author(&extra) else { throw FieldReader.missing("author") }
    self.init(
      channel: channel, member: member, time: try fields.time("time"), timeRaw: try fields.string("time_raw"),
      precision: try fields.precision(), stamp: try fields.origin(&extra).stamp, attributes: fields.take("attributes"))
    extra.record = fields.rest
    self.extra = extra
  }
}

extension ReadRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    var extra = ExtraFields.none
    let channel = ChannelID(try fields.needID("channel"))
    let state = try fields.string("state") ?? ReadMark.State.read.rawValue
    guard let state = ReadMark.State(rawValue: state) else { throw FieldReader.wrong("state", "delivered or read") }
    let mark = ReadMark(
      upTo: MessageID(try fields.needID("id")), by: try fields.author(&extra), state: state,
      stamp: try fields.origin(&extra).stamp)
    self.init(channel: channel, mark: mark, time: try fields.time("time"))
    extra.record = fields.rest
    self.extra = extra
  }
}

extension GapRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    self.init(
      channel: ChannelID(try fields.needID("channel")), from: try fields.needTime("from"),
      to: try fields.needTime("to"), reason: try fields.string("reason") ?? "")
    extra.record = fields.rest
  }
}

extension SkippedRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    self.init(
      channel: try fields.string("channel").map { ChannelID($0) }, reason: try fields.string("reason") ?? "",
      count: try fields.count("count") ?? 1, place: try fields.string("place"))
    extra.record = fields.rest
  }
}

extension EndRecord {
  init(_ fields: inout FieldReader) throws(FerryError) {
    let channel = ChannelID(try fields.needID("channel"))
    guard let messages = try fields.count("messages") else { throw FieldReader.missing("messages") }
    self.init(channel: channel, isComplete: try fields.bool("complete") ?? false, messages: messages)
    extra.record = fields.rest
  }
}

extension FieldReader {
  mutating func author(_ extra: inout ExtraFields) throws(FerryError) -> Author? {
    guard var fields = try object("author") else { return nil }
    let author = Author(
      id: UserID(try fields.needString("id")), name: try fields.string("name") ?? "",
      avatar: try fields.string("avatar"))
    extra.author = fields.rest
    return author
  }

  mutating func precision() throws(FerryError) -> TimePrecision {
    guard let text = try string("precision") else { return .milliseconds }
    guard let precision = TimePrecision(rawValue: text) else {
      throw Self.wrong("precision", "one of us, ms, s, min and day")
    }
    return precision
  }

  mutating func origin(_ extra: inout ExtraFields) throws(FerryError) -> (stamp: Stamp?, parts: Int?) {
    guard var fields = try object("origin") else { return (nil, nil) }
    var part = 0
    var parts: Int?
    if let numbers = try fields.array("part") {
      guard (1...2).contains(numbers.count), let number = numbers[0].integer, (1...(1 << 53)).contains(number)
      else { throw Self.wrong("part", "the number of a part and the count of parts") }
      part = Int(number) - 1
      parts = numbers.dropFirst().first?.integer.map { Int(clamping: $0) }
    }
    var stamp: Stamp?
    if let text = try fields.string("address") {
      guard let address = Address(text) else { throw Self.wrong("address", "an address such as account:channel") }
      stamp = Stamp(
        bridge: BridgeName(try fields.string("bridge") ?? ""), origin: address, id: MessageID(try fields.needID("id")),
        revision: try fields.count("revision") ?? 0, part: part)
    }
    extra.origin = fields.rest
    return (stamp, parts)
  }

  mutating func attachment() throws(FerryError) -> Attachment {
    var reference = AttachmentReference.provider(try string("reference") ?? "")
    if let url = try string("url") { reference = .url(url) }
    var attachment = Attachment(
      name: try string("name") ?? "", mediaType: try string("type") ?? "application/octet-stream",
      size: try integer("size"), sha256: try string("sha256"), reference: reference)
    if let width = try count("width"), let height = try count("height") {
      attachment.pixels = Attachment.Pixels(width: width, height: height)
    }
    return attachment
  }

  /// Of an attachment whose other fields are taken already.
  mutating func fileState() throws(FerryError) -> FileState {
    let id = try string("id")
    var state = FileState(id: id)
    if let text = try string("status") {
      state.status = FileState.Status(rawValue: text)
      // A newer version's word is kept like an unknown field.
      if state.status == nil { return FileState(id: id, extra: rest.merging(["status": .string(text)]) { $1 }) }
    }
    state.extra = rest
    return state
  }
}
