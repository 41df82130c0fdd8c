import FerryConfig
import FerryCore
import FoundationEssentials
import Testing

@Suite struct ShownSettingTests {
  private func shown(_ text: String, environment: [String: String] = [:]) throws -> [String: ShownSetting] {
    let settings = try Configuration.parse(text, environment: environment).shown
    return Dictionary(settings.map { ($0.key, $0) }) { first, _ in first }
  }

  @Test("secrets are masked, references are shown as they are written")
  func secrets() throws {
    let settings = try shown(
      """
      accounts:
        token: { provider: local, url: "http://a:b@files.example.org/x", token: plain-secret }
        site: { provider: pusher, app_id: "1001", secret: "${PUSHER}", endpoint: "https://h.example/?sig=signed" }
        app: { provider: backendless, api_key: "file:/run/key", password: "half-${PUSHER}" }
      bridges:
        key: { between: [token:lobby, site:chatroom] }
      relay: { token: "console-secret", read_token: "reading-secret", allow_hosts: [a, b] }
      serve:
        local: { listen: "127.0.0.1:0", tokens: [one-secret, { token: two-secret, user: bob }] }
        facades:
          - { provider: pusher, listen: "127.0.0.1:1", signature_keys: { a: three-secret } }
      """, environment: ["PUSHER": "expanded-secret"])
    let all = settings.values.map(\.value).joined(separator: "\n")
    for secret in [
      "plain-secret", "a:b@", "signed", "expanded", "half", "console-secret", "reading-secret", "one-secret",
      "two-secret", "three-secret",
    ] { #expect(!all.contains(secret), "\(secret) is shown") }
    #expect(settings["accounts.token.token"]?.kind == .masked)
    #expect(settings["accounts.token.provider"]?.value == "local")
    #expect(settings["accounts.site.secret"]?.value == "${PUSHER}")
    #expect(settings["accounts.site.app_id"]?.value == "1001")
    #expect(settings["accounts.app.api_key"]?.value == "file:/run/key")
    #expect(settings["accounts.app.password"]?.kind == .masked)
    #expect(settings["bridges.key.between"]?.value == "token:lobby, site:chatroom")
    #expect(settings["relay.allow_hosts"]?.value == "a, b")
    #expect(settings["serve.local.tokens.2.user"]?.value.contains("two") != true)
  }

  @Test("what the file leaves out is shown with its default, what it says only once")
  func defaults() throws {
    let settings = try shown(
      "accounts: { a: { provider: x } }\nbridges: { b: { between: [\"a:1\", \"a:2\"], author: \"{id}\" } }")
    #expect(settings["relay.listen"]?.value == "127.0.0.1:8090")
    #expect(settings["relay.listen"]?.kind == .default)
    #expect(settings["relay.image_bytes"]?.value == "104857600")
    #expect(settings["bridges.b.author"]?.value == "{id}")
    #expect(settings["bridges.b.author"]?.kind == .written)
    #expect(settings["bridges.b.fallback.edits"]?.kind == .default)
    #expect(settings["relay.token"] == nil)
  }

  @Test("every key that the schema calls a secret is masked")
  func schema() throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: ConfigurationTests.root + "/config/ferry.schema.json"))
    let schema = try JSONDecoder().decode(JSONValue.self, from: data)
    let keys = Set(Self.secrets(in: schema, under: ""))
    #expect(keys.isSuperset(of: ["token", "secret", "auth_token", "password", "signature_keys", "read_token"]))
    for key in keys where !key.isEmpty {
      let settings = try shown("accounts: { a: { provider: x, \(key): hidden-value, \(key)_2: { b: hidden-value } } }")
      #expect(settings["accounts.a.\(key)"]?.kind == .masked, "\(key) is shown")
      #expect(settings["accounts.a.\(key)_2.b"]?.kind == .masked, "what is below \(key) is shown")
    }
  }

  @Test("every key of the relay and of a bridge that the schema gives a default is shown")
  func allDefaults() throws {
    let data = try Data(contentsOf: URL(fileURLWithPath: ConfigurationTests.root + "/config/ferry.schema.json"))
    let schema = try JSONDecoder().decode(JSONValue.self, from: data)
    let settings = try shown(
      "accounts: { a: { provider: x } }\nbridges: { b: { between: [\"a:1\", \"a:2\"] } }\nrelay: { token: t }")
    for (section, definition) in ["relay": "relay", "bridges.b": "bridge"] {
      let properties = try #require(schema["$defs"]?[definition]?["properties"]?.object)
      let keys = properties.flatMap { name, value -> [String] in
        if value["default"] != nil { return [name] }
        return value["properties"]?.object?.filter { $0.value["default"] != nil }.map { "\(name).\($0.key)" } ?? []
      }
      #expect(keys.count >= 4)
      for key in keys { #expect(settings["\(section).\(key)"]?.kind == .default, "\(section).\(key) is not shown") }
    }
    #expect(settings["relay.retention"]?.value == "30d")
  }

  /// The keys of the schema whose values, or what is below them, are secrets.
  private static func secrets(in value: JSONValue, under key: String) -> [String] {
    switch value {
    case .array(let values): return values.flatMap { secrets(in: $0, under: key) }
    case .object(let members):
      if let reference = members["$ref"]?.string, ["#/$defs/secret", "#/$defs/headers"].contains(reference) {
        return [key]
      }
      return members.flatMap { name, member -> [String] in
        guard name == "properties", let properties = member.object else { return secrets(in: member, under: key) }
        return properties.flatMap { secrets(in: $0.value, under: $0.key) }
      }
    default: return []
    }
  }

  @Test("the two tokens of the console differ")
  func tokens() {
    let error = #expect(throws: FerryError.self) { try Configuration.parse("relay: { token: same, read_token: same }") }
    #expect(error?.message.contains("must differ") == true)
    #expect(error?.message.contains("same\"") == false)
  }
}
