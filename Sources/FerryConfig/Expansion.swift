import FerryCore

extension ConfigNode {
  /// `${NAME}` replaced by the variable's value, `$${` by `${`. What the variables hold is not looked at again.
  ///
  /// Errors name the variable and never show what surrounds it, which may be part of a secret.
  func expanded(_ text: String) throws(FerryError) -> String {
    guard text.contains("${") else { return text }
    var result = ""
    var rest = text[...]
    while let start = rest.firstRange(of: "${") {
      if rest[..<start.lowerBound].last == "$" {
        result += rest[..<start.lowerBound].dropLast() + "${"
        rest = rest[start.upperBound...]
        continue
      }
      guard let end = rest[start.upperBound...].firstIndex(of: "}") else {
        throw error("a \"${\" is not closed; write \"$${\" for the two characters themselves")
      }
      let name = String(rest[start.upperBound..<end])
      guard Self.isVariableName(name) else {
        throw error("between \"${\" and \"}\" stands the name of an environment variable and nothing else")
      }
      guard let value = source.environment[name] else {
        throw error("the environment variable \(name) is not set")
      }
      result += rest[..<start.lowerBound] + value
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private static func isVariableName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"): true
      case UInt8(ascii: "0")...UInt8(ascii: "9"): true
      default: false
      }
    }
  }

  func fileContent(_ path: String) throws(FerryError) -> String {
    let bytes: [UInt8]
    do {
      bytes = try readFile(path, limit: 64 << 10)
    } catch {
      throw self.error("the file \(path) \(error.reason)")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw error("the file \(path) is not UTF-8 text")
    }
    // One line break at the end is the editor's: "\r\n" is one character.
    return text.last == "\n" || text.last == "\r\n" ? String(text.dropLast()) : text
  }
}
