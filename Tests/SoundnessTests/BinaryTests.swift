import Glibc
import Testing

@Suite struct BinaryTests {
  @Test("the ferry command links neither the whole of Foundation nor ICU")
  func linkedLibraries() throws {
    let libraries = try output(of: "ldd '\(Self.folder)/ferry'")
    #expect(libraries.contains("libc.so"), "ldd says: \(libraries)")
    for library in [
      "libFoundation.so", "libFoundationNetworking", "libFoundationInternationalization", "ICU", "libicu",
    ] {
      #expect(!libraries.contains(library), "ferry links \(library)")
    }
  }

  /// Where the tests were built, and the command beside them.
  private static let folder: String = {
    var path = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = readlink("/proc/self/exe", &path, path.count)
    let text = String(decoding: path.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" }
  }()

  private func output(of command: String) throws -> String {
    let pipe = try #require(popen("\(command) 2>&1", "r"))
    var output: [UInt8] = []
    while case let character = fgetc(pipe), character != EOF { output.append(UInt8(truncatingIfNeeded: character)) }
    #expect(pclose(pipe) == 0)
    return String(decoding: output, as: UTF8.self)
  }
}
