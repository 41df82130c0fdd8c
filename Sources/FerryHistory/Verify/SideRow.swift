import FerryCore

/// One record of a side as it is kept in its table: numbers that stand for what is compared, and the text.
struct SideRow {
  enum Kind: Int64 { case message, join, leave, read }

  struct Flags: OptionSet {
    let rawValue: Int64
    static let deleted = Flags(rawValue: 1)
    static let action = Flags(rawValue: 2)
    static let broadcast = Flags(rawValue: 4)
    static let system = Flags(rawValue: 8)
    /// The source names no zone of its times.
    static let zoneAssumed = Flags(rawValue: 16)
    /// The author's name was taken off the front of the text.
    static let prefixed = Flags(rawValue: 32)
    static let markdown = Flags(rawValue: 64)
    /// Neither plain nor Markdown.
    static let foreignFormat = Flags(rawValue: 128)
    static let converted = Flags(rawValue: 256)
    static let threaded = Flags(rawValue: 512)
    static let formats: Flags = [.markdown, .foreignFormat]
  }

  /// The place in the side's order, from 1.
  var ordinal = 0
  /// The record's number in the stream: the later one of the same id wins.
  var seq: Int64 = 0
  var kind = Kind.message
  /// Of kind, author and exact text.
  var key: Int64 = 0
  var time: Int64 = 0
  var channel: Int64 = 0
  /// Of channel and id.
  var own: Int64 = 0
  var id = ""
  var author: Int64 = 0
  var authorID: Int64 = 0
  var flags: Flags = []
  /// Milliseconds in the unit of its time.
  var unit: Int64 = 1
  var edited: Int64?
  var revision: Int64 = 0
  /// How many texts it had before this one, as far as the side tells them.
  var earlier: Int64 = 0
  /// Of channel and id of what it is a copy of, and the account.
  var origin: Int64?
  var originAccount: Int64 = 0
  var part: Int64 = 0
  var reply: Int64?
  var files = ""
  var reactions: Int64 = 0
  var reactors: Int64 = 0
  var mentions: Int64 = 0
  /// Everything that is only compared where nothing may change.
  var rest: Int64 = 0
  var body = ""
}

/// An attachment as it is compared.
struct SideFile: Hashable {
  var name: String
  var size: Int64?
  var sha256: String?
  var status: String?

  /// Whether the side has, or names, its bytes.
  var isThere: Bool { status == nil || status == "present" || (status == "remote" && sha256 != nil) }

  static func text(of record: MessageRecord) -> String {
    guard !record.message.attachments.isEmpty else { return "" }
    return record.message.attachments.enumerated().map { index, file in
      let name = String(String.UnicodeScalarView(file.name.unicodeScalars.filter { $0.value > 0x1f }))
      return [
        file.sha256 ?? "", file.size.map { String($0) } ?? "", record.file(at: index).status?.rawValue ?? "", name,
      ]
      .joined(separator: "\u{1f}")
    }.joined(separator: "\u{1e}")
  }

  static func read(_ text: String) -> [SideFile] {
    guard !text.isEmpty else { return [] }
    return text.split(separator: "\u{1e}", omittingEmptySubsequences: false).map { file in
      let fields = file.split(separator: "\u{1f}", maxSplits: 3, omittingEmptySubsequences: false).map { String($0) }
      func field(_ index: Int) -> String? {
        fields.indices.contains(index) && !fields[index].isEmpty ? fields[index] : nil
      }
      return SideFile(name: field(3) ?? "", size: field(1).flatMap { Int64($0) }, sha256: field(0), status: field(2))
    }
  }
}

extension SideRow {
  /// A message, as `side` tells it. `own` names are made of the channel and the id, which are unique together.
  init(_ record: MessageRecord, on side: VerifySide, stripsPrefix: Bool) {
    let message = record.message
    id = message.id.rawValue
    own = Self.name(record.channel, message.id)
    channel = TextForm.hash(record.channel.rawValue)
    time = message.time.milliseconds
    unit = record.precision.unit
    authorID = TextForm.hash(message.author.id.rawValue)
    author = TextForm.hash(side.person(message.author))
    body = record.isDeleted ? "" : message.text
    if stripsPrefix, let (name, text) = TextForm.prefixed(body) {
      author = TextForm.hash(side.person(Author(id: UserID(name), name: name)))
      body = text
      flags.insert(.prefixed)
    }
    rekey()
    if record.isDeleted { flags.insert(.deleted) }
    if record.isAction { flags.insert(.action) }
    if record.isBroadcast { flags.insert(.broadcast) }
    if record.system != nil { flags.insert(.system) }
    if record.thread != nil { flags.insert(.threaded) }
    if record.zone?.hasPrefix("assumed:") == true { flags.insert(.zoneAssumed) }
    if record.formatName != nil { flags.insert(.foreignFormat) }
    if record.formatName == nil, message.format == .markdown { flags.insert(.markdown) }
    if record.textRaw != nil { flags.insert(.converted) }
    edited = message.edited?.milliseconds
    revision = Int64(message.revision)
    if let stamp = message.stamp {
      origin = Self.name(stamp.origin.channel, stamp.id)
      originAccount = TextForm.hash(stamp.origin.account.rawValue)
      part = Int64(stamp.part)
    }
    reply = message.replyTo.map { Self.name(record.channel, $0) }
    files = record.isDeleted ? "" : SideFile.text(of: record)
    for tally in record.reactions {
      add(reaction: tally.key, tone: tally.tone, count: Int64(tally.count))
      for user in tally.users { add(reactor: user, tally.key, tally.tone, 1) }
    }
    mentions = message.mentions.reduce(0) { $0 &+ TextForm.hash($1.rawValue) }
    var hasher = Hasher()
    hasher.combine(record.system)
    hasher.combine(record.formatName)
    hasher.combine(record.timeRaw)
    hasher.combine(record.zone)
    hasher.combine(record.textRaw)
    hasher.combine(record.editedBy)
    hasher.combine(record.message.attributes)
    rest = Int64(hasher.finalize()) &+ (record.thread.map { Self.name(record.channel, $0) } ?? 0)
  }

  init(_ record: MembershipRecord, _ kind: Kind, on side: VerifySide) {
    self.kind = kind
    channel = TextForm.hash(record.channel.rawValue)
    author = TextForm.hash(side.person(record.member))
    authorID = TextForm.hash(record.member.id.rawValue)
    time = record.time?.milliseconds ?? 0
    unit = record.precision.unit
    rekey()
  }

  init(_ record: ReadRecord, on side: VerifySide) {
    kind = .read
    channel = TextForm.hash(record.channel.rawValue)
    author = record.mark.by.map { TextForm.hash(side.person($0)) } ?? 0
    reply = Self.name(record.channel, record.mark.upTo)
    time = record.time?.milliseconds ?? 0
    body = record.mark.state.rawValue
    rekey()
  }

  mutating func rekey() { key = Self.key(kind, author, body) }

  static func key(_ kind: Kind, _ author: Int64, _ text: String) -> Int64 { TextForm.hash(text, kind.rawValue, author) }

  static func name(_ channel: ChannelID, _ id: MessageID) -> Int64 {
    TextForm.hash(id.rawValue, TextForm.hash(channel.rawValue))
  }

  mutating func add(reaction key: String, tone: Int?, count: Int64) {
    reactions &+= TextForm.hash(key, Int64(tone ?? 0)) &* count
  }

  mutating func add(reactor: UserID, _ key: String, _ tone: Int?, _ count: Int64) {
    reactors &+= TextForm.hash(key, Int64(tone ?? 0), TextForm.hash(reactor.rawValue)) &* count
  }
}
