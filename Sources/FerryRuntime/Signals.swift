import Glibc

/// SIGINT, SIGTERM and SIGHUP as values. SIGPIPE is ignored.
///
/// A handler and a pipe, not a blocked mask and `sigwait`: the main thread of a Swift program sleeps with every signal
/// unblocked, so a blocked SIGTERM would still end the process there.
package enum Signals {
  package enum Signal: Sendable { case interrupt, terminate, hangUp }

  /// The end of the pipe that the handler writes to. Unsafe to the compiler and yet safe, because it is set once,
  /// before the handlers are installed.
  nonisolated(unsafe) private static var writeEnd: Int32 = -1

  /// Called once in a process, at its start.
  package static func install() -> BoundedChannel<Signal> {
    let channel = BoundedChannel<Signal>(capacity: 16)
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return channel }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    writeEnd = ends[1]
    signal(SIGPIPE, SIG_IGN)
    for number in [SIGINT, SIGTERM, SIGHUP] {
      // Runs in whatever thread the signal interrupts: nothing but write, which is safe there.
      signal(number) { number in
        var byte = UInt8(truncatingIfNeeded: number)
        let saved = errno
        _ = write(Signals.writeEnd, &byte, 1)
        errno = saved
      }
    }
    startReader(of: ends[0], into: channel)
    return channel
  }

  /// From now on SIGINT and SIGTERM end the process with this exit code, whatever it is waiting for. For work that has
  /// nothing to finish.
  package static func endAtOnce(with code: Int32) {
    exitCode = code
    // `_exit` is safe in a handler.
    for number in [SIGINT, SIGTERM] { signal(number) { _ in _exit(Signals.exitCode) } }
    signal(SIGHUP, SIG_DFL)
  }

  /// Unsafe to the compiler and yet safe, because it is set before the handlers that read it are installed.
  nonisolated(unsafe) private static var exitCode: Int32 = 0

  private final class Reader: Sendable {
    let readEnd: Int32
    let channel: BoundedChannel<Signal>

    init(readEnd: Int32, channel: BoundedChannel<Signal>) {
      self.readEnd = readEnd
      self.channel = channel
    }

    func run() {
      var byte: UInt8 = 0
      while true {
        let count = read(readEnd, &byte, 1)
        if count == 0 || (count < 0 && errno != EINTR) { return }
        if count < 0 { continue }
        let number = Int32(byte)
        _ = channel.offer(number == SIGINT ? .interrupt : number == SIGHUP ? .hangUp : .terminate)
      }
    }
  }

  private static func startReader(of readEnd: Int32, into channel: BoundedChannel<Signal>) {
    let reader = Reader(readEnd: readEnd, channel: channel)
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        // Called once, by the new thread, with the reference retained below.
        if let context { Unmanaged<Reader>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, Unmanaged.passRetained(reader).toOpaque())
    pthread_detach(thread)
  }
}
