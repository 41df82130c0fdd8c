import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials
import Glibc

/// A ferry process under test, in a folder of its own.
final class Child {
  private let folder: String
  private let process: ChildProcess
  private let urls: [String: String]

  /// Starts `ferry COMMAND` with the configuration and waits until it is ready.
  init(_ command: String, config: String) throws {
    folder = "\(FileManager.default.temporaryDirectory.path)/ferry-bench-\(Crypto.randomHex(bytes: 6))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let configPath = "\(folder)/\(command).yaml"
    let ready = "\(folder)/\(command).ready"
    try Data(config.replacing("FOLDER", with: folder).utf8).write(to: URL(fileURLWithPath: configPath))
    var arguments = [command, "--config", configPath, "--ready-file", ready]
    if command == "demo" { arguments += ["--data", "\(folder)/data"] }
    process = try ChildProcess(Self.ferry, arguments)
    while !FileManager.default.fileExists(atPath: ready) {
      guard process.isRunning else {
        throw FerryError(.unavailable, "ferry \(command) ended: \(process.errors)")
      }
      usleep(500)
    }
    let data = FileManager.default.contents(atPath: ready) ?? Data()
    urls = try JSONDecoder().decode([String: String].self, from: data)
  }

  func port(_ name: String) -> UInt16 {
    UInt16(urls[name]?.split(separator: ":").last ?? "") ?? 0
  }

  /// User and system time so far, in microseconds.
  var cpuMicroseconds: Double {
    guard let text = read("/proc/\(process.pid)/stat"), let end = text.lastIndex(of: ")") else { return 0 }
    let fields = text[end...].split(separator: " ")
    let ticks = (Double(fields[12]) ?? 0) + (Double(fields[13]) ?? 0)
    return ticks * 1e6 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  var residentMB: Double { megabytes("VmRSS:") }
  var peakMB: Double { megabytes("VmHWM:") }

  func stop() async {
    process.signal(SIGTERM)
    _ = await process.wait()
    try? FileManager.default.removeItem(atPath: folder)
  }

  private func megabytes(_ key: String) -> Double {
    let line = read("/proc/\(process.pid)/status")?.split(separator: "\n").first { $0.hasPrefix(key) }
    return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
  }

  private func read(_ path: String) -> String? {
    try? String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
  }

  /// The ferry beside this program, or `$FERRY_BIN`.
  static var ferry: String { ChildProcess.built("ferry") }
}

enum Configurations {
  static let local = """
    local: { listen: "127.0.0.1:0", tokens: [bench] }
    """
  static let pusher = """
    facades:
        - { provider: pusher, listen: "127.0.0.1:0", app_id: "1001", key: bench-key, secret: bench-secret }
    """

  static let serve = """
    serve:
      data: FOLDER/data
      \(local)
      \(pusher)
    """

  /// One server reached directly and through a port behind which everything is slow.
  static func besideASlowLeg(port: UInt16, slowPort: UInt16) -> String {
    """
    accounts:
      here: { provider: local, url: "http://127.0.0.1:\(port)", token: bench }
      slow: { provider: local, url: "http://127.0.0.1:\(slowPort)", token: bench }
    bridges:
      copy: { from: here:a, to: [here:b, slow:c] }
    relay: { listen: "127.0.0.1:0", journal: FOLDER/relay.db }
    """
  }

  /// One local server, one room mirrored into another.
  static let localToLocal = """
    accounts:
      here: { provider: local, url: "http://127.0.0.1:0", token: bench }
    bridges:
      copy: { from: here:a, to: [here:b] }
    relay: { listen: "127.0.0.1:0", journal: FOLDER/relay.db }
    serve:
      data: FOLDER/data
      \(local)
    """
}

/// The result of one benchmark, printed as one line of JSON.
struct Report: Encodable {
  let benchmark: String
  let values: [String: Double]

  func print() {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    let rounded = Report(benchmark: benchmark, values: values.mapValues { ($0 * 1000).rounded() / 1000 })
    if let data = try? encoder.encode(rounded) { Swift.print(String(decoding: data, as: UTF8.self)) }
  }
}

/// The value below which `fraction` of the sorted values lie.
func percentile(_ values: [Double], _ fraction: Double) -> Double {
  let sorted = values.sorted()
  return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * fraction))]
}

func milliseconds(_ duration: Duration) -> Double { duration.inSeconds * 1000 }
