import FerryCore
import FerryRuntime

/// Records as the objects of a Slack export.
enum SlackMessageJSON {
  private static let team = "T00000000"

  static func channel(
    _ channel: ChannelRecord, id: String, name: String?, members: [UserID], creator: String
  ) -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    json.member("id", id)
    json.member("name", name)
    json.name("created")
    json.value((channel.created?.milliseconds ?? 1000) / 1000)
    json.member("creator", creator)
    json.name("is_archived")
    json.value(false)
    json.name("is_general")
    json.value(false)
    json.name("members")
    json.value(.array(members.map { .string(SlackNames.id($0.rawValue, prefix: "U")) }))
    for name in ["topic", "purpose"] {
      json.name(escaping: name)
      json.begin()
      json.member("value", name == "topic" ? channel.topic ?? "" : "")
      json.member("creator", creator)
      json.name("last_set")
      json.value(0 as Int64)
      json.end()
    }
    json.end()
    return json.utf8
  }

  /// `username` is nobody else's: people are told apart by it.
  static func person(_ person: PersonRecord, id: String, username: String) -> [UInt8] {
    let name = person.name.isEmpty ? person.id.rawValue : person.name
    var json = JSONWriter()
    json.begin()
    json.member("id", id)
    json.member("team_id", team)
    json.member("name", username)
    json.name("deleted")
    json.value(false)
    json.member("real_name", name)
    json.name("is_bot")
    json.value(person.type == "bot")
    json.name("is_admin")
    json.value(false)
    json.member("tz", "Etc/UTC")
    json.name("tz_offset")
    json.value(0 as Int64)
    json.name("profile")
    json.begin()
    json.member("real_name", name)
    json.member("display_name", name)
    // Importers refuse people without one, and a made-up name of a real host would be written to.
    json.member("email", "\(id.lowercased())@ferry.invalid")
    // Mattermost's importer knows a bot by this alone; its messages name it by the same.
    if person.type == "bot" { json.member("bot_id", id) }
    json.end()
    json.end()
    return json.utf8
  }

  static func message(_ record: Record, ts: Int64, thread: SlackExportWriter.Thread?) -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    json.member("type", "message")
    json.member("ts", SlackNames.ts(microseconds: ts))
    switch record {
    case .message(let message):
      write(message, &json)
      if let thread { write(thread, of: message, ts: ts, &json) }
    case .join(let membership): write(membership, "channel_join", "has joined the channel", &json)
    case .leave(let membership): write(membership, "channel_leave", "has left the channel", &json)
    default: break
    }
    json.end()
    return json.utf8
  }

  private static func write(
    _ membership: MembershipRecord, _ subtype: String, _ what: String, _ json: inout JSONWriter
  ) {
    let user = SlackNames.id(membership.member.id.rawValue, prefix: "U")
    json.member("subtype", subtype)
    json.member("user", user)
    json.member("text", "<@\(user)> \(what)")
  }

  /// Every field that an importer goes by: some read the first message's list of answers, some the answers' root.
  private static func write(
    _ thread: SlackExportWriter.Thread, of record: MessageRecord, ts: Int64, _ json: inout JSONWriter
  ) {
    switch thread {
    case .answer(let root, let user):
      let (root, user) = (SlackNames.ts(microseconds: root), SlackNames.id(user.rawValue, prefix: "U"))
      json.member("thread_ts", root)
      json.member("parent_user_id", user)
      guard record.isBroadcast else { return }
      json.name("root")
      json.begin()
      json.member("type", "message")
      json.member("user", user)
      json.member("ts", root)
      json.member("thread_ts", root)
      json.end()
    case .first(let answers):
      json.member("thread_ts", SlackNames.ts(microseconds: ts))
      json.name("reply_count")
      json.value(Int64(answers.count))
      json.member("latest_reply", SlackNames.ts(microseconds: answers.last?.ts ?? ts))
      let users = Set(answers.map(\.user)).sorted()
      json.name("reply_users_count")
      json.value(Int64(users.count))
      json.name("reply_users")
      json.value(.array(users.map { .string(SlackNames.id($0.rawValue, prefix: "U")) }))
      json.name("replies")
      json.begin("[")
      for answer in answers {
        json.begin()
        json.member("user", SlackNames.id(answer.user.rawValue, prefix: "U"))
        json.member("ts", SlackNames.ts(microseconds: answer.ts))
        json.end()
      }
      json.end("]")
    }
  }

  private static func write(_ record: MessageRecord, _ json: inout JSONWriter) {
    let message = record.message
    json.member("user", SlackNames.id(message.author.id.rawValue, prefix: "U"))
    json.member("text", text(record))
    if record.isAction {
      json.member("subtype", "me_message")
    } else if let system = record.system, ["topic", "purpose", "name", "archive", "unarchive"].contains(system) {
      json.member("subtype", "channel_\(system)")
      // Rocket.Chat shows this instead of the text.
      if ["topic", "purpose", "name"].contains(system) {
        json.name(escaping: system)
        json.value(text(record))
      }
    } else if record.isBroadcast {
      json.member("subtype", "thread_broadcast")
    }
    if let edited = message.edited {
      json.name("edited")
      json.begin()
      json.member("user", SlackNames.id((record.editedBy ?? message.author.id).rawValue, prefix: "U"))
      json.member("ts", SlackNames.ts(microseconds: max(edited.milliseconds, 0) &* 1000))
      json.end()
    }
    if !record.reactions.isEmpty {
      json.name("reactions")
      json.begin("[")
      for tally in record.reactions { write(tally, &json) }
      json.end("]")
    }
    if !message.attachments.isEmpty {
      json.name("files")
      json.begin("[")
      for index in message.attachments.indices { writeFile(record, index, &json) }
      json.end("]")
    }
  }

  /// What came from Slack goes back as it was; in anything else its escapes are made.
  private static func text(_ record: MessageRecord) -> String {
    if let raw = record.textRaw { return raw }
    return SlackBlocks.escaped(record.message.text)
  }

  private static func write(_ tally: ReactionTally, _ json: inout JSONWriter) {
    json.begin()
    json.member("name", tally.tone.map { "\(tally.key)::skin-tone-\($0)" } ?? tally.key)
    json.name("users")
    json.value(.array(tally.users.map { .string(SlackNames.id($0.rawValue, prefix: "U")) }))
    json.name("count")
    json.value(Int64(tally.count))
    json.end()
  }

  private static func writeFile(_ record: MessageRecord, _ index: Int, _ json: inout JSONWriter) {
    let attachment = record.message.attachments[index]
    let id = fileID(record, index)
    let name = fileName(attachment)
    json.begin()
    json.member("id", id)
    json.member("name", name)
    json.member("title", attachment.name)
    json.member("mimetype", attachment.mediaType)
    json.member("filetype", name.split(separator: ".").last.map(String.init) ?? "")
    json.member("size", attachment.size.map { .integer($0) })
    for name in ["created", "timestamp"] {
      json.name(escaping: name)
      json.value(record.message.time.milliseconds / 1000)
    }
    json.member("user", SlackNames.id(record.message.author.id.rawValue, prefix: "U"))
    let status = record.file(at: index).status
    json.member("mode", status == .hidden ? "hidden_by_limit" : status == .deleted ? "tombstone" : "hosted")
    var link = "https://ferry.invalid/files/\(id)/\(name)"
    if case .url(let url) = attachment.reference { link = url }
    json.name("is_external")
    json.value(false)
    json.member("url_private", link)
    json.member("url_private_download", link)
    json.end()
  }

  static func fileID(_ record: MessageRecord, _ index: Int) -> String {
    let known = record.file(at: index).id ?? "\(record.channel) \(record.message.id) \(index)"
    return SlackNames.id(known, prefix: "F")
  }

  /// Fit for a path.
  static func fileName(_ attachment: Attachment) -> String {
    let plain = attachment.name.unicodeScalars.map { scalar -> Character in
      scalar.value < 0x20 || "/\\:*?\"<>|".unicodeScalars.contains(scalar) ? "_" : Character(scalar)
    }
    var text = String(plain)
    while text.utf8.count > 120 { text.removeLast() }
    return text.isEmpty || text.allSatisfy { $0 == "." } ? "file" : text
  }
}
