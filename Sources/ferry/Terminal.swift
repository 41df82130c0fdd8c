import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// The three standard streams.
enum Terminal {
  /// A result, on standard output.
  static func output(_ line: String) { write(line + "\n", to: STDOUT_FILENO) }

  /// Anything else, on standard error.
  static func error(_ line: String) { write(line + "\n", to: STDERR_FILENO) }

  /// As it is, on standard error.
  static func status(_ text: String) { write(text, to: STDERR_FILENO) }

  /// Whether somebody watches standard error.
  static var errorsAreSeen: Bool { isatty(STDERR_FILENO) == 1 }

  static var inputIsTerminal: Bool { isatty(STDIN_FILENO) == 1 }

  /// Standard input to its end, at most `limit` bytes.
  static func readInput(limit: Int) throws(FerryError) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = read(STDIN_FILENO, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer.prefix(count)
      guard bytes.count <= limit else {
        throw FerryError(.tooLarge, "The text on standard input is longer than \(limit) bytes.")
      }
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw FerryError(.badData, "The text on standard input is not UTF-8.")
    }
    // The line feed that ends the last line belongs to the shell, not to the message.
    return text.hasSuffix("\n") ? String(text.dropLast()) : text
  }

  private static func write(_ text: String, to descriptor: Int32) {
    var text = text
    text.withUTF8 { bytes in
      var offset = 0
      while offset < bytes.count, let base = bytes.baseAddress {
        let written = Glibc.write(descriptor, base + offset, bytes.count - offset)
        if written < 0 {
          if errno == EINTR { continue }
          // The reader is gone (`ferry tail | head`): there is nobody to tell.
          if errno == EPIPE { Glibc._exit(0) }
          return
        }
        offset += written
      }
    }
  }

  static func json(_ value: some Encodable) throws(FerryError) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    do { return String(decoding: try encoder.encode(value), as: UTF8.self) } catch { throw .wrap(error) }
  }

  /// A message must not be able to move the cursor or colour the terminal.
  static func visible(_ text: String) -> String {
    String(
      String.UnicodeScalarView(
        text.unicodeScalars.map { scalar in
          scalar.properties.generalCategory == .control ? (scalar == "\n" || scalar == "\t" ? " " : "\u{FFFD}") : scalar
        }))
  }

  /// Columns as wide as their widest cell.
  static func table(_ rows: [[String]]) -> String {
    var widths: [Int] = []
    for row in rows {
      for (index, cell) in row.enumerated() {
        if index == widths.count { widths.append(0) }
        widths[index] = max(widths[index], cell.count)
      }
    }
    return rows.map { row in
      let line = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
      return String(line.reversed().drop { $0 == " " }.reversed())
    }.joined(separator: "\n")
  }
}

/// Exit codes follow sysexits.
enum ExitCode {
  static let usage: Int32 = 64
  static let badData: Int32 = 65
  static let unavailable: Int32 = 69
  static let internalFault: Int32 = 70
  static let cannotCreate: Int32 = 73
  static let tryAgain: Int32 = 75
  static let outcomeUnknown: Int32 = 76
  static let notPermitted: Int32 = 77
  static let badConfiguration: Int32 = 78
  static let interrupted: Int32 = 130

  static func of(_ error: FerryError) -> Int32 {
    switch error.code {
    case .badConfiguration: return badConfiguration
    case .badCredentials, .forbidden, .addressRefused: return notPermitted
    case .rateLimited: return tryAgain
    case .cancelled: return interrupted
    case .storage: return cannotCreate
    case .badRequest, .badData, .notFound, .conflict, .tooLarge: return badData
    case .outcomeUnknown: return outcomeUnknown
    case .unavailable, .timedOut: return error.didNotAct ? unavailable : outcomeUnknown
    case .unsupported: return unavailable
    default: return internalFault
    }
  }
}
