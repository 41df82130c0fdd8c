import FerryRuntime
import Glibc
import Testing

/// A Python program of Tests/peers, with its standard input and output.
final class PeerProcess: Sendable {
  static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }
  static let python = "\(root)/.venv/bin/python"
  static var isAvailable: Bool { access(python, X_OK) == 0 && access("\(root)/.venv/bin/pip", X_OK) == 0 }
  static let advice: Comment = "needs .venv with Tests/peers/requirements.txt installed: make test makes it"

  private let process: pid_t
  private let input: Int32
  private let output: Int32
  private let rest = Locked<[UInt8]>([])

  init(_ script: String, _ arguments: String...) throws {
    var toChild: [Int32] = [0, 0]
    var fromChild: [Int32] = [0, 0]
    pipe(&toChild)
    pipe(&fromChild)
    for end in toChild + fromChild { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
    posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var words = ([Self.python, "\(Self.root)/Tests/peers/\(script)"] + arguments).map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var pid: pid_t = 0
    let status = posix_spawn(&pid, Self.python, &actions, nil, words, environ)
    close(toChild[0])
    close(fromChild[1])
    guard status == 0 else { throw SocketFailure(what: "python did not start: \(status)") }
    process = pid
    input = toChild[1]
    output = fromChild[0]
  }

  deinit {
    close(input)
    close(output)
    kill(process, SIGKILL)
    var status: Int32 = 0
    waitpid(process, &status, 0)
  }

  /// The next line, or nil at the end of the output, or when none comes within 20 s.
  func line() async throws -> String? {
    try await blocking { [self] in
      while true {
        let line = rest.withLock { rest -> String? in
          guard let end = rest.firstIndex(of: 10) else { return nil }
          defer { rest.removeSubrange(...end) }
          return String(decoding: rest[..<end], as: UTF8.self)
        }
        if let line { return line }
        var ready = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        guard poll(&ready, 1, 20_000) == 1 else { return nil }
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = read(output, &buffer, buffer.count)
        guard count > 0 else { return nil }
        rest.withLock { $0 += buffer[..<count] }
      }
    }
  }
}
