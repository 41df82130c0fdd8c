import FerryConfig
import FerryCore
import FoundationEssentials
import Glibc
import Testing

/// The schema is for editors; these tests keep it true.
@Suite struct SchemaTests {
  private static let root = ConfigurationTests.root

  @Test(
    "the schema knows the keys that Ferry reads, no more and no fewer",
    arguments: [
      ("", "no-such-key: 1"),
      (
        "$defs/bridge",
        "accounts: { a: { provider: x } }\nbridges: { b: { between: [\"a:1\", \"a:2\"], no-such-key: 1 } }"
      ),
      (
        "$defs/bridge/properties/fallback",
        "accounts: { a: { provider: x } }\nbridges: { b: { between: [\"a:1\", \"a:2\"], fallback: { no-such-key: 1 } } }"
      ),
      ("$defs/relay", "relay: { no-such-key: 1 }"),
      ("$defs/serve", "serve: { no-such-key: 1 }"),
      ("$defs/serve/properties/local", "serve: { local: { listen: \"a:1\", tokens: [a], no-such-key: 1 } }"),
      ("$defs/token/anyOf/1", "serve: { local: { listen: \"a:1\", tokens: [{ token: a, no-such-key: 1 }] } }"),
      (
        "$defs/rehearsal",
        "serve: { facades: [{ provider: x, listen: \"a:1\", rehearsal: { token: a, no-such-key: 1 } }] }"
      ),
    ])
  func keys(pointer: String, text: String) throws {
    let error = try #require(throws: FerryError.self) { try Configuration.parse(text) }
    let list = try #require(error.message.firstRange(of: "valid here: "))
    let accepted = error.message[list.upperBound...].split(separator: ", ").map(String.init)
    #expect(try schemaKeys(at: pointer) == accepted.sorted())
  }

  @Test("the example and the demo are valid by the schema", arguments: ["demo.yaml", "ferry.example.yaml"])
  func valid(file: String) throws {
    let python = Self.root + "/.venv/bin/python"
    guard access(python, X_OK) == 0 else { return }
    let program =
      "import json,sys,yaml,jsonschema as j;s=json.load(open(sys.argv[1]));j.Draft202012Validator.check_schema(s);"
      + "print(*[e.message for e in j.Draft202012Validator(s).iter_errors(yaml.safe_load(open(sys.argv[2])))])"
    let folder = Self.root + "/config"
    let pipe = try #require(
      popen("'\(python)' -c '\(program)' '\(folder)/ferry.schema.json' '\(folder)/\(file)' 2>&1", "r"))
    var output: [UInt8] = []
    while case let character = fgetc(pipe), character != EOF { output.append(UInt8(truncatingIfNeeded: character)) }
    #expect(pclose(pipe) == 0)
    #expect(String(decoding: output, as: UTF8.self) == "\n")
  }

  private func schemaKeys(at pointer: String) throws -> [String] {
    let data = try Data(contentsOf: URL(filePath: Self.root + "/config/ferry.schema.json"))
    var value = try JSONDecoder().decode(JSONValue.self, from: data)
    for step in pointer.split(separator: "/") {
      let next = Int(step).flatMap { value.array?[$0] } ?? value[String(step)]
      value = try #require(next, "the schema has no \(pointer)")
    }
    return try #require(value["properties"]?.object).keys.sorted()
  }
}
