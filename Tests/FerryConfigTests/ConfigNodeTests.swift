import FerryConfig
import FerryCore
import Glibc
import Testing

/// The value under `key`, read from a mapping of that one line.
private func node(_ text: String, _ environment: [String: String] = [:]) throws -> ConfigNode {
  try ConfigNode.parse("key: \(text)", environment: environment).mapping().required("key")
}

/// The message of the error that `body` throws, without the place.
private func complaint(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "no error"
  } catch {
    guard let error = error as? FerryError else { return "a foreign error" }
    return error.message.split(separator: ":", maxSplits: 3).last.map { String($0.dropFirst()) } ?? ""
  }
}

@Suite struct ConfigNodeTests {
  @Test("text is taken as written, quoted or not, and so are numbers")
  func text() throws {
    #expect(try node("hello world").string() == "hello world")
    #expect(try node("'0123'").string() == "0123")
    #expect(try node("0123").string() == "0123")
    #expect(try node("\"caf\\u00e9\"").string() == "café")
    #expect(try node("''").string() == "")
    #expect(complaint { _ = try node("true").string() }.contains("in quotes"))
    #expect(complaint { _ = try node("").string() } == "\"key\" has no value; it must be text")
  }

  @Test("numbers and booleans are written without quotes, or come from a variable")
  func scalars() throws {
    #expect(try node("-17").integer() == -17)
    #expect(try node("${PORT}", ["PORT": "8080"]).integer() == 8080)
    #expect(try node("\"${PORT}\"", ["PORT": "8080"]).integer() == 8080)
    #expect(try node("2.5").number() == 2.5)
    #expect(try node("true").bool())
    #expect(complaint { _ = try node("'8080'").integer() } == "\"key\" must be a whole number, without quotes")
    #expect(complaint { _ = try node("8080.5").integer() } == "\"key\" must be a whole number")
    #expect(
      complaint { _ = try node("70000").integer(in: 1...65535) } == "\"key\" must be a whole number from 1 to 65535")
    #expect(complaint { _ = try node("yes").bool() } == "\"key\" must be true or false")
    #expect(complaint { _ = try node("nan").number() } == "\"key\" must be a number")
  }

  @Test(
    "a duration has a number and a unit",
    arguments: [
      ("500ms", Duration.milliseconds(500)), ("5s", .seconds(5)), ("10m", .seconds(600)), ("2 h", .seconds(7200)),
      ("30d", .seconds(2_592_000)),
    ])
  func durations(text: String, expected: Duration) throws {
    #expect(try node(text).duration() == expected)
  }

  @Test(
    "a duration without unit, or negative, or beyond all measure is refused",
    arguments: ["5", "-5s", "s", "5 parsecs", "99999999999999999d"])
  func badDurations(text: String) {
    #expect(complaint { _ = try node(text).duration() } != "no error")
  }

  @Test(
    "bytes may have a unit",
    arguments: [("1048576", Int64(1_048_576)), ("500 kB", 500_000), ("100 MiB", 104_857_600), ("1GiB", 1_073_741_824)])
  func bytes(text: String, expected: Int64) throws {
    #expect(try node(text).byteCount() == expected)
  }

  @Test("a variable is put in wherever it stands, and an escaped one is left")
  func variables() throws {
    let environment = ["HOST": "example.org", "PORT": "80", "NESTED": "${HOST}", "EMPTY": ""]
    #expect(try node("https://${HOST}:${PORT}/x", environment).string() == "https://example.org:80/x")
    #expect(try node("$${HOST}", environment).string() == "${HOST}")
    #expect(try node("a$${b} ${PORT}", environment).string() == "a${b} 80")
    #expect(try node("${NESTED}", environment).string() == "${HOST}")
    #expect(try node("[\"${EMPTY}\"]", environment).list().first?.string() == "")
    #expect(try node("costs $5", environment).string() == "costs $5")
  }

  @Test("an unset variable is named, and a malformed one explained")
  func badVariables() {
    #expect(complaint { _ = try node("x${MISSING}y").string() } == "the environment variable MISSING is not set")
    #expect(complaint { _ = try node("hunter2${").string() }.hasPrefix("a \"${\" is not closed"))
    #expect(complaint { _ = try node("${A:-b}").string() }.hasPrefix("between \"${\" and \"}\""))
    #expect(complaint { _ = try node("${}").string() }.hasPrefix("between \"${\" and \"}\""))
  }

  @Test("a secret comes from the file, a variable, or a file beside the configuration")
  func secrets() throws {
    let folder = try Folder()
    defer { folder.remove() }
    try folder.write("token", "s3cret\n")
    try folder.write("windows", "s3cret\r\n")
    try folder.write("two", "s3cret\n\n")
    try folder.write("empty", "\n")
    let environment = ["TOKEN": "from-env", "TRICK": "file:token", "NAME": "token"]
    func secret(_ text: String) throws -> String {
      try ConfigNode.parse("key: \(text)", folder: folder.path, environment: environment).mapping().secret("key")
        .reveal()
    }
    #expect(try secret("plain") == "plain")
    #expect(try secret("1234") == "1234")
    #expect(try secret("${TOKEN}") == "from-env")
    #expect(try secret("file:token") == "s3cret")
    #expect(try secret("file:${NAME}") == "s3cret")
    #expect(try secret("file:windows") == "s3cret")
    #expect(try secret("file:two") == "s3cret\n")
    #expect(try secret("file:\(folder.path)/token") == "s3cret")
    #expect(try secret("${TRICK}") == "file:token", "what a variable holds is not read as a file")
    #expect(complaint { _ = try secret("file:empty") } == "\"key\" is empty")
    #expect(complaint { _ = try secret("file:absent") }.contains("absent cannot be read: No such file or directory"))
    #expect(complaint { _ = try secret("file:/dev/zero") }.contains("is larger than"))
  }

  @Test("no secret shows in a description, a dump or an error")
  func nothingLeaks() throws {
    let parsed = try ConfigNode.parse("key: hunter2\nother: ${S}", environment: ["S": "hunter2"])
    let secret = try parsed.mapping().secret("key")
    var dumped = ""
    dump((parsed, secret, [secret], ["a": secret]), to: &dumped)
    let texts = [
      dumped, "\(parsed)", "\(secret)", String(reflecting: secret), String(reflecting: parsed), "\([secret])",
      complaint { _ = try node("hunter2").integer() },
      complaint { _ = try node("hunter2").duration() },
      complaint { _ = try node("hunter2").bool() },
      complaint { _ = try node("${S}", ["S": "hunter2"]).address() },
      complaint { _ = try node("${S}", ["S": "hunter2"]).choice(BridgeSection.Mirror.self) },
      complaint { _ = try node("${S}", ["S": "hunter2"]).listenAddress() },
      complaint { _ = try node("hunter2").mapping() },
    ]
    for text in texts { #expect(!text.contains("hunter2")) }
  }

  @Test("a mapping refuses what nobody asked for")
  func unknownKeys() throws {
    let mapping = try ConfigNode.parse("host: a\nprot: b").mapping()
    _ = try mapping.required("host")
    _ = mapping.optional("port")
    let error = #expect(throws: FerryError.self) { try mapping.finish() }
    #expect(error?.message == "ferry.yaml:2:1: unknown key \"prot\"; did you mean \"port\"?")
    #expect(error?.code == .badConfiguration)
  }

  @Test("a required key that is nearly there is named as misspelt, not as missing")
  func misspeltRequiredKey() throws {
    let mapping = try ConfigNode.parse("secert: a").mapping()
    let error = #expect(throws: FerryError.self) { try mapping.secret("secret") }
    #expect(error?.message == "ferry.yaml:1:1: unknown key \"secert\"; did you mean \"secret\"?")
  }

  @Test("the nearest name is found, and nothing when all are far")
  func nearestNames() {
    #expect(nearest("acounts", among: ["accounts", "bridges"]) == "accounts")
    #expect(nearest("Relay", among: ["relay"]) == "relay")
    #expect(nearest("xyzzy", among: ["accounts", "bridges"]) == nil)
    #expect(nearest(String(repeating: "a", count: 100_000), among: ["accounts"]) == nil)
  }
}

/// A folder that a test fills and removes.
struct Folder {
  let path: String

  init() throws {
    var template = Array("/tmp/ferry-config-XXXXXX".utf8CString)
    let made = try #require(mkdtemp(&template))
    path = String(cString: made)
  }

  func write(_ name: String, _ text: String) throws { try write(name, bytes: Array(text.utf8)) }

  func write(_ name: String, bytes: [UInt8]) throws {
    let file = try #require(fopen("\(path)/\(name)", "w"))
    fwrite(bytes, 1, bytes.count, file)
    fclose(file)
  }

  func remove() {
    guard let folder = opendir(path) else { return }
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      unlink("\(path)/\(name)")
    }
    closedir(folder)
    rmdir(path)
  }
}
