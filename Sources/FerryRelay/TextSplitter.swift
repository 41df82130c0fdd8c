package import FerryCore

/// Cuts a body that is too long for a destination into parts, nothing lost: the parts joined are the body (G9).
package struct TextSplitter: Sendable {
  private let bytes: Int
  private let characters: Int

  /// Nil limits do not bind.
  package init(bytes: Int?, characters: Int?) {
    self.bytes = bytes ?? .max
    self.characters = characters ?? .max
  }

  package init(_ capabilities: Capabilities) {
    self.init(bytes: capabilities.bodyBytes, characters: capabilities.bodyCharacters)
  }

  /// At least one part. Cuts after white space where some lies in the last quarter of a part, and else between
  /// characters (grapheme clusters). A single character longer than the limit in bytes is cut between scalars.
  package func parts(of text: String) -> [String] {
    if text.utf8.count <= bytes, text.utf8.count <= characters || text.count <= characters { return [text] }
    var parts: [String] = []
    var part = ""
    var size = 0
    var count = 0
    for character in text {
      let length = character.utf8.count
      if size + length > bytes || count + 1 > characters, !part.isEmpty {
        let rest = cutAtSpace(&part)
        parts.append(part)
        part = rest
        size = rest.utf8.count
        count = rest.count
      }
      if length > bytes {
        for scalar in character.unicodeScalars {
          if size + UTF8.width(scalar) > bytes, !part.isEmpty {
            parts.append(part)
            part = ""
            size = 0
          }
          part.unicodeScalars.append(scalar)
          size += UTF8.width(scalar)
        }
        count = part.count
      } else {
        part.append(character)
        size += length
        count += 1
      }
    }
    if !part.isEmpty { parts.append(part) }
    return parts
  }

  /// Shortens `part` to its last white space, when that is near the end, and returns what was cut off.
  private func cutAtSpace(_ part: inout String) -> String {
    let lookBack = part.count / 4
    guard let space = part.suffix(lookBack).lastIndex(where: \.isWhitespace) else { return "" }
    let cut = part.index(after: space)
    let rest = String(part[cut...])
    part.removeSubrange(cut...)
    return rest
  }
}
