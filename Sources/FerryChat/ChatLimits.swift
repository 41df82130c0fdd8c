/// What one namespace accepts. Sizes are in bytes of UTF-8.
package struct ChatLimits: Hashable, Sendable {
  package var textBytes = 64 * 1024
  /// Display names, room titles, file names.
  package var nameBytes = 256
  /// Rooms, users, client ids.
  package var idBytes = 256
  package var urlBytes = 2048
  package var emojiBytes = 64
  package var attachments = 32
  package var mentions = 64
  /// A message's stamp and attributes, as JSON.
  package var extraBytes = 16 * 1024
  /// Messages posted in one transaction.
  package var batch = 256
  /// Items imported in one transaction.
  package var imported = 512
  package var fileBytes: Int64 = 64 * 1024 * 1024
  /// Messages or events in one page.
  package var page = 500
  /// Unread messages are counted up to here.
  package var unread = 100
  /// How long typing lasts without renewal.
  package var typingLasts: Duration = .seconds(5)

  package init() {}
}
