import FerryCore
import FerryRuntime

/// The app's events as Ferry's, of whatever shape the app gives its data.
struct EventReader: Sendable {
  let profile: Profile
  private let index: EventIndex

  init(_ profile: Profile) {
    self.profile = profile
    index = EventIndex(profile.events)
  }

  enum Reading: Hashable, Sendable {
    case event(Event)
    case typing(Typing)
  }

  /// Nothing for what has no meaning to Ferry. `unique` names this one frame among all that were ever received.
  func read(
    _ frame: Frame, in channel: ChannelID, unique: String, now: Timestamp, memory: inout MessageMemory
  ) -> [Reading] {
    let meanings = index[frame.event]
    guard let first = meanings.first else { return [] }
    let data = frame.data?.parsed ?? .null
    let occurrence = Occurrence(
      data: data, html: profile.html ? html(data) : nil, frame: frame, channel: channel, unique: unique, now: now)
    if meanings.contains(.edit), meanings.contains(.read) { return updated(occurrence, &memory) }
    let reading: Reading? =
      switch first {
      case .message: posted(occurrence, &memory)
      case .edit: edited(occurrence, &memory)
      case .delete: deleted(occurrence, &memory)
      case .typing: typing(occurrence, on: data["typing"]?.flag ?? true)
      case .typingStopped: typing(occurrence, on: false)
      case .delivered: marked(occurrence, .delivered, memory)
      case .read: marked(occurrence, .read, memory)
      case .reaction: reacted(occurrence)
      case .join: member(occurrence) { .joined($0) }
      case .leave: member(occurrence) { .left($0) }
      }
    return reading.map { [$0] } ?? []
  }

  struct Occurrence {
    let data: JSONValue
    /// The text, where the app writes HTML.
    let html: HTMLText?
    let frame: Frame
    let channel: ChannelID
    let unique: String
    let now: Timestamp

    func event(_ key: String, _ time: Timestamp, _ kind: Event.Kind) -> Reading {
      .event(Event(key: EventKey(key), channel: channel, time: time, kind: kind))
    }
  }

  private func html(_ data: JSONValue) -> HTMLText? {
    (data.first(profile.fields.text, \.string) ?? data.string).map { HTMLText($0) }
  }

  // MARK: Messages

  private func posted(_ occurrence: Occurrence, _ memory: inout MessageMemory) -> Reading? {
    let id = id(occurrence)
    let message = message(occurrence, id: id ?? MessageID(occurrence.unique))
    memory.note(message.id, in: occurrence.channel, row(occurrence, message), isNew: true)
    return occurrence.event("m:\(id?.rawValue ?? occurrence.unique)", message.time, .posted(message))
  }

  /// An edit without a message's id is of no use to anybody.
  private func edited(_ occurrence: Occurrence, _ memory: inout MessageMemory) -> Reading? {
    guard let id = id(occurrence) else { return nil }
    var message = message(occurrence, id: id)
    let time = time(occurrence)
    let edited = occurrence.data.first(Self.editTimes, Self.time(of:))
    let revision = message.stamp?.revision ?? occurrence.data["revision"]?.integer.flatMap(Int.init(exactly:))
    message.edited = edited ?? occurrence.now
    // Pusher tells everything once, so an edit that bears no number is another than every edit before it, even when
    // the text is an earlier one's.
    message.revision = revision ?? memory.nextEdit(at: Int(clamping: message.edited?.milliseconds ?? 1))
    message.time = time ?? occurrence.now
    memory.note(id, in: occurrence.channel, row(occurrence, message), isNew: false)
    let key = revision.map { "e:\(id):\($0)" } ?? "e:\(occurrence.unique)"
    return occurrence.event(key, message.edited ?? occurrence.now, .edited(message))
  }

  private static let editTimes = ["edited", "editedAt", "edited_at", "updatedAt", "updated_at"]

  /// One name for edits and reads, told apart by the list of those who have seen the message: when it has grown, they
  /// have read it; when anything else has changed, it was edited. Of a message that nobody remembers, a list with
  /// somebody on it is a read.
  private func updated(_ occurrence: Occurrence, _ memory: inout MessageMemory) -> [Reading] {
    guard let id = id(occurrence) else { return [] }
    if FerryField(occurrence.data)?.reader != nil {
      memory.note(id, in: occurrence.channel, row(occurrence, message(occurrence, id: id)), isNew: false)
      return marked(occurrence, .read, memory).map { [$0] } ?? []
    }
    let readers = occurrence.data["seen"]?.array ?? []
    let known = memory.row(id, in: occurrence.channel)
    let row = row(occurrence, message(occurrence, id: id))
    let isEdit = known.map { $0.content != row.content } ?? readers.isEmpty
    var readings: [Reading] = []
    if isEdit {
      if let edit = edited(occurrence, &memory) { readings.append(edit) }
    } else {
      memory.note(id, in: occurrence.channel, row, isNew: false)
    }
    let fresh = readers.filter { reader in
      Self.name(ofReader: reader).map { known?.seen.contains($0) != true } ?? false
    }
    return readings + reads(of: id, by: fresh, occurrence)
  }

  private func reads(of id: MessageID, by readers: [JSONValue], _ occurrence: Occurrence) -> [Reading] {
    readers.prefix(Self.mostReaders).map { value in
      let reader = Self.author(of: value)
      let mark = ReadMark(upTo: id, by: reader, state: .read, stamp: FerryField(occurrence.data)?.stamp)
      return occurrence.event(Self.key(of: mark), occurrence.now, .read(mark))
    }
  }

  private static let mostReaders = 100

  private static func name(ofReader value: JSONValue) -> String? {
    value.text ?? value.first(["id", "_id", "user_id", "email", "name"], \.text)
  }

  private func row(_ occurrence: Occurrence, _ message: Message) -> MessageMemory.Row {
    var content = Hasher()
    content.combine(message.text)
    content.combine(message.attachments)
    let seen = occurrence.data["seen"]?.array ?? []
    return MessageMemory.Row(
      content: content.finalize(), seen: Set(seen.prefix(Self.mostReaders).compactMap(Self.name)),
      data: profile.preset == .nextjsMessenger ? occurrence.data : nil)
  }

  private func deleted(_ occurrence: Occurrence, _ memory: inout MessageMemory) -> Reading? {
    // Some apps send the id alone.
    guard let id = id(occurrence) ?? occurrence.data.text.map({ MessageID($0) }) else { return nil }
    memory.forget(id, in: occurrence.channel)
    let deletion = Deletion(id: id, by: author(occurrence), stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event("d:\(id)", occurrence.now, .deleted(deletion))
  }

  private func message(_ occurrence: Occurrence, id: MessageID) -> Message {
    let data = occurrence.data
    let ferry = FerryField(data)
    var message = Message(
      id: id, author: author(occurrence) ?? .unknown,
      text: occurrence.html?.text ?? data.first(profile.fields.text, \.string) ?? data.text ?? "",
      time: time(occurrence) ?? occurrence.now)
    message.revision = ferry?.stamp?.revision ?? 0
    message.attachments = attachments(occurrence, ferry)
    message.replyTo = data.first(["reply_to", "replyTo"], \.text).map { MessageID($0) }
    message.stamp = ferry?.stamp
    message.attributes = attributes(data)
    return message
  }

  // MARK: Signs

  private func typing(_ occurrence: Occurrence, on: Bool) -> Reading? {
    let bare = occurrence.data.string.map { text in
      // "ann is typing..." or the name alone.
      text.firstRange(of: " is typing").map { String(text[..<$0.lowerBound]) } ?? text
    }
    let whispered = occurrence.data.first(["name", "user", "user.name", "username"], Self.author(of:))
    guard let author = author(occurrence) ?? whispered ?? bare.map({ Author(id: UserID($0), name: $0) }),
      !author.name.isEmpty
    else { return nil }
    return .typing(
      Typing(channel: occurrence.channel, by: author, on: on, stamp: FerryField(occurrence.data)?.stamp))
  }

  private func marked(_ occurrence: Occurrence, _ state: ReadMark.State, _ memory: MessageMemory) -> Reading? {
    var id = id(occurrence) ?? occurrence.data.text.map { MessageID($0) }
    if profile.preset == .chatify, id == nil, occurrence.data["seen"]?.flag ?? true {
      // The whole conversation is seen, up to its last message.
      id = memory.newest(in: occurrence.channel)
    }
    guard let id else { return nil }
    let reader = FerryField(occurrence.data)?.reader ?? author(occurrence)
    let mark = ReadMark(upTo: id, by: reader, state: state, stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event(Self.key(of: mark), occurrence.now, .read(mark))
  }

  private static func key(of mark: ReadMark) -> String {
    "r:\(mark.state.rawValue):\(mark.upTo):\(mark.by?.id.rawValue ?? "")"
  }

  private func member(_ occurrence: Occurrence, _ kind: (Membership) -> Event.Kind) -> Reading? {
    guard let member = author(occurrence) ?? occurrence.data.string.map({ Author(id: UserID($0), name: $0) }) else {
      return nil
    }
    let membership = Membership(member: member, stamp: FerryField(occurrence.data)?.stamp)
    return occurrence.event("p:\(occurrence.unique)", time(occurrence) ?? occurrence.now, kind(membership))
  }

  private func reacted(_ occurrence: Occurrence) -> Reading? {
    let data = occurrence.data
    guard let id = id(occurrence), let emoji = data.first(["emoji", "reaction"], \.string) else { return nil }
    let reaction = Reaction(
      message: id, by: author(occurrence) ?? .unknown, emoji: emoji,
      added: data["added"]?.bool ?? true, stamp: FerryField(data)?.stamp)
    return occurrence.event("x:\(occurrence.unique)", occurrence.now, .reacted(reaction))
  }
}
