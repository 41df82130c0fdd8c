import FerryCore

/// Texts as they are compared, from strict to loose, and numbers for them that are the same within this process.
enum TextForm {
  /// Of bytes as they are.
  static func hash(_ text: String, _ salt: Int64...) -> Int64 {
    var hasher = Hasher()
    for salt in salt { hasher.combine(salt) }
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    return Int64(hasher.finalize())
  }

  /// The same for texts that are canonically equivalent and differ in line ends only: Swift hashes strings so.
  static func normalHash(_ text: String, _ salt: Int64...) -> Int64 {
    var hasher = Hasher()
    for salt in salt { hasher.combine(salt) }
    hasher.combine(normal(text))
    return Int64(hasher.finalize())
  }

  /// Line ends as line feeds, none at the end.
  static func normal(_ text: String) -> String {
    var scalars = String.UnicodeScalarView()
    var afterReturn = false
    for scalar in text.unicodeScalars {
      if scalar == "\r" {
        scalars.append("\n")
      } else if !(scalar == "\n" && afterReturn) {
        scalars.append(scalar)
      }
      afterReturn = scalar == "\r"
    }
    while scalars.last == "\n" { scalars.removeLast() }
    return String(scalars)
  }

  /// Letters, digits and URLs, and one token for any emoji, however it is written: what survives every change of markup.
  static func skeleton(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    var rest = Array(normal(text).unicodeScalars)[...]
    while let scalar = rest.first {
      if let end = urlEnd(rest) {
        result.append(contentsOf: rest[..<end])
        rest = rest[end...]
      } else if let end = shortcodeEnd(rest) {
        result.append(emojiToken)
        rest = rest[end...]
      } else if isEmoji(scalar) {
        result.append(emojiToken)
        rest = afterEmoji(rest)
      } else {
        if scalar.properties.isAlphabetic || scalar.properties.numericType != nil { result.append(scalar) }
        rest = rest.dropFirst()
      }
    }
    return String(result).lowercased()
  }

  /// Stands for any emoji; the letter would not do, it may be text.
  private static let emojiToken: Unicode.Scalar = "\u{FFFC}"

  private static func isEmoji(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value > 0x2000 && scalar.properties.isEmoji
  }

  private static func isModifier(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "\u{FE0F}" || scalar == "\u{200D}" || scalar == "\u{20E3}" || scalar.properties.isEmojiModifier
  }

  /// Behind one emoji: its modifiers, what is joined to it, and the second half of a flag belong to it.
  private static func afterEmoji(_ emoji: ArraySlice<Unicode.Scalar>) -> ArraySlice<Unicode.Scalar> {
    var rest = emoji.dropFirst()
    if emoji.first.map(isRegional) == true, rest.first.map(isRegional) == true { rest = rest.dropFirst() }
    var last: Unicode.Scalar?
    while let scalar = rest.first, isModifier(scalar) || (last == "\u{200D}" && isEmoji(scalar)) {
      last = scalar
      rest = rest.dropFirst()
    }
    return rest
  }

  private static func isRegional(_ scalar: Unicode.Scalar) -> Bool { (0x1F1E6...0x1F1FF).contains(scalar.value) }

  private static func urlEnd(_ rest: ArraySlice<Unicode.Scalar>) -> Int? {
    guard rest.starts(with: Array("http://".unicodeScalars)) || rest.starts(with: Array("https://".unicodeScalars))
    else { return nil }
    return rest.firstIndex { $0.properties.isWhitespace || "<>|\")]".unicodeScalars.contains($0) } ?? rest.endIndex
  }

  /// `:name:`, a name of an emoji.
  private static func shortcodeEnd(_ rest: ArraySlice<Unicode.Scalar>) -> Int? {
    guard rest.first == ":" else { return nil }
    var index = rest.startIndex + 1
    while index < rest.endIndex, index - rest.startIndex < 60 {
      let scalar = rest[index]
      if scalar == ":" { return index > rest.startIndex + 2 ? index + 1 : nil }
      guard scalar.isASCII, scalar.properties.isAlphabetic || "0123456789_-+'".unicodeScalars.contains(scalar) else {
        return nil
      }
      index += 1
    }
    return nil
  }

  /// The name and the text of a body that begins with its author: `ada: hi`, `[ada] hi`, `<ada> hi`, `**ada**: hi`.
  static func prefixed(_ text: String) -> (name: String, text: String)? {
    for (open, close) in [("[", "] "), ("<", "> "), ("**", "**: "), ("*", "*: "), ("", ": "), ("", "\n")] {
      guard text.hasPrefix(open), let end = text.dropFirst(open.count).firstRange(of: close) else { continue }
      let name = text[text.index(text.startIndex, offsetBy: open.count)..<end.lowerBound]
      guard !name.isEmpty, name.count <= 80, !name.contains(where: \.isNewline) else { continue }
      return (String(name), String(text[end.upperBound...]))
    }
    return nil
  }

  /// Without the mark that says which part this is: `(1/3)`, `[1/3]`, `1/3`, in front or behind.
  static func withoutPartMark(_ text: String) -> String {
    if let match = text.firstMatch(of: #/^[\(\[]?\d{1,3}/\d{1,3}[\)\]]?[:]?\s+/#) {
      return String(text[match.range.upperBound...])
    }
    if let match = text.firstMatch(of: #/\s+[\(\[]\d{1,3}/\d{1,3}[\)\]]$/#) {
      return String(text[..<match.range.lowerBound])
    }
    return text
  }

  /// How much of the words of two texts is the same, from 0 to 1.
  static func likeness(_ left: String, _ right: String) -> Double {
    let left = Set(left.split(whereSeparator: \.isWhitespace).prefix(500))
    let right = Set(right.split(whereSeparator: \.isWhitespace).prefix(500))
    guard !left.isEmpty, !right.isEmpty else { return 0 }
    return Double(left.intersection(right).count) / Double(max(left.count, right.count))
  }
}
