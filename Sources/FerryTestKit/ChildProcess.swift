package import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// A program that a test or benchmark starts, watches and ends: by its id, never by its name.
package final class ChildProcess: Sendable {
  package let pid: Int32
  private let folder: String
  private let exit = Locked<Int32?>(nil)

  /// What ran to its end.
  package struct Outcome: Sendable {
    package let code: Int32
    package let output: String
    package let errors: String
  }

  /// Starts `program`. Output and errors go to files that `output` and `errors` read.
  package init(
    _ program: String, _ arguments: [String], input: String? = nil, environment: [String: String] = [:]
  ) throws(FerryError) {
    folder = "\(FileManager.default.temporaryDirectory.path)/ferry-child-\(Crypto.randomHex(bytes: 8))"
    do {
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      try Data((input ?? "").utf8).write(to: URL(fileURLWithPath: "\(folder)/in"))
    } catch { throw FerryError.wrap(error) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "\(folder)/in", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "\(folder)/out", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, "\(folder)/err", O_WRONLY | O_CREAT | O_APPEND, 0o600)
    let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
    var words = ([program] + arguments).map { strdup($0) } + [nil]
    var pairs = variables.map { strdup($0) } + [nil]
    defer { for word in words + pairs { free(word) } }
    var pid: pid_t = 0
    let status = posix_spawn(&pid, program, &actions, nil, &words, &pairs)
    self.pid = pid
    guard status == 0 else {
      throw FerryError(.unavailable, "\(program) cannot be started: \(String(cString: strerror(status))).")
    }
  }

  deinit {
    if exit.withLock({ $0 }) == nil {
      Glibc.kill(pid, SIGKILL)
      var status: Int32 = 0
      waitpid(pid, &status, 0)
    }
    try? FileManager.default.removeItem(atPath: folder)
  }

  package var output: String { text("out") }
  package var errors: String { text("err") }

  package var isRunning: Bool {
    exit.withLock { exit in
      guard exit == nil else { return false }
      var status: Int32 = 0
      guard waitpid(pid, &status, WNOHANG) == pid else { return true }
      exit = Self.code(of: status)
      return false
    }
  }

  package func signal(_ number: Int32) { Glibc.kill(pid, number) }

  /// The exit code, or 128 and the signal that ended it.
  package func wait() async -> Int32 {
    while isRunning { try? await SystemClock().sleep(for: .milliseconds(2)) }
    return exit.withLock { $0 } ?? -1
  }

  /// Runs a program to its end.
  package static func run(
    _ program: String, _ arguments: [String], input: String? = nil, environment: [String: String] = [:]
  ) async throws(FerryError) -> Outcome {
    let child = try ChildProcess(program, arguments, input: input, environment: environment)
    let code = await child.wait()
    return Outcome(code: code, output: child.output, errors: child.errors)
  }

  /// A program built beside the running test bundle; or the `ferry` that `FERRY_BIN` names, such as a release build.
  package static func built(_ name: String) -> String {
    if name == "ferry", let other = ProcessInfo.processInfo.environment["FERRY_BIN"] { return other }
    let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return own.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/") + "/\(name)"
  }

  private func text(_ name: String) -> String {
    String(decoding: FileManager.default.contents(atPath: "\(folder)/\(name)") ?? Data(), as: UTF8.self)
  }

  private static func code(of status: Int32) -> Int32 {
    status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + (status & 0x7f)
  }
}
