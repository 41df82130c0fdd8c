import FerryCore

/// What people wrote, made safe to stand beside what others wrote.
enum ShownText {
  /// Longer names are cut: nobody has one, and they would hide the message.
  static let nameLimit = 100

  /// A name on one line: without controls, marks that turn the direction of writing, and invisible characters. Empty when
  /// nothing is left.
  static func name(_ text: String) -> String {
    var clean = ""
    var count = 0
    for scalar in text.unicodeScalars where !isUnwanted(scalar) {
      if scalar.properties.isWhitespace {
        if !clean.isEmpty, clean.unicodeScalars.last != " " { clean.append(" ") }
      } else {
        clean.unicodeScalars.append(scalar)
      }
      count += 1
      // Scalars and not characters: one character may be a thousand marks on top of one another.
      if count > 4 * nameLimit { break }
    }
    if clean.utf8.count > nameLimit, clean.count > nameLimit { clean = String(clean.prefix(nameLimit)) }
    if clean.unicodeScalars.last == " " { clean.unicodeScalars.removeLast() }
    // Joiners belong into words and emoji; alone they are nothing.
    return clean.unicodeScalars.allSatisfy { isInvisible($0) } ? "" : clean
  }

  private static func isUnwanted(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09, 0x0a, 0x0d, 0x2028, 0x2029: false  // White space: one blank.
    case 0x200c, 0x200d: false
    case 0xe0020...0xe007f: false  // Tags: flags are made of them.
    default:
      switch scalar.properties.generalCategory {
      case .control, .format, .unassigned, .surrogate: true
      default: isInvisible(scalar)
      }
    }
  }

  /// Takes no ink, whatever its category says.
  static func isInvisible(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b...0x180f, 0x200b...0x200f, 0x2060...0x206f, 0x2800, 0x3164,
      0xfeff, 0xffa0, 0xfe00...0xfe0f, 0xe0000...0xe0fff:
      true
    default: false
    }
  }

  /// A body with all that it holds, and with every change of the writing direction ended in its own line, so that it
  /// turns nothing but itself. The same text when there is nothing to end.
  static func body(_ text: String) -> String {
    // All of them begin with this byte in UTF-8, and few texts hold it.
    guard text.utf8.contains(0xe2) else { return text }
    var result = String.UnicodeScalarView()
    var open: [Unicode.Scalar] = []
    var isChanged = false
    func close() {
      isChanged = isChanged || !open.isEmpty
      while let end = open.popLast() { result.append(end) }
    }
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x202a, 0x202b, 0x202d, 0x202e: open.append("\u{202c}")
      case 0x2066, 0x2067, 0x2068: open.append("\u{2069}")
      case 0x202c: if open.last == scalar { open.removeLast() }
      // Ends the innermost isolate, and what was opened in it and not ended.
      case 0x2069: if let index = open.lastIndex(of: scalar) { open.removeSubrange(index...) }
      case 0x0a, 0x0d, 0x85, 0x2029: close()
      default: break
      }
      result.append(scalar)
    }
    close()
    return isChanged ? String(result) : text
  }
}
