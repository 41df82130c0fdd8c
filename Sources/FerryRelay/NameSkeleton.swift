/// What a name looks like: two names with the same skeleton can be taken for one another.
///
/// A small table, in the spirit of Unicode TS 39: case, width, styles of letters, the letters of other scripts that look
/// like Latin ones, white space and invisible marks make no difference. Not a proof that two names differ.
enum NameSkeleton {
  static func of(_ name: String) -> String {
    var plain = ""
    for character in name {
      if let ascii = character.asciiValue {
        plain.unicodeScalars.append(Unicode.Scalar(ascii))
      } else if let decomposed = decompositions[character] {
        plain += decomposed
      } else {
        plain += String(character)
      }
    }
    var skeleton = ""
    for scalar in plain.unicodeScalars where !scalar.properties.isWhitespace && !ShownText.isInvisible(scalar) {
      for lower in unstyled(scalar).properties.lowercaseMapping.unicodeScalars {
        skeleton.unicodeScalars.append(lookAlikes[lower] ?? lower)
      }
    }
    guard skeleton.utf8.contains(UInt8(ascii: "r")) || skeleton.utf8.contains(UInt8(ascii: "v")) else {
      return skeleton
    }
    return joined(skeleton)
  }

  /// `rn` looks like `m`, and `vv` like `w`.
  private static func joined(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
      switch (result.last, scalar) {
      case ("r", "n"):
        result.removeLast()
        result.append("m")
      case ("v", "v"):
        result.removeLast()
        result.append("w")
      default: result.append(scalar)
      }
    }
    return String(result)
  }

  /// Full-width, mathematical, circled and small-capital letters and digits as plain ones.
  private static func unstyled(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    let value = scalar.value
    switch value {
    case ..<0x80: return scalar
    case 0xff01...0xff5e: return Unicode.Scalar(value - 0xff01 + 0x21) ?? scalar
    case 0x24b6...0x24cf: return letter(value - 0x24b6) ?? scalar
    case 0x24d0...0x24e9: return letter(value - 0x24d0) ?? scalar
    case 0x1f130...0x1f149: return letter(value - 0x1f130) ?? scalar
    case 0x1f150...0x1f169: return letter(value - 0x1f150) ?? scalar
    case 0x1f170...0x1f189: return letter(value - 0x1f170) ?? scalar
    // Thirteen styles of the 52 letters, one after the other.
    case 0x1d400...0x1d6a3: return letter((value - 0x1d400) % 26) ?? scalar
    case 0x1d7ce...0x1d7ff: return Unicode.Scalar((value - 0x1d7ce) % 10 + 0x30) ?? scalar
    default: return scalar
    }
  }

  private static func letter(_ index: UInt32) -> Unicode.Scalar? { Unicode.Scalar(0x61 + index) }

  /// Lower-case letters of other scripts, and digits, that look like Latin letters.
  private static let lookAlikes: [Unicode.Scalar: Unicode.Scalar] = {
    let table: [(Unicode.Scalar, String)] = [
      ("a", "аɑα"), ("b", "ЬьƄ"), ("c", "сϲᴄ"), ("d", "ԁ"), ("e", "еєε"), ("f", "ſƒ"), ("g", "ɡց"), ("h", "һհн"),
      ("j", "јϳ"), ("k", "кκ"), ("l", "i1|ıіӏɩιⅰⅼ"), ("m", "мⅿ"), ("n", "ոпη"), ("o", "0оοσօ๐ჿ"), ("p", "рρ"),
      ("q", "ԛգ"), ("r", "гᴦ"), ("s", "ѕꜱ5"), ("t", "тτ"), ("u", "υսц"), ("v", "νѵᴠ"), ("w", "ԝωшɯ"), ("x", "хχ"),
      ("y", "уүγ"), ("z", "ᴢ2"),
    ]
    var map: [Unicode.Scalar: Unicode.Scalar] = [:]
    for (latin, others) in table { for other in others.unicodeScalars { map[other] = latin } }
    return map
  }()

  /// Letters with marks that are also one character, as letter and mark: the two ways of writing one name.
  private static let decompositions: [Character: String] = {
    var map: [Character: String] = [:]
    let marks: [Unicode.Scalar] = [
      "\u{300}", "\u{301}", "\u{302}", "\u{303}", "\u{304}", "\u{306}", "\u{307}", "\u{308}", "\u{30a}", "\u{30b}",
      "\u{30c}", "\u{323}", "\u{327}", "\u{328}",
    ]
    for letter in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".unicodeScalars {
      for mark in marks {
        var text = String.UnicodeScalarView()
        text.append(letter)
        text.append(mark)
        // Equal to the letter written as one character, where there is one.
        map[Character(String(text))] = String(text)
      }
    }
    return map
  }()
}
