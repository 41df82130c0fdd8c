package import FerryCore

/// A set of addresses that mirror one another: who is copied where, and what.
package struct Bridge: Sendable, Equatable {
  package enum Mirrored: String, Sendable, CaseIterable {
    case messages, edits, deletes, typing, images, members, reads, reactions
  }

  /// What is done where the destination cannot edit or delete.
  package enum Fallback: String, Sendable { case note, skip }

  package let name: BridgeName
  /// Source to destinations. An address that only receives is no key.
  package var routes: [Address: [Address]]
  package let mirror: Set<Mirrored>
  package let author: AuthorTemplate
  package let editFallback: Fallback
  package let deleteFallback: Fallback
  /// Whether authors whose names look alike are told apart.
  package let distinguish: Bool

  package init(
    name: BridgeName, routes: [Address: [Address]], mirror: Set<Mirrored>,
    author: AuthorTemplate = AuthorTemplate("{name}"), editFallback: Fallback = .note, deleteFallback: Fallback = .note,
    distinguish: Bool = true
  ) {
    self.name = name
    self.routes = routes
    self.mirror = mirror
    self.author = author
    self.editFallback = editFallback
    self.deleteFallback = deleteFallback
    self.distinguish = distinguish
  }

  /// Every address to every other.
  package static func mesh(_ addresses: [Address]) -> [Address: [Address]] {
    Dictionary(uniqueKeysWithValues: addresses.map { source in (source, addresses.filter { $0 != source }) })
  }
}

/// How a copy's author is shown: `{name}`, `{person}`, `{id}`, `{account}`, `{channel}` and `{bridge}` are replaced.
package struct AuthorTemplate: Sendable, Equatable {
  /// As configured.
  package let text: String

  package init(_ text: String) { self.text = text }

  /// The author of a copy. The id carries the account, so that nobody at the destination has the same. `{person}` is the
  /// name in `identities`, or else the author's own.
  package func author(
    for original: Author, at source: Address, in bridge: BridgeName, identities: Identities = Identities()
  ) -> Author {
    let values = [
      "name": original.name, "id": original.id.rawValue, "account": source.account.rawValue,
      "channel": source.channel.rawValue, "bridge": bridge.rawValue,
      "person": identities.person(original.id, at: source.account) ?? original.name,
    ]
    let names = [Self.replace(text, values), original.id.rawValue, "somebody"].lazy.map(ShownText.name)
    return Author(
      id: UserID("\(source.account):\(original.id)"), name: names.first { !$0.isEmpty } ?? "somebody",
      avatar: original.avatar)
  }

  /// One pass, so that a name that looks like a placeholder stays a name.
  private static func replace(_ template: String, _ values: [String: String]) -> String {
    var result = ""
    var rest = template[...]
    while let open = rest.firstIndex(of: "{") {
      result += rest[..<open]
      let after = rest.index(after: open)
      if let close = rest[after...].firstIndex(of: "}"), let value = values[String(rest[after..<close])] {
        result += value
        rest = rest[rest.index(after: close)...]
      } else {
        result += "{"
        rest = rest[after...]
      }
    }
    return result + rest
  }
}
