import CCurl
import FerryRuntime
import Glibc

/// libcurl's multi interface driven by our loop: its sockets are watched and its timer is kept there.
final class CurlMulti: @unchecked Sendable {
  // @unchecked because everything is touched on the loop thread only, but for `loop`, which never changes.

  let loop: LoopExecutor
  /// Called on the loop thread for each transfer that has ended, outside of libcurl.
  var onFinished: (@Sendable (UnsafeMutableRawPointer, CURLcode) -> Void)?
  private let handle: UnsafeMutableRawPointer
  private var watches: [curl_socket_t: (id: LoopExecutor.WatchID, events: LoopExecutor.Events)] = [:]
  private var timer: LoopExecutor.TimerID?
  private var idle: [UnsafeMutableRawPointer] = []
  private var isClosed = false

  private static let isReady: Bool = {
    // OpenSSL writes to sockets with plain `write`, which would end the process when the other side is gone.
    signal(SIGPIPE, SIG_IGN)
    return curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK
  }()

  init(loop: LoopExecutor) {
    self.loop = loop
    precondition(Self.isReady, "libcurl could not be initialised")
    guard let handle = curl_multi_init() else { preconditionFailure("there is no memory for libcurl") }
    self.handle = handle
    let context = Unmanaged.passUnretained(self).toOpaque()
    ccurl_multi_set_socket_callback(handle, socketChanged, context)
    ccurl_multi_set_timer_callback(handle, timerChanged, context)
  }

  deinit {
    // Not closed, because the loop has ended before.
    if !isClosed { cleanUp() }
  }

  /// Nothing may be used afterwards.
  func close() {
    loop.checkIsolated()
    for watch in watches.values { loop.unwatch(watch.id) }
    watches = [:]
    if let timer { loop.cancel(timer) }
    timer = nil
    cleanUp()
  }

  private func cleanUp() {
    isClosed = true
    ccurl_multi_set_socket_callback(handle, nil, nil)
    ccurl_multi_set_timer_callback(handle, nil, nil)
    for easy in idle { curl_easy_cleanup(easy) }
    idle = []
    curl_multi_cleanup(handle)
  }

  // MARK: Transfers

  func takeHandle() -> UnsafeMutableRawPointer? { idle.popLast() ?? curl_easy_init() }

  func giveBack(_ easy: UnsafeMutableRawPointer) {
    guard idle.count < 16 else { return curl_easy_cleanup(easy) }
    curl_easy_reset(easy)
    idle.append(easy)
  }

  func add(_ easy: UnsafeMutableRawPointer) -> Bool { curl_multi_add_handle(handle, easy) == CURLM_OK }

  func remove(_ easy: UnsafeMutableRawPointer) { curl_multi_remove_handle(handle, easy) }

  private func act(on socket: curl_socket_t, _ events: Int32) {
    var running: Int32 = 0
    curl_multi_socket_action(handle, socket, events, &running)
    collect()
  }

  /// Hands on what has ended. Must follow whatever may make libcurl end a transfer.
  func collect() {
    var left: Int32 = 0
    while let message = curl_multi_info_read(handle, &left) {
      guard let easy = ccurl_message_handle(message) else { continue }
      onFinished?(easy, ccurl_message_result(message))
    }
  }

  // MARK: Called by libcurl

  fileprivate func watch(_ socket: curl_socket_t, _ what: Int32) {
    if what == CURL_POLL_REMOVE {
      if let watch = watches.removeValue(forKey: socket) { loop.unwatch(watch.id) }
      return
    }
    var events: LoopExecutor.Events = []
    if what & CURL_POLL_IN != 0 { events.insert(.readable) }
    if what & CURL_POLL_OUT != 0 { events.insert(.writable) }
    if let watch = watches[socket] {
      guard watch.events != events else { return }
      watches[socket]?.events = events
      return loop.change(watch.id, to: events)
    }
    let id = loop.watch(socket, for: events) { [weak self] ready in
      var bits: Int32 = 0
      if ready.contains(.readable) { bits |= CURL_CSELECT_IN }
      if ready.contains(.writable) { bits |= CURL_CSELECT_OUT }
      if !ready.isDisjoint(with: .closed) { bits |= CURL_CSELECT_ERR }
      self?.act(on: socket, bits)
    }
    watches[socket] = (id, events)
  }

  fileprivate func setTimer(_ milliseconds: Int) {
    if let timer { loop.cancel(timer) }
    timer = nil
    guard milliseconds >= 0 else { return }
    timer = loop.schedule(after: .milliseconds(milliseconds)) { [weak self] in
      self?.timer = nil
      self?.act(on: CURL_SOCKET_BAD, 0)
    }
  }
}

// Both are called on the loop thread inside calls into libcurl, which must not be called again from here. `context` is
// the `CurlMulti`, which outlives libcurl's handle.

private let socketChanged: curl_socket_callback = { _, socket, what, context, _ in
  if let context { Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().watch(socket, what) }
  return 0
}

private let timerChanged: curl_multi_timer_callback = { _, milliseconds, context in
  if let context { Unmanaged<CurlMulti>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds) }
  return 0
}
