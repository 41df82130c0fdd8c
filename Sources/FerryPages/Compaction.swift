/// Takes out of a page's file what only its readers need: the indentation, empty lines, lines that are comments, and
/// spaces that mean nothing.
///
/// Nothing else is touched, and lines stay lines, so that an error's line is one of the served file's. The files are
/// written for it: no text of theirs goes over several lines, and a comment that begins a line ends one.
enum Compaction {
  enum Kind { case markup, style, script }

  static func compact(_ bytes: [UInt8], _ kind: Kind) -> [UInt8] {
    var kept: [String] = []
    var isInComment = false
    for raw in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      let line = trimmed(raw)
      if isInComment {
        isInComment = !line.hasSuffix("*/")
      } else if kind == .markup {
        if !line.isEmpty { kept.append(String(line)) }
      } else if line.hasPrefix("/*") {
        isInComment = !line.hasSuffix("*/")
      } else if !line.isEmpty, !(kind == .script && line.hasPrefix("//")) {
        kept.append(kind == .style ? tight(line) : tightScript(line))
      }
    }
    return Array((kept.joined(separator: "\n") + "\n").utf8)
  }

  private static func trimmed(_ line: Substring) -> Substring {
    var line = line
    while line.first == " " || line.first == "\t" { line.removeFirst() }
    while line.last == " " || line.last == "\t" || line.last == "\r" { line.removeLast() }
    return line
  }

  /// Without the spaces beside signs that need none. A line with a text or a regular expression in it stays as it is.
  private static func tightScript(_ line: Substring) -> String {
    guard !line.utf8.contains(where: { "'\"`/".utf8.contains($0) }) else { return String(line) }
    let signs = Set("{}()[];,=<>?:&|*%!".utf8)
    let bytes = Array(line.utf8)
    var tight: [UInt8] = []
    for (index, byte) in bytes.enumerated() {
      let isSpace = byte == UInt8(ascii: " ")
      if isSpace, tight.last.map(signs.contains) == true || index + 1 < bytes.count && signs.contains(bytes[index + 1])
      {
        continue
      }
      tight.append(byte)
    }
    return String(decoding: tight, as: UTF8.self)
  }

  /// Without the spaces that a style sheet does not need, outside of texts in quotation marks.
  private static func tight(_ line: Substring) -> String {
    var tight = ""
    var quote: Character?
    var before: Character = "{"
    for character in line {
      if quote == nil, character == " ", ":;,{}".contains(before) { continue }
      if quote == nil, "{}".contains(character) {
        if before == " " { tight.removeLast() }
        if character == "}", tight.last == ";" { tight.removeLast() }
      }
      if character == "\"" { quote = quote == nil ? character : nil }
      tight.append(character)
      before = character
    }
    return tight
  }
}
