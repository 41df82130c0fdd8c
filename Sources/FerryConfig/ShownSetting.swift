import FerryCore

/// One setting of the configuration as people may see it.
package struct ShownSetting: Sendable, Hashable, Encodable {
  package enum Kind: String, Sendable, Encodable {
    /// As the file has it, with references (`${NAME}`, `file:PATH`) as they are written.
    case written
    /// The file does not say it.
    case `default`
    /// A secret: the value is not here.
    case masked
  }

  /// Such as `bridges.lobby.between`.
  package let key: String
  package let value: String
  package let kind: Kind
}

extension Configuration {
  /// Every setting in the order of the file, then the defaults of the relay. Nothing that a variable or a file stands
  /// for is in it, and no value of a key that holds secrets: what is not certainly harmless is masked.
  package var shown: [ShownSetting] {
    var shown: [ShownSetting] = []
    Self.show(node, key: "", isSecret: false, into: &shown)
    /// Behind what the file says in the same section.
    func add(_ section: String, _ key: String, _ value: String) {
      let key = "\(section).\(key)"
      guard !shown.contains(where: { $0.key == key }) else { return }
      let last = shown.lastIndex { $0.key.hasPrefix(section + ".") }
      shown.insert(ShownSetting(key: key, value: value, kind: .default), at: last.map { $0 + 1 } ?? shown.count)
    }
    add("relay", "listen", relay.listen.description)
    add("relay", "journal", relay.journal)
    add("relay", "image_bytes", String(relay.imageBytes))
    add("relay", "retention", relay.retention.map { "\($0.components.seconds / 86_400)d" } ?? "forever")
    add("relay", "spool_bytes", String(relay.spoolBytes))
    add("relay", "strip_location", String(relay.stripLocation))
    add("relay", "hop_limit", String(relay.hopLimit))
    add("relay", "requests_per_client", String(relay.requestsPerClient))
    for bridge in bridges {
      let section = "bridges.\(bridge.name)"
      add(section, "mirror", bridge.mirror.map(\.rawValue).sorted().joined(separator: ", "))
      add(section, "author", bridge.author)
      add(section, "distinguish", String(bridge.distinguish))
      add(section, "fallback.edits", bridge.editFallback.rawValue)
      add(section, "fallback.deletes", bridge.deleteFallback.rawValue)
    }
    return shown
  }

  private static func show(_ node: ConfigNode, key: String, isSecret: Bool, into shown: inout [ShownSetting]) {
    switch node.content {
    case .scalar(let text, _):
      shown.append(setting(key, text, isSecret: isSecret))
    case .list(let items):
      // Texts in one line; anything else under the numbers of its items.
      let texts = items.compactMap { item in
        if case .scalar(let text, _) = item.content { setting(key, text, isSecret: isSecret) } else { nil }
      }
      if texts.count == items.count {
        let kind: ShownSetting.Kind = texts.contains { $0.kind == .masked } ? .masked : .written
        shown.append(ShownSetting(key: key, value: texts.map(\.value).joined(separator: ", "), kind: kind))
      } else {
        for (index, item) in items.enumerated() {
          show(item, key: "\(key).\(index + 1)", isSecret: isSecret, into: &shown)
        }
      }
    case .mapping(let entries):
      for entry in entries {
        let inner = key.isEmpty ? entry.key : "\(key).\(entry.key)"
        // Below `accounts` and `bridges` stand names that the user made, whatever they look like.
        let isName = ["accounts", "bridges", "identities"].contains(key)
        show(entry.node, key: inner, isSecret: isSecret || (!isName && holdsSecrets(entry.key)), into: &shown)
      }
    }
  }

  private static let mask = "••••••"

  private static func setting(_ key: String, _ text: String, isSecret: Bool) -> ShownSetting {
    if isSecret {
      // A reference says where the secret is, not what it is.
      return isReference(text)
        ? ShownSetting(key: key, value: text, kind: .written) : ShownSetting(key: key, value: mask, kind: .masked)
    }
    // A user's name and password in a URL, or something signed after the question mark.
    if let scheme = text.firstRange(of: "://"), text[scheme.upperBound...].contains(where: { "@?#".contains($0) }) {
      return ShownSetting(key: key, value: text[..<scheme.upperBound] + mask, kind: .masked)
    }
    return ShownSetting(key: key, value: text, kind: .written)
  }

  private static func isReference(_ text: String) -> Bool {
    if text.hasPrefix("${"), text.hasSuffix("}") {
      return text.dropFirst(2).dropLast().utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x5f
      }
    }
    return text.hasPrefix("file:") && text.utf8.count > 5
  }

  /// Held by a test against the schema, which says which keys hold secrets.
  private static func holdsSecrets(_ key: String) -> Bool {
    let key = key.lowercased()
    let parts = ["token", "secret", "password", "key", "credential", "headers", "private", "passphrase", "signature"]
    return parts.contains { key.contains($0) }
  }
}
