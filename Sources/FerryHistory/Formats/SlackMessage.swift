import FerryCore

/// One object of a Slack export's day, as a record.
///
/// Only the fields that are needed are read, each as whatever it is: exports of every age and maker differ in the rest.
struct SlackMessage {
  /// What is known of the workspace while it is read.
  struct Context {
    var channel: ChannelID
    var people: [UserID: PersonRecord]
    var channels: [String: String]
    /// Which message of the channel shared a file: what comments on files answer.
    var sharers: [String: MessageID] = [:]
    /// Files whose bytes are in the export, by identifier: digest and size.
    var blobs: [String: (sha256: String, size: Int64)] = [:]
  }

  enum Outcome {
    case record(Record)
    /// And why, in words that are counted.
    case skipped(String)
  }

  /// Also remembers what later messages need, and whom nobody described.
  static func read(_ object: [String: JSONValue], _ context: inout Context, isLossy: Bool) -> Outcome {
    guard let ts = object["ts"]?.text, !ts.isEmpty else {
      return .skipped(
        object["mimetype"]?.string == "application/vnd.slack-docs" ? "a canvas, which is no message" : "no \"ts\"")
    }
    guard let time = LooseTime(.string(ts)) else { return .skipped("a \"ts\" that is no time") }
    let reader = SlackMessage(object: object, ts: ts, time: time, subtype: object["subtype"]?.string ?? "")
    let author = reader.author(&context)
    switch reader.subtype {
    case "channel_join", "group_join": return .record(.join(reader.membership(author, context)))
    case "channel_leave", "group_leave": return .record(.leave(reader.membership(author, context)))
    case "message_deleted":
      guard let id = object["deleted_ts"]?.text else { return .skipped("a deletion that does not say of what") }
      return .record(
        .delete(DeleteRecord(channel: context.channel, id: MessageID(id), by: author, time: time.time)))
    case "message_changed":
      guard let inner = object["message"]?.object,
        case .record(.message(var edit)) = read(inner, &context, isLossy: isLossy)
      else { return .skipped("an edit without its message") }
      if edit.message.edited == nil { edit.message.edited = time.time }
      edit.message.revision = max(edit.message.revision, 1)
      return .record(.edit(edit))
    default: return .record(.message(reader.message(author, &context, isLossy: isLossy)))
    }
  }

  private let object: [String: JSONValue]
  private let ts: String
  private let time: LooseTime
  private let subtype: String

  private func string(_ name: String) -> String? {
    guard let text = object[name]?.string, !text.isEmpty else { return nil }
    return text
  }

  // MARK: Who

  /// The first that is there; somebody whom no file describes becomes a placeholder.
  private func author(_ context: inout Context) -> Author {
    let room = subtype == "huddle_thread" ? object["room"]?["created_by"]?.string : nil
    let comment = object["comment"]?["user"]?.string
    let bot = string("bot_id")
    let candidates = [comment, room, string("user"), bot, object["file"]?["user"]?.string, string("username")]
    let id = candidates.lazy.compactMap { $0 }.first ?? "unknown"
    let user = UserID(id)
    let isBot = id == bot || comment == nil && room == nil && string("user") == nil && string("username") != nil
    let shown = isBot || bot != nil ? string("username") ?? object["bot_profile"]?["name"]?.string : nil
    if context.people[user] == nil {
      context.people[user] = PersonRecord(
        id: user, name: shown ?? placeholderName(id), type: isBot ? "bot" : id == "USLACKBOT" ? "bot" : "unknown")
    }
    let name = shown ?? context.people[user]?.name ?? id
    return Author(id: user, name: name, avatar: context.people[user]?.avatar)
  }

  private func placeholderName(_ id: String) -> String {
    if id == "USLACKBOT" || id == "B01" { return "Slackbot" }
    let profile = object["user_profile"]
    let names = ["display_name", "real_name", "name"].compactMap { profile?[$0]?.string }
    return names.first { !$0.isEmpty } ?? id
  }

  private func membership(_ member: Author, _ context: Context) -> MembershipRecord {
    MembershipRecord(
      channel: context.channel, member: member, time: time.time, timeRaw: time.raw, precision: time.precision)
  }

  // MARK: What

  private func message(_ author: Author, _ context: inout Context, isLossy: Bool) -> MessageRecord {
    let raw = rawText
    let text = SlackText(
      people: { [people = context.people] in people[UserID($0)]?.name },
      channels: { [channels = context.channels] in channels[$0] })
    let (plain, mentions) = text.plain(raw)
    var message = Message(id: MessageID(ts), author: author, text: plain, time: time.time, mentions: mentions)
    var record = MessageRecord(
      channel: context.channel, message: message, precision: time.precision, timeRaw: time.raw,
      textRaw: plain == raw ? nil : raw, isLossy: isLossy)
    if let thread = string("thread_ts"), thread != ts {
      record.thread = MessageID(thread)
      message.replyTo = MessageID(thread)
    }
    if let edited = object["edited"], let when = edited["ts"].flatMap(LooseTime.init) {
      message.edited = when.time
      message.revision = 1
      record.editedBy = edited["user"]?.string.map { UserID($0) }
    }
    addFiles(to: &message, &record, &context)
    record.reactions = reactions
    record.isAction = subtype == "me_message"
    record.isBroadcast = subtype == "thread_broadcast" || subtype == "reply_broadcast"
    record.isDeleted = subtype == "tombstone"
    if record.isDeleted {
      message.text = ""
      record.textRaw = nil
    }
    record.system = system
    if subtype == "file_comment", message.replyTo == nil, let file = object["file"]?["id"]?.string {
      message.replyTo = context.sharers[file]
    }
    message.attributes = attributes
    record.message = message
    return record
  }

  private var rawText: String {
    if subtype == "file_comment", let comment = object["comment"]?["comment"]?.string { return comment }
    if let text = string("text"), text.contains(where: { !$0.isWhitespace }) { return text }
    return SlackBlocks.text(of: object)
  }

  private static let said: Set<String> = [
    "", "file_share", "bot_message", "slackbot_response", "reminder_add", "me_message", "thread_broadcast",
    "reply_broadcast", "file_comment", "tombstone", "ekm_access_denied",
  ]

  /// What the service says itself, by one word.
  private var system: String? {
    switch subtype {
    case "huddle_thread", "sh_room_created": return "call"
    case "pinned_item": return "pinned"
    case "bot_add", "bot_remove": return subtype
    default:
      for prefix in ["channel_", "group_"] where subtype.hasPrefix(prefix) {
        let word = String(subtype.dropFirst(prefix.count))
        if ["topic", "purpose", "name", "archive", "unarchive"].contains(word) { return word }
      }
      return nil
    }
  }

  /// Of what is not understood everything is kept; else only what a message has beside its text.
  private var attributes: JSONValue? {
    var kept: [String: JSONValue] = [:]
    if !Self.said.contains(subtype) || subtype == "ekm_access_denied" { kept["subtype"] = .string(subtype) }
    if subtype == "huddle_thread" || subtype == "sh_room_created" { kept["room"] = object["room"] }
    if system == nil, !Self.said.contains(subtype) {
      kept = object.filter { !Self.understood.contains($0.key) }
    }
    return kept.isEmpty ? nil : .object(kept)
  }

  private static let understood: Set<String> = [
    "type", "ts", "user", "text", "thread_ts", "edited", "files", "file", "reactions", "user_profile", "blocks",
    "team", "client_msg_id",
  ]

  /// `clap::skin-tone-2` is a name and a tone.
  private var reactions: [ReactionTally] {
    (object["reactions"]?.array ?? []).compactMap { reaction in
      guard let name = reaction["name"]?.string else { return nil }
      var key = name
      var tone: Int?
      if let mark = name.firstRange(of: "::skin-tone-"), let number = Int(name[mark.upperBound...]) {
        key = String(name[..<mark.lowerBound])
        tone = number
      }
      let users = (reaction["users"]?.array ?? []).compactMap(\.string).map { UserID($0) }
      let count = reaction["count"]?.integer.flatMap { Int(exactly: $0) } ?? users.count
      return ReactionTally(key: key, tone: tone, users: users, count: max(count, 0))
    }
  }

  private func addFiles(to message: inout Message, _ record: inout MessageRecord, _ context: inout Context) {
    var files = object["files"]?.array ?? []
    if let file = object["file"], subtype != "file_comment" { files.append(file) }
    for file in files where file.object != nil {
      let (attachment, state) = Self.attachment(file, context)
      if let id = state.id, subtype != "file_comment", context.sharers.count < 100_000 {
        context.sharers[id] = MessageID(ts)
      }
      message.attachments.append(attachment)
      record.files.append(state)
    }
  }

  private static func attachment(_ file: JSONValue, _ context: Context) -> (Attachment, FileState) {
    let id = file["id"]?.string
    let thumbnail = file.object?.keys.filter { $0.hasPrefix("thumb_") }.sorted().compactMap { file[$0]?.string }
      .first { $0.hasPrefix("http") }
    let full = file["url_private_download"]?.string ?? file["url_private"]?.string
    // A path in the export itself is no link.
    let link = (full ?? thumbnail).flatMap { $0.hasPrefix("http") ? SlackSecrets.link($0) : nil }
    var attachment = Attachment(
      name: file["name"]?.string ?? file["title"]?.string ?? id ?? "file",
      mediaType: file["mimetype"]?.string ?? "application/octet-stream",
      size: file["size"]?.integer.flatMap { $0 >= 0 ? $0 : nil }, reference: link.map { .url($0) } ?? .provider(""))
    if let width = file["original_w"]?.integer, let height = file["original_h"]?.integer {
      attachment.pixels = Attachment.Pixels(width: Int(clamping: width), height: Int(clamping: height))
    }
    var state = FileState(id: id, status: status(file))
    if full == nil, thumbnail != nil { state.extra = ["thumbnail": .bool(true)] }
    if let id, let blob = context.blobs[id] {
      state.status = .present
      attachment.sha256 = blob.sha256
      attachment.size = blob.size
    }
    return (attachment, state)
  }

  private static func status(_ file: JSONValue) -> FileState.Status {
    switch (file["mode"]?.string, file["file_access"]?.string) {
    case ("tombstone", _): .deleted
    case ("hidden_by_limit", _): .hidden
    case (_, "access_denied"): .refused
    case (_, "file_not_found"): .deleted
    default: .remote
    }
  }
}
