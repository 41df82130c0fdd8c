/// Which table holds the chat, and what its columns are called. Messages that are published whole have the same members.
///
/// Of each list the first is written and all are read.
package struct ChatFields: Hashable, Sendable {
  package var table = "ChatMessage"
  /// The channel of a row. Tables of apps with one room have none.
  package var channel = ["channel"]
  package var text = ["messageText", "text"]
  package var sender = ["userName", "userEmail"]
  package var image = ["pictureUrl"]
  /// The text by which the app says that somebody has come; nil: it does not.
  package var joinNotice: String? = "joined"

  package init() {}
}
