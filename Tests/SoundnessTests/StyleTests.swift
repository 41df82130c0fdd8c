import Testing

@Suite struct StyleTests {
  /// Files that may be longer than the rest, up to 600 lines, and why.
  private static let longFiles: [String: String] = [:]

  @Test("no file is longer than 400 lines")
  func lengths() throws {
    for file in try Repository.everything() {
      let limit = Self.longFiles[file.path] == nil ? 400 : 600
      #expect(file.lines.count <= limit + 1, "\(file.path) has \(file.lines.count - 1) lines")
    }
  }

  @Test("files that may be long exist and are long")
  func longFilesAreLong() throws {
    let lengths = Dictionary(uniqueKeysWithValues: try Repository.everything().map { ($0.path, $0.lines.count) })
    for path in Self.longFiles.keys { #expect((lengths[path] ?? 0) > 401, "\(path) needs no exception") }
  }

  @Test(
    "whoever vouches for a type across threads says because of what", arguments: ["@unchecked", "nonisolated(unsafe)"])
  func uncheckedHasAReason(mark: String) throws {
    for file in try Repository.everything() where file.path != "Tests/SoundnessTests/StyleTests.swift" {
      for (number, line) in file.code where line.contains(mark) {
        let around = file.lines[max(number - 4, 0)..<min(number + 3, file.lines.count)]
        #expect(
          around.contains { $0.contains("because") },
          "\(file.path):\(number): say within three lines why this is safe: \"\(mark) because ...\"")
      }
    }
  }

  /// What must not be written, and the files in which it may.
  private static let forbidden: [(text: String, allowed: Set<String>)] = [
    ("try!", []),
    (" as! ", []),
    ("fatalError(", []),
    ("Task.sleep", ["Sources/FerryRuntime/Time.swift", "Sources/ferry-bench/Main.swift"]),
    ("Task.detached", []),
    ("DispatchQueue", []),
  ]

  @Test("nothing crashes on input, and waiting goes through the clock")
  func forbiddenCode() throws {
    for file in try Repository.everything() where file.path != "Tests/SoundnessTests/StyleTests.swift" {
      for (number, line) in file.code {
        for (text, allowed) in Self.forbidden where line.contains(text) {
          #expect(allowed.contains(file.path), "\(file.path):\(number) has \(text)")
        }
      }
    }
  }

  @Test("names say what a thing is", arguments: ["Manager", "Helper", "Util", "Utils"])
  func names(ending: String) throws {
    for file in try Repository.product() {
      #expect(!file.path.hasSuffix("\(ending).swift"), "\(file.path) is named after nothing")
    }
  }
}
