import Glibc

/// One event a line on standard error: time, level, component, message. Ids, never bodies or secrets.
package struct Logger: Sendable {
  package enum Level: Int, Sendable, Comparable, CaseIterable {
    case debug, info, notice, warning, error
    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  private let component: String
  private let level: Level
  private let clock: any FerryClock
  private let write: @Sendable (String) -> Void

  package init(
    component: String, level: Level = .notice, clock: any FerryClock = SystemClock(),
    write: @escaping @Sendable (String) -> Void = Logger.standardError
  ) {
    self.component = component
    self.level = level
    self.clock = clock
    self.write = write
  }

  package func component(_ name: String) -> Logger {
    Logger(component: name, level: level, clock: clock, write: write)
  }

  package func log(_ level: Level, _ message: @autoclosure () -> String) {
    guard level >= self.level else { return }
    write("\(clock.now().iso8601) \(level) \(component): \(Self.oneLine(message()))\n")
  }

  /// What a peer sent must neither look like a line of ours nor steer a terminal.
  private static func oneLine(_ text: String) -> String {
    var line = ""
    // Scalars, because "\r\n" is one character that is equal to neither.
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\n": line += "\\n"
      case "\r": line += "\\r"
      case _ where scalar.properties.generalCategory == .control, "\u{2028}", "\u{2029}":
        line += "\\u{\(String(scalar.value, radix: 16))}"
      default: line.unicodeScalars.append(scalar)
      }
    }
    return line
  }

  package func debug(_ message: @autoclosure () -> String) { log(.debug, message()) }
  package func info(_ message: @autoclosure () -> String) { log(.info, message()) }
  package func notice(_ message: @autoclosure () -> String) { log(.notice, message()) }
  package func warning(_ message: @autoclosure () -> String) { log(.warning, message()) }
  package func error(_ message: @autoclosure () -> String) { log(.error, message()) }

  package static let silent = Logger(component: "", level: .error, write: { _ in })

  /// One write call a line, so that lines of several threads do not mix.
  @Sendable package static func standardError(_ line: String) {
    var line = line
    line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
