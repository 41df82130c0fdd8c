import FoundationEssentials
import Glibc
import Testing

/// The files of this repository, read as text.
enum Repository {
  static let root = String(#filePath.split(separator: "/Tests/", maxSplits: 1)[0])

  struct SourceFile: Sendable {
    /// From the root: `Sources/FerryCore/Event.swift`.
    let path: String
    let lines: [Substring]

    /// Numbered from one, without those that are comments from the start.
    var code: [(number: Int, line: Substring)] {
      lines.enumerated().map { ($0 + 1, $1) }.filter { !$1.drop(while: { $0 == " " }).hasPrefix("//") }
    }

    /// The modules that the file imports.
    var imports: [(number: Int, module: String)] {
      code.compactMap { number, line in
        var words = line.split(separator: " ")
        while let first = words.first, first.hasPrefix("@") || Self.accessLevels.contains(first) { words.removeFirst() }
        guard words.count > 1, words[0] == "import" else { return nil }
        // `import struct Glibc.stat` imports Glibc.
        let name = Self.kinds.contains(words[1]) && words.count > 2 ? words[2] : words[1]
        return (number, String(name.prefix { $0 != "." && $0 != ";" }))
      }
    }

    private static let accessLevels: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
    private static let kinds: Set<Substring> = [
      "struct", "class", "enum", "protocol", "func", "var", "let", "typealias",
    ]
  }

  /// All Swift files below a folder.
  static func files(in folder: String) throws -> [SourceFile] {
    try FileManager.default.subpathsOfDirectory(atPath: "\(root)/\(folder)").filter { $0.hasSuffix(".swift") }.sorted()
      .map { path in
        let text = try String(contentsOfFile: "\(root)/\(folder)/\(path)", encoding: .utf8)
        return SourceFile(
          path: "\(folder)/\(path)", lines: text.split(separator: "\n", omittingEmptySubsequences: false))
      }
  }

  /// Our own code: what is not a test.
  static func product() throws -> [SourceFile] { try files(in: "Sources") + files(in: "providers") }

  static func everything() throws -> [SourceFile] { try product() + files(in: "Tests") }

  static func folders(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "\(root)/\(folder)").map { "\(folder)/\($0)" }.sorted()
  }
}
