import FerryChat
import FerryCore
import FerryRuntime

/// What other services allow and the local server refuses, made acceptable: nobody's name or picture is a reason to
/// lose what they say.
extension LocalAdapter {
  private static let limits = ChatLimits()

  static func fitted(_ author: Author) -> Author {
    Author(
      id: UserID(fitted(id: author.id.rawValue)), name: shortened(author.name),
      avatar: author.avatar.flatMap { isURL($0) ? $0 : nil })
  }

  static func fitted(_ attachment: OutgoingAttachment) -> OutgoingAttachment {
    var attachment = attachment
    attachment.name = shortened(attachment.name)
    attachment.mediaType = shortened(attachment.mediaType)
    return attachment
  }

  /// The same for the same id always, so that what was sent under it is found again. A digest keeps ids apart that
  /// have become alike.
  static func fitted(id: String) -> String {
    func isControl(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7f }
    guard id.utf8.isEmpty || id.utf8.count > limits.idBytes || id.utf8.contains(where: isControl) else { return id }
    let digest = Crypto.hex(Crypto.digest(.sha256, of: id.utf8).prefix(8))
    let plain = id.unicodeScalars.map { $0.value < 0x20 || $0.value == 0x7f ? "_" : String($0) }.joined()
    return shortened(plain, to: limits.idBytes - digest.utf8.count - 1) + "~" + digest
  }

  static func shortened(_ text: String, to bytes: Int = limits.nameBytes) -> String {
    guard text.utf8.count > bytes else { return text }
    var result = ""
    var size = 0
    for scalar in text.unicodeScalars {
      size += UTF8.width(scalar)
      if size > bytes { break }
      result.unicodeScalars.append(scalar)
    }
    return result
  }

  private static func isURL(_ text: String) -> Bool {
    text.utf8.count <= limits.urlBytes && (text.hasPrefix("http://") || text.hasPrefix("https://"))
      && !text.utf8.contains { $0 <= 0x20 || $0 == 0x7f }
  }
}
