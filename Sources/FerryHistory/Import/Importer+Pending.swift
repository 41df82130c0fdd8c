import FerryCore

extension Importer {
  /// An item on its way, and what it is a part of.
  struct Pending: Sendable {
    var item: PastItem
    /// What has to be uploaded again should the destination have forgotten it.
    var files: [File] = []
    /// Of anything else: the message that it is about.
    var about: MessageID?
    /// Of a message: the source's id, which of its parts this is, and whether the last.
    var message: MessageID?
    var part = 0
    var isLast = false

    /// Nil of what is about one of these messages.
    func without(_ refused: Set<SendKey>) -> Pending? {
      switch item.kind {
      case .message(var past):
        guard let reply = past.replyTo, refused.contains(reply.key) else { return self }
        past.replyTo = nil
        var entry = self
        entry.item.kind = .message(past)
        return entry
      case .edit(let reference, _), .delete(let reference, _), .read(let reference, _, _),
        .reaction(let reference, _, _, _):
        return refused.contains(reference.key) ? nil : self
      case .join, .leave: return self
      }
    }
  }

  static let noMessage = "its message is not there"
  static let refusedMessage = "its message was refused"
}

extension PastItem.Kind {
  /// False of what carries no files.
  mutating func carry(_ attachments: [OutgoingAttachment]) -> Bool {
    switch self {
    case .message(var past):
      past.attachments = attachments
      self = .message(past)
    case .edit(let reference, var past):
      past.attachments = attachments
      self = .edit(reference, past)
    default: return false
    }
    return true
  }

  var name: String {
    switch self {
    case .message: "message"
    case .edit: "edit"
    case .delete: "delete"
    case .join: "join"
    case .leave: "leave"
    case .read: "read"
    case .reaction: "reaction"
    }
  }
}
