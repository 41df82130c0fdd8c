import FoundationEssentials
import Testing

/// The list of reports and of the tests that answer them names no test that is not there.
@Suite struct FieldListTests {
  private static let root = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3)
    .joined(separator: "/")

  @Test("every test that the list of field reports names exists")
  func names() throws {
    let list = try Self.text("Sources/FerryRelay/FerryRelay.docc/FieldReports.md")
    let named = Set(list.split(separator: "`").filter { $0.contains("Tests.") }.map(String.init))
    #expect(named.count > 25)
    let files = try Self.testFiles()
    for name in named {
      let parts = name.split(separator: ".").map(String.init)
      let found = try files.contains { file in
        try file.hasSuffix("/\(parts[0]).swift") && Self.text(file).contains("func \(parts[1])(")
      }
      #expect(found, "\(name) is nowhere")
    }
  }

  private static func text(_ path: String) throws -> String {
    String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(root)/\(path)")), as: UTF8.self)
  }

  /// `Tests/FaultTests/Guarantees/GuaranteeTests.swift` and so on.
  private static func testFiles() throws -> [String] {
    try FileManager.default.subpathsOfDirectory(atPath: "\(root)/Tests").filter { $0.hasSuffix(".swift") }
      .map { "Tests/\($0)" }
  }
}
