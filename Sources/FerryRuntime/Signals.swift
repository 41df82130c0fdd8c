import Glibc

/// SIGINT, SIGTERM and SIGHUP as values, received by a thread of their own. SIGPIPE is ignored.
package enum Signals {
  package enum Signal: Sendable { case interrupt, terminate, hangUp }

  /// Called once, before any other thread exists, so that all inherit the mask.
  package static func install() -> BoundedChannel<Signal> {
    let channel = BoundedChannel<Signal>(capacity: 16)
    signal(SIGPIPE, SIG_IGN)
    var set = sigset_t()
    sigemptyset(&set)
    for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
    pthread_sigmask(SIG_BLOCK, &set, nil)
    var thread = pthread_t()
    pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let channel = Unmanaged<BoundedChannel<Signal>>.fromOpaque(context).takeRetainedValue()
        var set = sigset_t()
        sigemptyset(&set)
        for number in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&set, number) }
        while true {
          var number: Int32 = 0
          guard sigwait(&set, &number) == 0 else { continue }
          let signal: Signal = number == SIGINT ? .interrupt : number == SIGHUP ? .hangUp : .terminate
          _ = channel.offer(signal)
        }
      }, Unmanaged.passRetained(channel).toOpaque())
    pthread_detach(thread)
    return channel
  }
}
