package import FerryCore

/// Who is who across accounts, from `identities` of the configuration: for mentions and authors. A pure value.
package struct Identities: Sendable, Equatable {
  /// What somebody may be called at one account, in lower case, and whose name it is.
  private struct Names: Sendable, Equatable {
    var people: [String: String] = [:]
    /// Of all names, in characters, longest first.
    var lengths: [Int] = []
  }

  private let ids: [String: [AccountName: UserID]]
  private let names: [AccountName: Names]

  /// People's names, and the id that each has at each account.
  package init(_ people: [String: [AccountName: UserID]] = [:]) {
    ids = people
    var names: [AccountName: Names] = [:]
    for account in Set(people.values.flatMap(\.keys)) {
      var known: [String: String] = [:]
      for person in people.keys { known[person.lowercased()] = person }
      // An id at the account comes before somebody else's name that reads the same.
      for (person, ids) in people { if let id = ids[account] { known[id.rawValue.lowercased()] = person } }
      names[account] = Names(people: known, lengths: Set(known.keys.map(\.count)).sorted(by: >))
    }
    self.names = names
  }

  package var isEmpty: Bool { ids.isEmpty }

  /// Who has this id at this account.
  package func person(_ id: UserID, at account: AccountName) -> String? {
    guard let person = names[account]?.people[id.rawValue.lowercased()],
      ids[person]?[account]?.rawValue.lowercased() == id.rawValue.lowercased()
    else { return nil }
    return person
  }

  package func id(of person: String, at account: AccountName) -> UserID? { ids[person]?[account] }

  /// The text with every `@name` of a person who has an id at `destination` turned into `@id`.
  ///
  /// Names are those at `source` and those of `identities`, in any case; of several the longest counts, and only whole
  /// words. What stands in code or in a URL is left alone.
  package func rewrite(_ text: String, from source: AccountName, to destination: AccountName) -> String {
    guard source != destination, let names = names[source], text.utf8.contains(UInt8(ascii: "@")) else { return text }
    var result = ""
    var rest = text[...]
    var isWordStart = true
    while let first = rest.first {
      if first == "`", let code = Self.code(rest) {
        result += rest[..<code]
        rest = rest[code...]
        isWordStart = true
        continue
      }
      if isWordStart, let url = Self.url(rest) {
        result += rest[..<url]
        rest = rest[url...]
        isWordStart = false
        continue
      }
      if first == "@", Self.mayPrecede(result.last), let (end, person) = Self.name(rest.dropFirst(), names),
        let id = ids[person]?[destination]
      {
        result += "@\(id)"
        rest = rest[end...]
      } else {
        result.append(first)
        rest = rest.dropFirst()
      }
      isWordStart = first.isWhitespace
    }
    return result
  }

  private static func name(_ text: Substring, _ names: Names) -> (Substring.Index, String)? {
    let word = text.prefix(names.lengths.first ?? 0)
    for length in names.lengths {
      guard let end = text.index(text.startIndex, offsetBy: length, limitedBy: word.endIndex) else { continue }
      if let person = names.people[text[..<end].lowercased()], mayFollow(text[end...]) { return (end, person) }
    }
    return nil
  }

  private static func isWord(_ character: Character?) -> Bool {
    guard let character else { return false }
    return character.isLetter || character.isNumber || character == "_"
  }

  /// Not inside a word, an e-mail address or a path.
  private static func mayPrecede(_ character: Character?) -> Bool {
    !isWord(character) && character != "@" && character != "/"
  }

  /// A name ends where no more of a word follows, nor what joins words to longer names.
  private static func mayFollow(_ text: Substring) -> Bool {
    guard let next = text.first else { return true }
    if isWord(next) { return false }
    return !(["-", ".", "@"].contains(next) && isWord(text.dropFirst().first))
  }

  /// Where the code that starts here ends: three backticks up to three, or to the end; one up to one in the same line.
  private static func code(_ text: Substring) -> Substring.Index? {
    if text.hasPrefix("```") {
      var rest = text.dropFirst(3)
      while !rest.isEmpty, !rest.hasPrefix("```") { rest = rest.dropFirst() }
      return rest.index(rest.startIndex, offsetBy: 3, limitedBy: rest.endIndex) ?? rest.endIndex
    }
    let line = text.dropFirst().prefix { !$0.isNewline }
    return line.firstIndex(of: "`").map { text.index(after: $0) }
  }

  /// Where the word that starts here ends, when it is or holds a URL.
  private static func url(_ text: Substring) -> Substring.Index? {
    let word = text.prefix { !$0.isWhitespace }
    guard word.hasPrefix("www.") || word.contains("://") else { return nil }
    return word.endIndex
  }
}
