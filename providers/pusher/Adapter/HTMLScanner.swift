/// HTML cut into tags, text and entities.
struct HTMLScanner {
  struct Tag {
    var name: String
    var attributes: [(name: String, value: String)] = []
    var closesItself = false

    subscript(name: String) -> String? { attributes.first { $0.name == name }?.value }

    func isVoid(_ names: Set<String>) -> Bool { closesItself || names.contains(name) }

    /// The address in an image's source or in a background.
    var image: String? {
      let address = name == "img" ? self["src"] : self["style"].flatMap(Self.background)
      guard let address, address.hasPrefix("https://") || address.hasPrefix("http://") else { return nil }
      return address
    }

    private static func background(_ style: String) -> String? {
      guard style.contains("background"), let open = style.firstRange(of: "url("),
        let close = style[open.upperBound...].lastIndex(of: ")")
      else { return nil }
      let quotes: Set<Character> = ["'", "\"", " "]
      let address = style[open.upperBound..<close].drop { quotes.contains($0) }
      let trimmed = address.reversed().drop { quotes.contains($0) }.reversed()
      return String(String.UnicodeScalarView(trimmed.flatMap(\.unicodeScalars)))
    }
  }

  enum Token {
    case text(ArraySlice<UInt8>)
    /// Written as an entity.
    case scalar(Unicode.Scalar)
    case open(Tag)
    case close(String)
  }

  private let bytes: [UInt8]
  private var position = 0
  private let lastEnd: Int
  /// Set when a quote was never closed: from then on quotes in tags are signs like any other.
  private var ignoresQuotes = false

  init(_ html: String) {
    bytes = Array(html.utf8)
    lastEnd = bytes.lastIndex(of: UInt8(ascii: ">")) ?? -1
  }

  mutating func next() -> Token? {
    guard position < bytes.count else { return nil }
    switch bytes[position] {
    case UInt8(ascii: "<"):
      if let token = tag() { return token }
    case UInt8(ascii: "&"):
      if let scalar = entity() { return .scalar(scalar) }
    default: break
    }
    // The first byte is text, whatever it is.
    let start = position
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "<"), bytes[position] != UInt8(ascii: "&") {
      position += 1
    }
    return .text(bytes[start..<position])
  }

  // MARK: Tags

  private mutating func tag() -> Token? {
    let start = position + 1
    guard start < bytes.count, position < lastEnd else { return nil }
    if bytes[start] == UInt8(ascii: "!") || bytes[start] == UInt8(ascii: "?") { return comment(from: start) }
    let isClose = bytes[start] == UInt8(ascii: "/")
    let nameStart = isClose ? start + 1 : start
    guard nameStart < bytes.count, Self.isLetter(bytes[nameStart]), let end = end(of: nameStart) else { return nil }
    var index = nameStart
    while index < end, !Self.isSpace(bytes[index]), bytes[index] != UInt8(ascii: "/") { index += 1 }
    let name = String(decoding: bytes[nameStart..<index], as: UTF8.self).lowercased()
    position = end + 1
    if isClose { return .close(name) }
    var tag = Tag(name: name)
    tag.closesItself = bytes[end - 1] == UInt8(ascii: "/")
    tag.attributes = attributes(from: index, to: end)
    return .open(tag)
  }

  /// A comment or a declaration, which says nothing.
  private mutating func comment(from start: Int) -> Token? {
    let isComment = bytes[start...].starts(with: "!--".utf8)
    var index = start
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: ">"),
        !isComment
          || (index >= start + 5 && bytes[index - 1] == UInt8(ascii: "-") && bytes[index - 2] == UInt8(ascii: "-"))
      {
        break
      }
      index += 1
    }
    position = min(index + 1, bytes.count)
    return .text([])
  }

  /// Where the tag ends: the first `>` that is not within quotes.
  private mutating func end(of start: Int) -> Int? {
    var quote: UInt8?
    var index = start
    while index < bytes.count {
      let byte = bytes[index]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: ">") {
        return index
      } else if !ignoresQuotes, byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      }
      index += 1
    }
    guard !ignoresQuotes else { return nil }
    // Looked for once only, or many such tags would take a time that grows with the square of their number.
    ignoresQuotes = true
    return end(of: start)
  }

  private func attributes(from start: Int, to end: Int) -> [(name: String, value: String)] {
    var attributes: [(name: String, value: String)] = []
    var index = start
    while index < end, attributes.count < 32 {
      while index < end, Self.isSpace(bytes[index]) || bytes[index] == UInt8(ascii: "/") { index += 1 }
      let nameStart = index
      while index < end, !Self.isSpace(bytes[index]), bytes[index] != UInt8(ascii: "=") { index += 1 }
      let name = String(decoding: bytes[nameStart..<index], as: UTF8.self).lowercased()
      while index < end, Self.isSpace(bytes[index]) { index += 1 }
      var value = ""
      if index < end, bytes[index] == UInt8(ascii: "=") {
        index += 1
        while index < end, Self.isSpace(bytes[index]) { index += 1 }
        (value, index) = self.value(from: index, to: end)
      }
      if !name.isEmpty { attributes.append((name, value)) }
    }
    return attributes
  }

  private func value(from start: Int, to end: Int) -> (String, next: Int) {
    guard start < end else { return ("", end) }
    let quote = bytes[start]
    let isQuoted = quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'")
    var index = isQuoted ? start + 1 : start
    let valueStart = index
    while index < end, isQuoted ? bytes[index] != quote : !Self.isSpace(bytes[index]) { index += 1 }
    let value = Self.decoded(bytes[valueStart..<index])
    return (value, isQuoted ? min(index + 1, end) : index)
  }

  // MARK: Entities

  private static func decoded(_ bytes: ArraySlice<UInt8>) -> String {
    guard bytes.contains(UInt8(ascii: "&")) else { return String(decoding: bytes, as: UTF8.self) }
    var scanner = HTMLScanner(String(decoding: bytes, as: UTF8.self))
    var text = ""
    while scanner.position < scanner.bytes.count {
      if scanner.bytes[scanner.position] == UInt8(ascii: "&"), let scalar = scanner.entity() {
        text.unicodeScalars.append(scalar)
        continue
      }
      let start = scanner.position
      scanner.position += 1
      while scanner.position < scanner.bytes.count, scanner.bytes[scanner.position] != UInt8(ascii: "&") {
        scanner.position += 1
      }
      text += String(decoding: scanner.bytes[start..<scanner.position], as: UTF8.self)
    }
    return text
  }

  private static let longestEntity = 12

  private mutating func entity() -> Unicode.Scalar? {
    let rest = bytes[(position + 1)...].prefix(Self.longestEntity)
    guard let end = rest.firstIndex(of: UInt8(ascii: ";")), end > position + 1 else { return nil }
    let name = String(decoding: bytes[(position + 1)..<end], as: UTF8.self)
    guard let scalar = Self.scalar(name) else { return nil }
    position = end + 1
    return scalar
  }

  private static func scalar(_ name: String) -> Unicode.Scalar? {
    guard name.hasPrefix("#") else { return entities[name] }
    let isHex = name.hasPrefix("#x") || name.hasPrefix("#X")
    guard let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10) else { return nil }
    return Unicode.Scalar(number) ?? "\u{fffd}"
  }

  /// Those that chat libraries write. Source: the HTML standard, 13.5.
  private static let entities: [String: Unicode.Scalar] = [
    "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": "\u{a0}", "copy": "\u{a9}", "reg": "\u{ae}",
    "hellip": "\u{2026}", "mdash": "\u{2014}", "ndash": "\u{2013}", "lsquo": "\u{2018}", "rsquo": "\u{2019}",
    "ldquo": "\u{201c}", "rdquo": "\u{201d}", "laquo": "\u{ab}", "raquo": "\u{bb}", "bull": "\u{2022}",
    "euro": "\u{20ac}", "pound": "\u{a3}", "yen": "\u{a5}", "cent": "\u{a2}", "deg": "\u{b0}", "middot": "\u{b7}",
    "times": "\u{d7}", "trade": "\u{2122}", "auml": "\u{e4}", "ouml": "\u{f6}", "uuml": "\u{fc}", "Auml": "\u{c4}",
    "Ouml": "\u{d6}", "Uuml": "\u{dc}", "szlig": "\u{df}", "eacute": "\u{e9}", "egrave": "\u{e8}", "agrave": "\u{e0}",
    "acirc": "\u{e2}", "ecirc": "\u{ea}", "ccedil": "\u{e7}", "ntilde": "\u{f1}", "aring": "\u{e5}", "oslash": "\u{f8}",
    "aelig": "\u{e6}", "iexcl": "\u{a1}", "iquest": "\u{bf}",
  ]

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0c, 0x0d].contains(byte) }
}
