import FerryConfig
import FerryCore
import Testing

/// A file that must be refused, and the exact words.
struct BadFile: Sendable, CustomTestStringConvertible {
  let what: String
  let text: String
  let message: String
  var testDescription: String { what }

  init(_ what: String, _ text: String, _ message: String) {
    self.what = what
    self.text = text
    self.message = message
  }
}

private let accounts = """
  accounts:
    here: { provider: local, url: "http://127.0.0.1:8080", token: t }
    site: { provider: pusher, app_id: "1", key: k, secret: s }

  """

private let badYAML = [
  BadFile("an empty file", "", "1:1: the file is empty"),
  BadFile("only a comment", "# nothing\n", "1:1: the file is empty"),
  BadFile("a list", "- a\n", "1:1: a configuration starts with one of its keys, such as accounts:"),
  BadFile("a word", "accounts", "1:1: a configuration starts with one of its keys, such as accounts:"),
  BadFile("a tab as indentation", "accounts:\n\there: 1\n", "2:1: a tab cannot stand here; indent with spaces"),
  BadFile(
    "a bracket left open", "accounts: [a\nbridges: b\n",
    "2:8: this is not YAML: did not find expected ',' or ']' while parsing a flow sequence that starts in line 1"),
  BadFile(
    "a quote left open", "relay:\n  journal: \"ferry\n",
    "3:1: this is not YAML: found unexpected end of stream while scanning a quoted scalar that starts in line 2"),
  BadFile(
    "a duplicate key", "relay: {}\nserve: {}\nrelay: {}\n", "3:1: duplicate key \"relay\"; it is first set in line 1"),
  BadFile(
    "a duplicate key deep down", accounts + "bridges:\n  a: { between: [], between: [] }\n",
    "5:21: duplicate key \"between\"; it is first set in line 5"),
  BadFile("an anchor", "accounts: &all {}\n", "1:11: anchors (&name) are not supported; write the value out"),
  BadFile("an alias", "accounts: *all\n", "1:11: aliases (*name) are not supported; write the value out"),
  BadFile(
    "a bomb of aliases", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
    "1:4: anchors (&name) are not supported; write the value out"),
  BadFile("a merge key", "relay:\n  <<: {}\n", "2:3: merge keys (<<) are not supported; write the keys out"),
  BadFile("a tag", "relay: !!map {}\n", "1:8: tags (!name) are not supported"),
  BadFile("a mapping as a key", "? {a: b}\n: c\n", "1:3: a key must be text"),
  BadFile(
    "a key without a name", ": c\n",
    "1:1: this is not YAML: did not find expected key while parsing a block mapping that starts in line 1"),
  BadFile(
    "a second document", "relay: {}\n---\nserve: {}\n", "2:1: a second document starts here; a configuration is one"),
  BadFile("a NUL character", "relay: { journal: \"a\\0b\" }\n", "1:19: text must not hold a NUL character"),
  BadFile(
    "a control character", "relay:\n  journal: caf\u{e9}\u{7}\n",
    "2:16: this is not YAML: control characters are not allowed"),
  BadFile(
    "lists in lists without end", String(repeating: "[", count: 100_000),
    "1:33: this is nested deeper than 32 levels"),
  BadFile(
    "mappings in mappings without end", (0..<40).map { String(repeating: " ", count: $0) + "a:\n" }.joined(),
    "33:33: this is nested deeper than 32 levels"),
  BadFile("a huge file", String(repeating: "#", count: (1 << 20) + 1), "1:1: the file is larger than 1048576 bytes"),
]

private let badSections = [
  BadFile("a misspelt section", "acounts: {}\n", "1:1: unknown key \"acounts\"; did you mean \"accounts\"?"),
  BadFile(
    "an unknown section", "plugins: {}\n",
    "1:1: unknown key \"plugins\"; valid here: accounts, bridges, identities, relay, serve"),
  BadFile(
    "a section without content", "accounts:\n",
    "1:10: \"accounts\" has no value; it must be a mapping of keys to values"),
  BadFile("accounts as a list", "accounts: [a]\n", "1:11: \"accounts\" must be a mapping of keys to values"),
  BadFile(
    "an account's name in capitals", "accounts:\n  Here: {}\n",
    "2:3: the name of an account holds up to 64 of a-z, 0-9, _ and -, unlike \"Here\""),
  BadFile("an account without provider", "accounts:\n  here: {}\n", "2:9: in \"here\": missing key \"provider\""),
  BadFile(
    "an account with a misspelt provider", "accounts:\n  here:\n    token: a\n    provder: local\n",
    "4:5: unknown key \"provder\"; did you mean \"provider\"?"),
  BadFile(
    "a bridge's name with a space", "bridges:\n  my lobby: {}\n",
    "2:3: the name of a bridge holds up to 64 of a-z, 0-9, _ and -, unlike \"my lobby\""),
  BadFile(
    "a bridge to nowhere", accounts + "bridges:\n  a: {}\n",
    "5:6: the bridge \"a\" needs \"between\", or \"from\" and \"to\""),
  BadFile(
    "a bridge with from alone", accounts + "bridges:\n  a: { from: here:x }\n",
    "5:6: the bridge \"a\" needs \"between\", or \"from\" and \"to\""),
  BadFile(
    "a bridge with between and to", accounts + "bridges:\n  a: { between: [here:x, site:y], to: site:z }\n",
    "5:39: a bridge has either \"between\", or \"from\" and \"to\""),
  BadFile(
    "a bridge of one", accounts + "bridges:\n  a: { between: [here:x] }\n",
    "5:17: a bridge joins at least two addresses"),
  BadFile(
    "a bridge that does not list", accounts + "bridges:\n  a: { between: here:x }\n", "5:17: \"between\" must be a list"
  ),
  BadFile(
    "an unknown account", accounts + "bridges:\n  a: { between: [here:x, sitee:y] }\n",
    "5:26: unknown account \"sitee\"; did you mean \"site\"?"),
  BadFile(
    "an unknown account unlike any", accounts + "bridges:\n  a: { between: [here:x, elsewhere:y] }\n",
    "5:26: unknown account \"elsewhere\"; valid here: here, site"),
  BadFile(
    "an address without accounts", "bridges:\n  a: { between: [here:x, site:y] }\n",
    "2:18: unknown account \"here\"; no account is configured"),
  BadFile(
    "an address without a channel", accounts + "bridges:\n  a: { between: [here:x, site] }\n",
    "5:26: an address is written account:channel"),
  BadFile(
    "an address twice", accounts + "bridges:\n  a: { between: [here:x, site:y, here:x] }\n",
    "5:34: the address here:x appears twice in this bridge"),
  BadFile(
    "an address as source and destination", accounts + "bridges:\n  a: { from: here:x, to: [here:x] }\n",
    "5:27: the address here:x appears twice in this bridge"),
  BadFile(
    "a bridge to an empty list", accounts + "bridges:\n  a: { from: here:x, to: [] }\n",
    "5:26: \"to\" must not be empty"),
  BadFile(
    "a misspelt mirror", accounts + "bridges:\n  a: { between: [here:x, site:y], mirror: [mesages] }\n",
    "5:44: \"mesages\" is not valid here; did you mean \"messages\"?"),
  BadFile(
    "a fallback that does not exist",
    accounts + "bridges:\n  a: { between: [here:x, site:y], fallback: { edits: explode } }\n",
    "5:54: \"explode\" is not valid here; valid here: note, skip"),
  BadFile(
    "an unknown key in a fallback",
    accounts + "bridges:\n  a: { between: [here:x, site:y], fallback: { edit: note } }\n",
    "5:47: unknown key \"edit\"; did you mean \"edits\"?"),
  BadFile(
    "an author without a name", accounts + "bridges:\n  a: { between: [here:x, site:y], author: Ferry }\n",
    "5:43: \"author\" must contain {name}, {person} or {id}, or nobody could tell who speaks"),
  BadFile(
    "an unknown key in a bridge", accounts + "bridges:\n  a: { between: [here:x, site:y], mirrors: [] }\n",
    "5:35: unknown key \"mirrors\"; did you mean \"mirror\"?"),
  BadFile(
    "a retention that forgets too soon", "relay:\n  retention: 10m\n",
    "2:14: \"retention\" is at least 1h, or forever"),
  BadFile(
    "two people with one id",
    accounts + "identities:\n  ann: { here: a1 }\n  bob: { here: A1 }\n",
    "6:16: bob and ann have the same id at here"),
  BadFile(
    "listening nowhere", "relay:\n  listen: 8090\n", "2:11: \"listen\" must be host:port, such as 127.0.0.1:8090"),
  BadFile(
    "a public URL without scheme", "relay: { public_url: bridge.example.org }\n",
    "1:22: \"public_url\" must be a URL that starts with https:// or http://"),
  BadFile(
    "a size in apples", "relay: { image_bytes: 5 apples }\n",
    "1:23: \"image_bytes\" must be a number of bytes such as 1048576, 500 kB or 100 MiB"),
  BadFile(
    "a retention without unit", "relay: { retention: 30 }\n",
    "1:21: \"retention\" must be a time such as 500ms, 5s, 10m, 2h or 30d"),
  BadFile(
    "a host with a scheme", "relay: { allow_hosts: [\"http://a\"] }\n",
    "1:24: a host is written without scheme and path, such as files.example.org"),
  BadFile("an unset variable", "relay: { token: \"${NOPE}\" }\n", "1:17: the environment variable NOPE is not set"),
  BadFile(
    "an identity at an unknown account", accounts + "identities:\n  alice: { sit: alice }\n",
    "5:12: unknown account \"sit\"; did you mean \"site\"?"),
  BadFile("serving nothing", "serve: {}\n", "1:8: \"serve\" needs \"local\", \"facades\" or both"),
  BadFile(
    "a local server without tokens", "serve: { local: { listen: 127.0.0.1:1, tokens: [] } }\n",
    "1:48: \"tokens\" must not be empty"),
  BadFile(
    "a token twice", "serve: { local: { listen: 127.0.0.1:1, tokens: [hunter2, { token: hunter2 }] } }\n",
    "1:58: this token appears twice"),
  BadFile(
    "a token with an unknown key", "serve: { local: { listen: 127.0.0.1:1, tokens: [{ token: a, usr: b }] } }\n",
    "1:61: unknown key \"usr\"; did you mean \"user\"?"),
  BadFile(
    "a facade without provider", "serve: { facades: [{ listen: 127.0.0.1:1 }] }\n",
    "1:20: in \"facades\": missing key \"provider\""),
  BadFile(
    "a port used twice",
    "relay: { listen: 127.0.0.1:8080 }\nserve: { local: { listen: 127.0.0.1:8080, tokens: [a] } }\n",
    "2:27: 127.0.0.1:8080 is used already, by relay"),
]

@Suite struct BadFileTests {
  @Test("what is not YAML as we want it is refused with its place", arguments: badYAML)
  func yaml(file: BadFile) { expectRefusal(file) }

  @Test("what is wrong in a section is refused with its place and what would be right", arguments: badSections)
  func sections(file: BadFile) { expectRefusal(file) }

  @Test("bytes that are not UTF-8 are refused where they stand")
  func invalidUTF8() throws {
    let folder = try Folder()
    defer { folder.remove() }
    let path = "\(folder.path)/ferry.yaml"
    try folder.write("ferry.yaml", bytes: Array("relay:\n  journal: café".utf8) + [0xC3, 0x28])
    let error = #expect(throws: FerryError.self) { try Configuration.load(path: path, environment: [:]) }
    #expect(error?.message == "\(path):2:16: this is not UTF-8 text")
  }

  @Test("a file that is not there, and a folder, are named")
  func unreadable() throws {
    let folder = try Folder()
    defer { folder.remove() }
    let absent = #expect(throws: FerryError.self) {
      try Configuration.load(path: "\(folder.path)/no.yaml", environment: [:])
    }
    #expect(absent?.message == "\(folder.path)/no.yaml cannot be read: No such file or directory")
    let directory = #expect(throws: FerryError.self) { try Configuration.load(path: folder.path, environment: [:]) }
    #expect(directory?.message == "\(folder.path) cannot be read: Is a directory")
  }

  @Test("whatever stands in a file, the answer is a configuration or an error")
  func noise() {
    var random = Noise(state: 7)
    let pieces = [
      "accounts", "bridges", ":", " ", "\n", "  ", "- ", "[", "]", "{", "}", "\"", "'", "#", "|", ">", "&a", "*a", "!",
      "${", "}", "file:", "\t", "%", "@", "`", "?", ",", "---", "...", "é", "\u{FEFF}", "\u{85}", "\u{2028}", "0", "~",
    ]
    for _ in 0..<3000 {
      let text = (0..<Int.random(in: 1...40, using: &random))
        .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
      do {
        _ = try Configuration.parse(text)
      } catch {
        #expect(error.code == .badConfiguration)
        #expect(error.message.hasPrefix("ferry.yaml:"))
      }
    }
  }

  private func expectRefusal(_ file: BadFile) {
    let error = #expect(throws: FerryError.self) { try Configuration.parse(file.text) }
    #expect(error?.message == "ferry.yaml:" + file.message)
    #expect(error?.code == .badConfiguration)
    #expect(error?.retry == .never)
  }
}

/// The same numbers every time.
struct Noise: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return state ^ (state >> 29)
  }
}
