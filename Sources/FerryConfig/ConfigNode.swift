package import FerryCore

/// A value of the configuration and where it stands. Its description is the place, never the value.
package struct ConfigNode: Sendable {
  struct Mark: Sendable, Hashable {
    /// Counted from one; columns in characters.
    let line: Int
    let column: Int
  }

  struct Entry: Sendable {
    let key: String
    let mark: Mark
    let node: ConfigNode
  }

  enum Content: Sendable {
    /// As written: variables are put in when the value is read.
    case scalar(String, isPlain: Bool)
    case list([ConfigNode])
    case mapping([Entry])
  }

  let content: Content
  let mark: Mark
  /// What errors call it: the key it stands under.
  let name: String
  let source: ConfigSource

  /// `.badConfiguration` whose message starts with file, line and column.
  package func error(_ message: String) -> FerryError { source.error(message, at: mark) }

  /// `"port" must be a whole number`
  func mismatch(_ wanted: String) -> FerryError {
    isNull ? error("\"\(name)\" has no value; it must be \(wanted)") : error("\"\(name)\" must be \(wanted)")
  }

  /// Nothing after the colon, `~` or `null`.
  var isNull: Bool {
    guard case .scalar(let text, isPlain: true) = content else { return false }
    return ["", "~", "null", "Null", "NULL"].contains(text)
  }
}

extension ConfigNode: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { source.place(mark) }
  package var debugDescription: String { description }
  package var customMirror: Mirror { Mirror(self, children: []) }
}

/// The file that nodes come from and what their variables stand for.
final class ConfigSource: Sendable {
  /// As the user named it.
  let name: String
  let folder: String
  let environment: [String: String]

  init(name: String, folder: String, environment: [String: String]) {
    self.name = name
    self.folder = folder
    self.environment = environment
  }

  func place(_ mark: ConfigNode.Mark) -> String { "\(name):\(mark.line):\(mark.column)" }

  func error(_ message: String, at mark: ConfigNode.Mark) -> FerryError {
    FerryError(.badConfiguration, "\(place(mark)): \(message)")
  }

  /// Relative paths are relative to the configuration file's folder.
  func resolve(_ path: String) -> String {
    if path.hasPrefix("/") || folder.isEmpty { return path }
    return folder.hasSuffix("/") ? folder + path : "\(folder)/\(path)"
  }
}
