import FerryCore

/// Slack's message text as plain text: mentions resolved, links written out, and only then its escapes undone, once.
struct SlackText {
  /// Names of people and channels by their identifiers.
  let people: (String) -> String?
  let channels: (String) -> String?

  /// The readable text, and who is mentioned in it.
  func plain(_ text: String) -> (text: String, mentions: [UserID]) {
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "<") || $0 == UInt8(ascii: "&") }) else { return (text, []) }
    var plain = ""
    var mentions: [UserID] = []
    var rest = text[...]
    while let open = rest.firstIndex(of: "<") {
      plain += Self.unescaped(rest[..<open])
      let after = rest[rest.index(after: open)...]
      guard let close = after.firstIndex(where: { $0 == ">" || $0 == "<" }), after[close] == ">" else {
        plain += "<"
        rest = after
        continue
      }
      plain += resolved(after[..<close], &mentions)
      rest = after[after.index(after: close)...]
    }
    return (plain + Self.unescaped(rest), mentions)
  }

  private func resolved(_ token: Substring, _ mentions: inout [UserID]) -> String {
    let parts = token.split(separator: "|", maxSplits: 1, omittingEmptySubsequences: false)
    let target = String(parts.first ?? "")
    let label = parts.count > 1 && !parts[1].isEmpty ? Self.unescaped(parts[1]) : nil
    let name = String(target.dropFirst())
    switch target.first {
    case "@":
      mentions.append(UserID(name))
      return "@" + (people(name) ?? label.map(Self.withoutMark) ?? name)
    case "#": return "#" + (label ?? channels(name) ?? name)
    case "!": return special(name, label)
    // No link has spaces: this is text that was not escaped.
    case _ where target.contains(" "): return "<\(Self.unescaped(token))>"
    default:
      let link = Self.unescaped(SlackSecrets.link(target)[...])
      let shown = link.hasPrefix("mailto:") ? String(link.dropFirst(7)) : link
      guard let label, label != shown, label != link else { return shown }
      return "\(label) (\(shown))"
    }
  }

  /// `<!here>`, `<!subteam^S1|@ops>`, `<!date^…|fallback>`.
  private func special(_ name: String, _ label: String?) -> String {
    if name.hasPrefix("date^") { return label ?? name }
    return "@" + (label.map(Self.withoutMark) ?? name.split(separator: "^").first.map(String.init) ?? name)
  }

  private static func withoutMark(_ label: String) -> String {
    label.hasPrefix("@") ? String(label.dropFirst()) : label
  }

  /// Once: `&amp;lt;` is `&lt;`.
  static func unescaped(_ text: Substring) -> String {
    guard text.utf8.contains(UInt8(ascii: "&")) else { return String(text) }
    var plain = ""
    var rest = text
    while let mark = rest.firstIndex(of: "&") {
      plain += rest[..<mark]
      rest = rest[mark...]
      if rest.hasPrefix("&lt;") {
        plain += "<"
        rest = rest.dropFirst(4)
      } else if rest.hasPrefix("&gt;") {
        plain += ">"
        rest = rest.dropFirst(4)
      } else if rest.hasPrefix("&amp;") {
        plain += "&"
        rest = rest.dropFirst(5)
      } else {
        plain += "&"
        rest = rest.dropFirst()
      }
    }
    return plain + rest
  }
}

/// What lets the bearer read files of a workspace: it stands in links of an export and goes no further.
enum SlackSecrets {
  private static let parameters: Set<Substring> = ["t", "ex", "is", "hm", "token", "pub_secret", "x-amz-signature"]

  /// A link without its signed parameters.
  static func link(_ link: String) -> String {
    guard let mark = link.firstIndex(of: "?") else { return link }
    let end = link[mark...].firstIndex(of: "#") ?? link.endIndex
    let kept = link[link.index(after: mark)..<end].split(whereSeparator: { $0 == "&" || $0 == ";" }).filter {
      $0 != "amp" && !parameters.contains($0.prefix { $0 != "=" })
    }
    return "\(link[..<mark])\(kept.isEmpty ? "" : "?")\(kept.joined(separator: "&"))\(link[end...])"
  }

  /// JSON text without tokens: whatever field they stand in, their characters are gone.
  static func removed(from json: [UInt8]) -> [UInt8] {
    let mark = Array("xox".utf8)
    guard json.count > 6, json.withUnsafeBytes({ bytes in Self.mayContain(mark, bytes) }) else { return json }
    var kept: [UInt8] = []
    var index = 0
    while index < json.count {
      if index + 4 < json.count, json[index..<index + 3].elementsEqual(mark), isLetter(json[index + 3]),
        json[index + 4] == UInt8(ascii: "-") || json[index + 4] == UInt8(ascii: ".")
      {
        while index < json.count, isLetter(json[index]) || [0x2d, 0x2e, 0x5f, 0x25].contains(json[index]) { index += 1 }
      } else {
        kept.append(json[index])
        index += 1
      }
    }
    return kept
  }

  private static func mayContain(_ mark: [UInt8], _ bytes: UnsafeRawBufferPointer) -> Bool {
    for index in 0..<max(bytes.count - 2, 0)
    where bytes[index] == mark[0] && bytes[index + 1] == mark[1] && bytes[index + 2] == mark[2] { return true }
    return false
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
  }
}
