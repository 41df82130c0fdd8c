/// Cuts a body that is too long for a destination into parts, nothing lost: the parts joined are the body (G9).
package struct TextSplitter: Sendable {
  private let bytes: Int
  private let characters: Int
  private let isJSON: Bool

  /// Nil limits do not bind. With `isJSON` the bytes are those of the text in JSON.
  package init(bytes: Int?, characters: Int?, isJSON: Bool = false) {
    self.bytes = bytes ?? .max
    self.characters = characters ?? .max
    self.isJSON = isJSON
  }

  package init(_ capabilities: Capabilities) {
    self.init(bytes: capabilities.bodyBytes, characters: capabilities.bodyCharacters, isJSON: capabilities.bodyIsJSON)
  }

  /// At least one part. Cuts after white space where some lies in the last quarter of a part, and else between
  /// characters (grapheme clusters). A single character longer than the limit in bytes is cut between scalars.
  package func parts(of text: String) -> [String] {
    if size(of: text.utf8) <= bytes, text.utf8.count <= characters || text.count <= characters { return [text] }
    var parts: [String] = []
    var part = ""
    var size = 0
    var count = 0
    for character in text {
      let length = self.size(of: character.utf8)
      if size + length > bytes || count + 1 > characters, !part.isEmpty {
        var rest = cutAtSpace(&part)
        if self.size(of: rest.utf8) + length > bytes {
          // A long character would not fit behind what was cut off.
          part += rest
          rest = ""
        }
        parts.append(part)
        part = rest
        size = self.size(of: rest.utf8)
        count = rest.count
      }
      if length > bytes {
        for scalar in character.unicodeScalars {
          let width = self.size(of: String(scalar).utf8)
          if size + width > bytes, !part.isEmpty {
            parts.append(part)
            part = ""
            size = 0
          }
          part.unicodeScalars.append(scalar)
          size += width
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

  private func size(of text: some Collection<UInt8>) -> Int {
    guard isJSON else { return text.count }
    return text.reduce(0) { size, byte in
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x09, 0x0a, 0x0c, 0x0d: size + 2
      case 0..<0x20: size + 6
      default: size + 1
      }
    }
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
