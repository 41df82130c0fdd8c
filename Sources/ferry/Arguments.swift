import FerryConfig

/// What a person typed wrong, and where to read how it is right.
struct UsageError: Error {
  let message: String
  let hint: String

  init(_ message: String, _ hint: String) {
    self.message = message
    self.hint = hint
  }
}

/// A command line, checked against its command: `--name value`, `--name=value`, `--` ends the options.
struct Arguments: Sendable {
  let positional: [String]
  private let values: [String: String]
  private let hint: String

  init(_ words: [String], for command: Command) throws {
    hint = "Usage: \(command.usage)\nRun 'ferry \(command.name) --help' for more."
    var positional: [String] = []
    var values: [String: String] = [:]
    var rest = words[...]
    while let word = rest.popFirst() {
      if word == "--" {
        positional += rest
        break
      }
      guard word.hasPrefix("--") else {
        positional.append(word)
        continue
      }
      let body = word.dropFirst(2)
      let name = String(body.prefix { $0 != "=" })
      guard let option = command.options.first(where: { $0.name == name }) else {
        let hint = suggestion(name, among: command.options.map(\.name))
        throw UsageError("there is no option --\(name)\(hint)", self.hint)
      }
      guard values[name] == nil || option.value == nil else { throw UsageError("--\(name) is given twice", hint) }
      if body.contains("=") {
        guard option.value != nil else { throw UsageError("--\(name) takes no value", hint) }
        values[name] = String(body.dropFirst(name.count + 1))
      } else if option.value == nil {
        values[name] = ""
      } else {
        guard let value = rest.popFirst() else { throw UsageError("--\(name) needs a value", hint) }
        values[name] = value
      }
    }
    let required = command.positional.filter { !$0.hasPrefix("[") }.count
    guard positional.count >= required else {
      throw UsageError("\(command.positional[positional.count]) is missing", hint)
    }
    guard positional.count <= command.positional.count else {
      throw UsageError("\"\(positional[command.positional.count])\" is one argument too many", hint)
    }
    self.positional = positional
    self.values = values
  }

  subscript(name: String) -> String? { values[name] }

  func has(_ name: String) -> Bool { values[name] != nil }

  func integer(_ name: String, in range: ClosedRange<Int>, default fallback: Int) throws -> Int {
    guard let text = values[name] else { return fallback }
    guard let value = Int(text), range.contains(value) else {
      throw UsageError(
        "--\(name) is a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"", hint)
    }
    return value
  }

  func fail(_ message: String) -> UsageError { UsageError(message, hint) }
}
