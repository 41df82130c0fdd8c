import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// A ferry process under test, in a folder of its own.
final class Child {
  let folder: String
  let pid: pid_t
  private(set) var urls: [String: String] = [:]
  private let keepsFolder: Bool

  /// Starts `ferry COMMAND` with the configuration and waits until it is ready.
  init(_ command: String, config: String, folder given: String? = nil) throws {
    folder = try given ?? Self.makeFolder()
    keepsFolder = given != nil
    let configPath = "\(folder)/\(command).yaml"
    let ready = "\(folder)/\(command).ready"
    try? FileManager.default.removeItem(atPath: ready)
    try Data(config.replacing("FOLDER", with: folder).utf8).write(to: URL(fileURLWithPath: configPath))
    var arguments = [command, "--config", configPath, "--ready-file", ready]
    if command == "demo" { arguments += ["--data", "\(folder)/data"] }
    pid = try Self.spawn(arguments, log: "\(folder)/\(command).log")
    while true {
      if let data = FileManager.default.contents(atPath: ready) {
        urls = try JSONDecoder().decode([String: String].self, from: data)
        return
      }
      var status: Int32 = 0
      guard waitpid(pid, &status, WNOHANG) == 0 else {
        let log = FileManager.default.contents(atPath: "\(folder)/\(command).log") ?? Data()
        throw FerryError(.unavailable, "ferry \(command) ended: \(String(decoding: log, as: UTF8.self))")
      }
      usleep(500)
    }
  }

  func port(_ name: String) -> UInt16 {
    UInt16(urls[name]?.split(separator: ":").last ?? "") ?? 0
  }

  /// User and system time so far, in microseconds.
  var cpuMicroseconds: Double {
    guard let text = read("/proc/\(pid)/stat"), let end = text.lastIndex(of: ")") else { return 0 }
    let fields = text[end...].split(separator: " ")
    let ticks = (Double(fields[12]) ?? 0) + (Double(fields[13]) ?? 0)
    return ticks * 1e6 / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  var residentMB: Double { megabytes("VmRSS:") }
  var peakMB: Double { megabytes("VmHWM:") }

  func stop() {
    kill(pid, SIGTERM)
    var status: Int32 = 0
    waitpid(pid, &status, 0)
    if !keepsFolder { try? FileManager.default.removeItem(atPath: folder) }
  }

  private func megabytes(_ key: String) -> Double {
    let line = read("/proc/\(pid)/status")?.split(separator: "\n").first { $0.hasPrefix(key) }
    return (line?.split(separator: " ").dropFirst().first.flatMap { Double($0) } ?? 0) / 1024
  }

  private func read(_ path: String) -> String? {
    try? String(contentsOf: URL(fileURLWithPath: path), encoding: .utf8)
  }

  private static func makeFolder() throws -> String {
    let folder = "\(FileManager.default.temporaryDirectory.path)/ferry-bench-\(Crypto.randomHex(bytes: 6))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return folder
  }

  /// The ferry beside this program, or `$FERRY_BIN`.
  static var ferry: String {
    if let path = ProcessInfo.processInfo.environment["FERRY_BIN"] { return path }
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/ferry"
  }

  /// Output goes to `log`, or nowhere.
  static func spawn(_ arguments: [String], log: String? = nil) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    let output = log ?? "/dev/null"
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    var pid: pid_t = 0
    var words = ([ferry] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    guard posix_spawn(&pid, ferry, &actions, nil, words, environ) == 0 else {
      throw FerryError(.unavailable, "\(ferry) cannot be started. Run 'make build' first.")
    }
    return pid
  }
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
