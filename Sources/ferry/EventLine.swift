import FerryCore
import FerryRuntime

/// The stable JSON object for one event or message, as `tail` and `history` print it: one a line.
struct EventLine: Encodable {
  var kind: String
  var address: String
  var id: String?
  var author: Author?
  var text: String?
  var time: String
  var edited: String?
  var attachments: [AttachmentLine] = []
  var replyTo: String?
  var origin: Origin?
  /// Of a reaction, and whether it was put on or taken off; of typing, whether it goes on.
  var emoji: String?
  var on: Bool?
  /// Of a read mark: `delivered` or `read`.
  var state: String?

  struct Author: Encodable {
    let id: String
    let name: String
  }

  struct Origin: Encodable {
    let address: String
    let id: String
  }

  struct AttachmentLine: Encodable {
    let name: String
    let type: String
    let size: Int64?
    let sha256: String?
    let url: String?
  }

  enum CodingKeys: String, CodingKey {
    case kind, address, id, author, text, time, edited, attachments, origin, emoji, on, state
    case replyTo = "reply_to"
  }

  /// The common keys are always there, null when empty; those of one kind only on that kind.
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(kind, forKey: .kind)
    try container.encode(address, forKey: .address)
    try container.encode(id, forKey: .id)
    try container.encode(author, forKey: .author)
    try container.encode(text, forKey: .text)
    try container.encode(time, forKey: .time)
    try container.encode(edited, forKey: .edited)
    try container.encode(attachments, forKey: .attachments)
    try container.encode(replyTo, forKey: .replyTo)
    try container.encode(origin, forKey: .origin)
    try container.encodeIfPresent(emoji, forKey: .emoji)
    try container.encodeIfPresent(on, forKey: .on)
    try container.encodeIfPresent(state, forKey: .state)
  }

  init(kind: String, address: Address, time: Timestamp) {
    self.kind = kind
    self.address = address.description
    self.time = time.iso8601
  }

  init(_ message: Message, kind: String = "message", at address: Address) {
    self.init(kind: kind, address: address, time: message.time)
    id = message.id.rawValue
    author = Author(message.author)
    text = message.text
    edited = message.edited?.iso8601
    attachments = message.attachments.map { attachment in
      var url: String?
      if case .url(let text) = attachment.reference { url = text }
      return AttachmentLine(
        name: attachment.name, type: attachment.mediaType, size: attachment.size, sha256: attachment.sha256, url: url)
    }
    replyTo = message.replyTo?.rawValue
    origin = message.stamp.map { Origin(address: $0.origin.description, id: $0.id.rawValue) }
  }

  init(_ event: Event, at address: Address) {
    switch event.kind {
    case .posted(let message): self.init(message, at: address)
    case .edited(let message): self.init(message, kind: "edit", at: address)
    case .deleted(let deletion):
      self.init(kind: "delete", address: address, time: event.time)
      id = deletion.id.rawValue
      author = deletion.by.map { Author($0) }
    case .joined(let membership), .left(let membership):
      var kind = "leave"
      if case .joined = event.kind { kind = "join" }
      self.init(kind: kind, address: address, time: event.time)
      author = Author(membership.member)
    case .read(let mark):
      self.init(kind: "read", address: address, time: event.time)
      id = mark.upTo.rawValue
      author = mark.by.map { Author($0) }
      state = mark.state.rawValue
    case .reacted(let reaction):
      self.init(kind: "reaction", address: address, time: event.time)
      id = reaction.message.rawValue
      author = Author(reaction.by)
      emoji = reaction.emoji
      on = reaction.added
    }
  }

  init(_ typing: Typing, at address: Address, time: Timestamp) {
    self.init(kind: "typing", address: address, time: time)
    author = Author(typing.by)
    on = typing.on
  }

  /// For people: one line, control characters made visible.
  var readable: String {
    let clock = time.dropFirst(11).prefix(8)
    let who = author?.name ?? "somebody"
    let what: String
    switch kind {
    case "message": what = "\(who): \(text ?? "")\(files)"
    case "edit": what = "\(who) edited \(id ?? ""): \(text ?? "")\(files)"
    case "delete": what = "\(who) deleted \(id ?? "")"
    case "join": what = "\(who) joined"
    case "leave": what = "\(who) left"
    case "typing": what = "\(who) \(on == true ? "is typing" : "stopped typing")"
    case "read": what = "\(who) has \(state == "read" ? "read" : "received") up to \(id ?? "")"
    default: what = "\(who) \(on == true ? "reacted" : "took back") \(emoji ?? "") on \(id ?? "")"
    }
    return "\(clock) \(Terminal.visible(what))"
  }

  private var files: String { attachments.map { " [\($0.name)\($0.url.map { " \($0)" } ?? "")]" }.joined() }
}

extension EventLine.Author {
  init(_ author: FerryCore.Author) { self.init(id: author.id.rawValue, name: author.name) }
}
