import FerryCore

/// Up to where a conversation has been read: the newest message's index, which tells the order, its SID, and the
/// conversation's own, because a name may later be given to another conversation.
struct Place: Hashable, Sendable {
  /// -1 when there was no message yet.
  var index: Int64
  var message: String
  var conversation: String

  init(index: Int64 = -1, message: String = "", conversation: String) {
    self.index = index
    self.message = message
    self.conversation = conversation
  }

  var cursor: Cursor { Cursor("\(index)/\(message)/\(conversation)") }

  /// Nil for what is no cursor of ours.
  init?(_ cursor: Cursor) {
    let parts = cursor.rawValue.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 3, let index = Int64(parts[0]), index >= -1 else { return nil }
    self.init(index: index, message: String(parts[1]), conversation: String(parts[2]))
  }
}
