import FerryCore
import FerryRuntime

extension Record {
  /// A message's line as `line(seq:)` writes most of them, read without a tree of it.
  ///
  /// Takes what is plainly right. For whatever it returns nil, wrong or only rare, the usual way has the word.
  static func quick(line: [UInt8]) -> (seq: Int64?, record: Record)? {
    line.withUnsafeBufferPointer { bytes in
      do throws(JSONReader.Fault) {
        var line = QuickLine(bytes)
        try line.read()
        return line.result
      } catch {
        return nil
      }
    }
  }
}

private struct QuickLine {
  private var json: JSONReader
  private var seq: Int64?
  private var kind: String?
  private var channel: String?
  private var id: String?
  private var author: Author?
  private var text: String?
  private var format: TextFormat?
  private var time: Timestamp?
  private var precision: TimePrecision?
  private var edited: (time: Timestamp?, by: String?, revision: Int)?
  private var replyTo: String?
  private var mentions: [UserID] = []
  private var stamp: Stamp?
  /// Of the members that may be null or empty, which came already: a bit each.
  private var seen = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { json = JSONReader(bytes) }

  private static let other = JSONReader.Fault(offset: 0, reason: "this is read in the usual way")

  var result: (seq: Int64?, record: Record)? {
    guard let channel, let id, let author, let time, !json.isLossy, kind == "message" || kind == "edit" else {
      return nil
    }
    var message = Message(
      id: MessageID(id), author: author, text: text ?? "", format: format ?? .plain, time: time,
      replyTo: replyTo.map { MessageID($0) }, mentions: mentions, stamp: stamp)
    if let edited {
      message.edited = edited.time
      message.revision = edited.revision
    }
    let record = MessageRecord(
      channel: ChannelID(channel), message: message, precision: precision ?? .milliseconds,
      editedBy: edited?.by.map { UserID($0) })
    return (seq, kind == "message" ? .message(record) : .edit(record))
  }

  mutating func read() throws(JSONReader.Fault) {
    try json.enterObject()
    while let name = try json.nextName() {
      switch name {
      case "seq":
        try once(seq == nil)
        seq = try number()
      case "kind":
        try once(kind == nil)
        kind = try word()
        guard kind == "message" || kind == "edit" else { throw Self.other }
      case "channel":
        try once(channel == nil)
        channel = try identifier()
      case "id":
        try once(id == nil)
        id = try identifier()
      case "author":
        try once(author == nil)
        try readAuthor()
      case "text":
        try once(text == nil)
        text = try word()
      case "format":
        try once(format == nil)
        guard let known = TextFormat(rawValue: try word()) else { throw Self.other }
        format = known
      case "time":
        try once(time == nil)
        time = try moment()
      case "precision":
        try once(precision == nil)
        guard let known = TimePrecision(rawValue: try word()) else { throw Self.other }
        precision = known
      case "edited":
        try once(bit: 1)
        if try !null() { try readEdited() }
      case "reply_to":
        try once(bit: 2)
        if try !null() { replyTo = try word() }
      case "origin":
        try once(bit: 4)
        if try !null() { try readOrigin() }
      case "mentions":
        try once(bit: 8)
        try json.enterList()
        while try json.nextElement() { mentions.append(UserID(try word())) }
      case "attachments":
        try once(bit: 16)
        try readNothing()
      case "reactions":
        try once(bit: 32)
        try readNothing()
      default: throw Self.other
      }
    }
    try json.end()
  }

  /// An empty list.
  private mutating func readNothing() throws(JSONReader.Fault) {
    try json.enterList()
    guard try !json.nextElement() else { throw Self.other }
  }

  private mutating func readAuthor() throws(JSONReader.Fault) {
    var id: String?
    var name: String?
    var avatar: String?
    try json.enterObject()
    while let member = try json.nextName() {
      switch member {
      case "id":
        try once(id == nil)
        id = try word()
      case "name":
        try once(name == nil)
        name = try word()
      case "avatar":
        try once(avatar == nil)
        avatar = try word()
      default: throw Self.other
      }
    }
    guard let id else { throw Self.other }
    author = Author(id: UserID(id), name: name ?? "", avatar: avatar)
  }

  private mutating func readEdited() throws(JSONReader.Fault) {
    var time: Timestamp?
    var by: String?
    var revision: Int?
    try json.enterObject()
    while let member = try json.nextName() {
      switch member {
      case "time":
        try once(time == nil)
        time = try moment()
      case "by":
        try once(by == nil)
        by = try word()
      case "revision":
        try once(revision == nil)
        revision = try count()
      default: throw Self.other
      }
    }
    edited = (time, by, revision ?? 1)
  }

  private mutating func readOrigin() throws(JSONReader.Fault) {
    var address: Address?
    var bridge: String?
    var id: String?
    var revision: Int?
    try json.enterObject()
    while let member = try json.nextName() {
      switch member {
      case "address":
        try once(address == nil)
        guard let known = Address(try word()) else { throw Self.other }
        address = known
      case "bridge":
        try once(bridge == nil)
        bridge = try word()
      case "id":
        try once(id == nil)
        id = try identifier()
      case "revision":
        try once(revision == nil)
        revision = try count()
      default: throw Self.other
      }
    }
    guard let address, let id else { throw Self.other }
    stamp = Stamp(bridge: BridgeName(bridge ?? ""), origin: address, id: MessageID(id), revision: revision ?? 0)
  }

  // MARK: Values

  private func once(_ isFirst: Bool) throws(JSONReader.Fault) {
    guard isFirst else { throw Self.other }
  }

  private mutating func once(bit: Int) throws(JSONReader.Fault) {
    guard seen & bit == 0 else { throw Self.other }
    seen |= bit
  }

  private mutating func null() throws(JSONReader.Fault) -> Bool {
    guard json.isAtNull else { return false }
    _ = try json.value()
    return true
  }

  private mutating func word() throws(JSONReader.Fault) -> String {
    guard let text = try json.text() else { throw Self.other }
    return text
  }

  private mutating func identifier() throws(JSONReader.Fault) -> String {
    let text = try word()
    guard !text.isEmpty else { throw Self.other }
    return text
  }

  private mutating func number() throws(JSONReader.Fault) -> Int64 {
    guard let number = try json.integer(), number.magnitude < 1 << 53 else { throw Self.other }
    return number
  }

  private mutating func count() throws(JSONReader.Fault) -> Int {
    guard let count = Int(exactly: try number()), count >= 0 else { throw Self.other }
    return count
  }

  private mutating func moment() throws(JSONReader.Fault) -> Timestamp {
    guard let time = Timestamp(rfc3339: try word()) else { throw Self.other }
    return time
  }
}
