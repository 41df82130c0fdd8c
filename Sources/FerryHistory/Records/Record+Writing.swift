import FerryCore
import FerryRuntime

extension Record {
  /// The record as one line of JSON, without the line's end. The same record is always the same bytes.
  ///
  /// `seq` is its number in an archive's log.
  package func line(seq: Int64? = nil) -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    if let seq {
      json.name("seq")
      json.value(seq)
    }
    json.name("kind")
    json.value(kind)
    write(to: &json)
    json.end()
    return json.utf8
  }

  private func write(to json: inout JSONWriter) {
    switch self {
    case .channel(let record): record.write(to: &json)
    case .person(let record): record.write(to: &json)
    case .message(let record), .edit(let record): record.write(to: &json)
    case .delete(let record): record.write(to: &json)
    case .reaction(let record): record.write(to: &json)
    case .join(let record), .leave(let record): record.write(to: &json)
    case .read(let record): record.write(to: &json)
    case .gap(let record): record.write(to: &json)
    case .skipped(let record): record.write(to: &json)
    case .end(let record): record.write(to: &json)
    case .unknown(_, let value): json.sorted(members: value.object ?? [:])
    }
  }
}

extension MessageRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.member("id", message.id.rawValue)
    json.write("author", message.author, extra: extra.author)
    json.member("text", message.text)
    json.member("format", formatName ?? message.format.rawValue)
    json.member("time", message.time.iso8601)
    json.member("time_raw", timeRaw)
    json.member("precision", precision.rawValue)
    json.member("zone", zone)
    writeEdited(to: &json)
    json.name("attachments")
    json.begin("[")
    for (index, attachment) in message.attachments.enumerated() { attachment.write(file(at: index), to: &json) }
    json.end("]")
    json.name("reply_to")
    json.nullable(message.replyTo?.rawValue)
    json.member("thread", thread?.rawValue)
    if !message.mentions.isEmpty { json.write("mentions", message.mentions) }
    json.name("reactions")
    json.begin("[")
    for tally in reactions { tally.write(to: &json) }
    json.end("]")
    json.flag("deleted", isDeleted)
    json.member("system", system)
    json.flag("action", isAction)
    json.flag("broadcast", isBroadcast)
    json.member("text_raw", textRaw)
    json.flag("lossy", isLossy)
    json.name("origin")
    json.write(message.stamp, parts: parts, extra: extra.origin)
    json.write(message.attributes, extra)
  }

  private func writeEdited(to json: inout JSONWriter) {
    json.name("edited")
    guard message.edited != nil || message.revision != 0 || editedBy != nil || !extra.edited.isEmpty else {
      json.raw("null")
      return
    }
    json.begin()
    json.member("time", message.edited?.iso8601)
    json.member("by", editedBy?.rawValue)
    json.name("revision")
    json.value(Int64(message.revision))
    json.sorted(members: extra.edited)
    json.end()
  }
}

extension Attachment {
  fileprivate func write(_ state: FileState, to json: inout JSONWriter) {
    json.begin()
    json.member("id", state.id)
    json.member("name", name)
    json.member("type", mediaType)
    json.member("size", size.map { .integer($0) })
    json.member("sha256", sha256)
    switch reference {
    case .url(let url): json.member("url", url)
    case .provider(let name): json.member("reference", name.isEmpty ? nil : name)
    }
    json.member("status", state.status?.rawValue)
    if let pixels {
      json.name("width")
      json.value(Int64(pixels.width))
      json.name("height")
      json.value(Int64(pixels.height))
    }
    json.sorted(members: state.extra)
    json.end()
  }
}

extension ReactionTally {
  fileprivate func write(to json: inout JSONWriter) {
    json.begin()
    json.member("key", key)
    json.member("tone", tone.map { .integer(Int64($0)) })
    json.write("users", users)
    json.name("count")
    json.value(Int64(count))
    json.sorted(members: extra)
    json.end()
  }
}

extension ChannelRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", id.rawValue)
    json.member("name", name)
    json.member("type", type)
    json.member("topic", topic)
    if let members { json.write("members", members) }
    json.member("created", created?.iso8601)
    json.write(attributes, extra)
  }
}

extension PersonRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("id", id.rawValue)
    json.member("name", name)
    json.member("type", type)
    json.member("avatar", avatar)
    json.write(attributes, extra)
  }
}

extension DeleteRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.member("id", id.rawValue)
    json.write("author", by, extra: extra.author)
    json.member("time", time?.iso8601)
    json.writeOrigin(stamp, extra)
    json.write(nil, extra)
  }
}

extension ReactionRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.member("id", reaction.message.rawValue)
    json.write("author", reaction.by, extra: extra.author)
    json.member("key", reaction.emoji)
    json.member("tone", tone.map { .integer(Int64($0)) })
    json.name("on")
    json.value(reaction.added)
    json.member("time", time?.iso8601)
    json.writeOrigin(reaction.stamp, extra)
    json.write(nil, extra)
  }
}

extension MembershipRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.write("author", member, extra: extra.author)
    json.member("time", time?.iso8601)
    json.member("time_raw", timeRaw)
    json.member("precision", precision.rawValue)
    json.writeOrigin(stamp, extra)
    json.write(attributes, extra)
  }
}

extension ReadRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.member("id", mark.upTo.rawValue)
    json.write("author", mark.by, extra: extra.author)
    json.member("state", mark.state.rawValue)
    json.member("time", time?.iso8601)
    json.writeOrigin(mark.stamp, extra)
    json.write(nil, extra)
  }
}

extension GapRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.member("from", from.iso8601)
    json.member("to", to.iso8601)
    json.member("reason", reason)
    json.write(nil, extra)
  }
}

extension SkippedRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel?.rawValue)
    json.member("reason", reason)
    json.name("count")
    json.value(Int64(count))
    json.member("place", place)
    json.write(nil, extra)
  }
}

extension EndRecord {
  fileprivate func write(to json: inout JSONWriter) {
    json.member("channel", channel.rawValue)
    json.name("complete")
    json.value(isComplete)
    json.name("messages")
    json.value(Int64(messages))
    json.write(nil, extra)
  }
}

extension JSONWriter {
  fileprivate mutating func nullable(_ text: String?) { if let text { value(text) } else { raw("null") } }

  /// Left out when it is false.
  fileprivate mutating func flag(_ name: StaticString, _ isSet: Bool) {
    guard isSet else { return }
    self.name(name)
    value(true)
  }

  fileprivate mutating func write(_ name: StaticString, _ ids: [UserID]) {
    self.name(name)
    begin("[")
    for id in ids { value(id.rawValue) }
    end("]")
  }

  /// Left out when it is nil.
  fileprivate mutating func write(_ name: StaticString, _ author: Author?, extra: [String: JSONValue]) {
    guard let author else { return }
    self.name(name)
    begin()
    member("id", author.id.rawValue)
    member("name", author.name)
    member("avatar", author.avatar)
    sorted(members: extra)
    end()
  }

  /// Null when there is no stamp and no word of parts.
  fileprivate mutating func write(_ stamp: Stamp?, parts: Int?, extra: [String: JSONValue]) {
    guard stamp != nil || parts != nil || !extra.isEmpty else {
      raw("null")
      return
    }
    begin()
    if let stamp {
      member("address", stamp.origin.description)
      member("id", stamp.id.rawValue)
      name("revision")
      value(Int64(stamp.revision))
      member("bridge", stamp.bridge.rawValue)
    }
    let part = stamp?.part ?? 0
    if part != 0 || parts != nil {
      name("part")
      begin("[")
      value(Int64(part &+ 1))
      if let parts { value(Int64(parts)) }
      end("]")
    }
    sorted(members: extra)
    end()
  }

  /// Left out when there is no stamp.
  fileprivate mutating func writeOrigin(_ stamp: Stamp?, _ extra: ExtraFields) {
    guard stamp != nil || !extra.origin.isEmpty else { return }
    name("origin")
    write(stamp, parts: nil, extra: extra.origin)
  }

  /// What every record may end with.
  fileprivate mutating func write(_ attributes: JSONValue?, _ extra: ExtraFields) {
    if let attributes {
      name("attributes")
      sorted(attributes)
    }
    sorted(members: extra.record)
  }
}
