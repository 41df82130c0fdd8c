import FerryCore
import FerryRuntime

/// The app's events as Ferry's, of whatever shape the app gives its data.
struct EventReader: Sendable {
  let events: EventNames
  let fields: FieldNames

  enum Reading: Hashable, Sendable {
    case event(Event)
    case typing(Typing)
  }

  /// Nil for what has no meaning to Ferry. `unique` names this one frame among all that were ever received.
  func read(_ frame: Frame, in channel: ChannelID, unique: String, now: Timestamp) -> Reading? {
    let meanings = events.meanings(of: frame.event)
    guard let first = meanings.first else { return nil }
    let data = frame.data?.parsed ?? .null
    // One name for edits and reads is told apart by the list of those who have seen the message.
    let meaning = meanings.contains(.read) && data["seen"]?.array?.isEmpty == false ? .read : first
    let occurrence = Occurrence(data: data, frame: frame, channel: channel, unique: unique, now: now)
    switch meaning {
    case .message: return occurrence.event(posted(occurrence))
    case .edit: return edited(occurrence)
    case .delete: return deleted(occurrence)
    case .typing: return typing(occurrence, on: data["typing"]?.bool ?? true)
    case .typingStopped: return typing(occurrence, on: false)
    case .delivered: return marked(occurrence, .delivered)
    case .read: return marked(occurrence, .read)
    case .reaction: return reacted(occurrence)
    case .join: return member(occurrence) { .joined($0) }
    case .leave: return member(occurrence) { .left($0) }
    }
  }

  private struct Occurrence {
    let data: JSONValue
    let frame: Frame
    let channel: ChannelID
    let unique: String
    let now: Timestamp

    func event(_ event: (key: String, time: Timestamp, kind: Event.Kind)) -> Reading {
      .event(Event(key: EventKey(event.key), channel: channel, time: event.time, kind: event.kind))
    }
  }

  // MARK: Messages

  private func posted(_ occurrence: Occurrence) -> (key: String, time: Timestamp, kind: Event.Kind) {
    let id = id(occurrence)
    let message = message(occurrence, id: id ?? MessageID(occurrence.unique))
    return (id.map { "m:\($0)" } ?? "m:\(occurrence.unique)", message.time, .posted(message))
  }

  /// An edit without a message's id is of no use to anybody.
  private func edited(_ occurrence: Occurrence) -> Reading? {
    guard let id = id(occurrence) else { return nil }
    var message = message(occurrence, id: id)
    let time = time(occurrence)
    let edited = occurrence.data.first(["edited", "editedAt", "edited_at", "updatedAt", "updated_at"], Self.time(of:))
    let revision = message.stamp?.revision ?? occurrence.data["revision"]?.integer.flatMap(Int.init(exactly:))
    message.edited = edited ?? occurrence.now
    // Pusher tells everything once, so an edit that bears no number is another than every edit before it, even when
    // the text is an earlier one's.
    message.revision = revision ?? Int(clamping: message.edited?.milliseconds ?? 1)
    message.time = time ?? occurrence.now
    let key = revision.map { "e:\(id):\($0)" } ?? "e:\(occurrence.unique)"
    return occurrence.event((key, message.edited ?? occurrence.now, .edited(message)))
  }

  private func deleted(_ occurrence: Occurrence) -> Reading? {
    // Some apps send the id alone.
    guard let id = id(occurrence) ?? occurrence.data.text.map({ MessageID($0) }) else { return nil }
    let deletion = Deletion(id: id, by: author(occurrence), stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event(("d:\(id)", occurrence.now, .deleted(deletion)))
  }

  private func message(_ occurrence: Occurrence, id: MessageID) -> Message {
    let data = occurrence.data
    let ferry = FerryField(data)
    var message = Message(
      id: id, author: author(occurrence) ?? Author(id: "unknown", name: "unknown"),
      text: data.first(fields.text, \.string) ?? data.text ?? "", time: time(occurrence) ?? occurrence.now)
    message.revision = ferry?.stamp?.revision ?? 0
    message.attachments = attachments(data, ferry)
    message.replyTo = data.first(["reply_to", "replyTo"], \.text).map { MessageID($0) }
    message.stamp = ferry?.stamp
    message.attributes = attributes(data)
    return message
  }

  private func attachments(_ data: JSONValue, _ ferry: FerryField?) -> [Attachment] {
    if let images = ferry?.images, !images.isEmpty {
      return images.map { image in
        Attachment(
          name: image.name, mediaType: image.type, size: image.size, sha256: image.sha256, reference: .url(image.url))
      }
    }
    let one = data.first(fields.image, Self.link)
    var links = data["images"]?.array?.compactMap(Self.link) ?? []
    if let one, !links.contains(one) { links.insert(one, at: 0) }
    return links.map { url in
      Attachment(
        name: AttachmentName.name(ofURL: url), mediaType: AttachmentName.mediaType(ofURL: url), reference: .url(url))
    }
  }

  private static func link(_ value: JSONValue) -> String? {
    guard let url = value.string ?? value["url"]?.string else { return nil }
    return url.hasPrefix("https://") || url.hasPrefix("http://") ? url : nil
  }

  /// What the app says beyond what Ferry understands. Anybody may publish, so what is nested too deep for the
  /// journal is left out: an event that can never be stored would hold up all others for ever.
  private func attributes(_ data: JSONValue) -> JSONValue? {
    guard case .object(var members) = data else { return nil }
    let known = [fields.id, fields.text, fields.sender, fields.time, fields.image]
    for name in known.joined() { members[name] = nil }
    for name in [FerryField.name, "images", "reply_to", "replyTo"] { members[name] = nil }
    members = members.filter { $0.value.depth < JSONValue.deepest }
    return members.isEmpty ? nil : .object(members)
  }

  // MARK: Signs

  private func typing(_ occurrence: Occurrence, on: Bool) -> Reading? {
    let bare = occurrence.data.string.map { text in
      // "ann is typing..." or the name alone.
      text.firstRange(of: " is typing").map { String(text[..<$0.lowerBound]) } ?? text
    }
    guard let author = author(occurrence) ?? bare.map({ Author(id: UserID($0), name: $0) }), !author.name.isEmpty
    else { return nil }
    return .typing(
      Typing(channel: occurrence.channel, by: author, on: on, stamp: FerryField(occurrence.data)?.stamp))
  }

  private func marked(_ occurrence: Occurrence, _ state: ReadMark.State) -> Reading? {
    guard let id = id(occurrence) ?? occurrence.data.text.map({ MessageID($0) }) else { return nil }
    let mark = ReadMark(
      upTo: id, by: author(occurrence), state: state, stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event(
      ("r:\(state.rawValue):\(id):\(mark.by?.id.rawValue ?? "")", occurrence.now, .read(mark)))
  }

  private func member(_ occurrence: Occurrence, _ kind: (Membership) -> Event.Kind) -> Reading? {
    guard let member = author(occurrence) ?? occurrence.data.string.map({ Author(id: UserID($0), name: $0) }) else {
      return nil
    }
    let membership = Membership(member: member, stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event(("p:\(occurrence.unique)", time(occurrence) ?? occurrence.now, kind(membership)))
  }

  private func reacted(_ occurrence: Occurrence) -> Reading? {
    let data = occurrence.data
    guard let id = id(occurrence), let emoji = data.first(["emoji", "reaction"], \.string) else { return nil }
    let reaction = Reaction(
      message: id, by: author(occurrence) ?? Author(id: "unknown", name: "unknown"), emoji: emoji,
      added: data["added"]?.bool ?? true, stamp: FerryField(data)?.stamp)
    return occurrence.event(("x:\(occurrence.unique)", occurrence.now, .reacted(reaction)))
  }

  // MARK: Fields

  /// Longer than any id, and no more than what a stamp may carry to other services.
  private static let longestID = 512

  private func id(_ occurrence: Occurrence) -> MessageID? {
    occurrence.data.first(fields.id) { value in
      value.text.flatMap { $0.isEmpty || $0.utf8.count > Self.longestID ? nil : MessageID($0) }
    }
  }

  private func author(_ occurrence: Occurrence) -> Author? {
    let author = occurrence.data.first(fields.sender) { value -> Author? in
      if let text = value.text { return text.isEmpty ? nil : Author(id: UserID(text), name: text) }
      guard let name = value.first(["name", "username", "userName", "id"], \.text) else { return nil }
      let id = value.first(["id", "_id", "user_id"], \.text) ?? name
      return Author(id: UserID(id), name: name, avatar: value.first(["avatar", "image"], Self.link))
    }
    // The service vouches for who sent a client event.
    let id = occurrence.frame.userID ?? FerryField(occurrence.data)?.senderID
    guard let id else { return author }
    return Author(id: UserID(id), name: author?.name ?? id, avatar: author?.avatar)
  }

  private func time(_ occurrence: Occurrence) -> Timestamp? { occurrence.data.first(fields.time, Self.time(of:)) }

  /// ISO 8601, seconds or milliseconds. Nil for what is no time at which anybody wrote a message: before 1970 or
  /// after 9999, which other services refuse.
  private static func time(of value: JSONValue) -> Timestamp? {
    let time: Timestamp? =
      switch value {
      case .string(let text): Timestamp(iso8601: text) ?? Double(text).flatMap(time(number:))
      case .integer(let number): time(number: Double(number))
      case .number(let number): time(number: number)
      default: nil
      }
    return time.flatMap { (0...253_402_300_799_999).contains($0.milliseconds) ? $0 : nil }
  }

  private static func time(number: Double) -> Timestamp? {
    // Seconds reach this in the year 5138, milliseconds passed it in 1973.
    let milliseconds = abs(number) < 1e11 ? number * 1000 : number
    guard abs(milliseconds) < 2.5e14 else { return nil }
    return Timestamp(milliseconds: Int64(milliseconds.rounded()))
  }
}
