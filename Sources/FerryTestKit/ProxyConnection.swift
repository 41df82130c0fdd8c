import FerryCore
import FerryRuntime
import Glibc

/// One client's connection and the one made for it to the service. Lives on the proxy's loop.
final class ProxyConnection {
  private enum Phase {
    /// The next bytes of the client begin a request.
    case idle
    /// The client's bytes belong to a request under way.
    case requesting
    /// Like `requesting`, but the answer must not arrive.
    case swallowing
    /// Like `requesting`, but what arrives is garbage.
    case garbling
    /// The proxy has answered: what the client still sends is thrown away.
    case answered
  }

  /// One way: what has been read from `source` and is yet to be written to `sink`.
  private final class Way {
    let source: Int32
    let sink: Int32
    var chunks: [(due: ContinuousClock.Instant, bytes: ArraySlice<UInt8>)] = []
    var waiting = 0
    var sourceEnded = false
    var sinkEnded = false
    var mayWriteAt = ContinuousClock.now
    var timer: LoopExecutor.TimerID?

    init(source: Int32, sink: Int32) {
      self.source = source
      self.sink = sink
    }
  }

  private static let queueLimit = 1 << 20
  /// How much of a request that breaks off never arrives.
  private static let tornBytes = 7

  private let number: Int
  private unowned let proxy: FaultProxy
  private let loop: LoopExecutor
  private let client: Int32
  private let server: Int32
  private let out: Way
  private let back: Way
  private var watches: [Int32: (id: LoopExecutor.WatchID, events: LoopExecutor.Events)] = [:]
  private var phase = Phase.idle
  private var isClosed = false
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)

  init(number: Int, client: Int32, server: Int32, proxy: isolated FaultProxy) {
    self.number = number
    self.client = client
    self.server = server
    self.proxy = proxy
    loop = proxy.loop
    out = Way(source: client, sink: server)
    back = Way(source: server, sink: client)
    for descriptor in [client, server] {
      let id = loop.watch(descriptor, for: .readable) { [unowned self] events in ready(descriptor, events) }
      watches[descriptor] = (id, .readable)
    }
  }

  func close(reset: Bool) {
    guard !isClosed else { return }
    isClosed = true
    for way in [out, back] { way.timer.map { loop.cancel($0) } }
    for watch in watches.values { loop.unwatch(watch.id) }
    watches = [:]
    for descriptor in [client, server] {
      if reset { Sockets.reset(descriptor) } else { Glibc.close(descriptor) }
    }
    let number = number
    proxy.assumeIsolated { $0.forget(number) }
  }

  /// Looks again at what may be written, after the faults have changed.
  func moveOn() {
    for way in [out, back] where !isClosed { write(way) }
    updateInterest()
  }

  // MARK: Events

  private func ready(_ descriptor: Int32, _ events: LoopExecutor.Events) {
    let (reading, writing) = descriptor == client ? (out, back) : (back, out)
    if events.contains(.closed), !events.contains(.readable) { return gone(descriptor, reading) }
    if events.contains(.readable) { read(reading) }
    if !isClosed, events.contains(.writable) { write(writing) }
    updateInterest()
  }

  /// A broken connection, or one that both sides have ended: then what was read is still passed on.
  private func gone(_ descriptor: Int32, _ way: Way) {
    guard way.sourceEnded, !way.chunks.isEmpty else { return close(reset: !way.sourceEnded) }
    watches.removeValue(forKey: descriptor).map { loop.unwatch($0.id) }
  }

  private func read(_ way: Way) {
    guard !way.sourceEnded, way.waiting < Self.queueLimit else { return }
    let count = Glibc.read(way.source, &buffer, buffer.count)
    if count < 0 {
      if errno != EAGAIN && errno != EINTR { close(reset: true) }
      return
    }
    if count == 0 {
      way.sourceEnded = true
      return write(way)
    }
    let bytes = buffer[..<count]
    guard way === out ? receivedFromClient(bytes) : receivedFromServer(bytes) else { return }
    way.chunks.append((ContinuousClock.now.advanced(by: faults.delay), bytes))
    way.waiting += count
    write(way)
  }

  /// Whether the bytes are to be passed on.
  private func receivedFromClient(_ bytes: ArraySlice<UInt8>) -> Bool {
    switch phase {
    case .requesting, .swallowing, .garbling: return true
    case .answered: return false
    case .idle: break
    }
    phase = .requesting
    guard let line = Self.requestLine(bytes) else { return true }
    switch proxy.assumeIsolated({ $0.verdict(for: line) }) {
    case .pass: return true
    case .swallow:
      phase = .swallowing
      return true
    case .garble:
      phase = .garbling
      return true
    case .tear:
      out.chunks.append((ContinuousClock.now, bytes.dropLast(Self.tornBytes)))
      write(out)
      close(reset: true)
      return false
    case .answer(let text):
      answer(text)
      return false
    }
  }

  /// In place of the service.
  private func answer(_ text: String) {
    phase = .answered
    back.chunks.append((ContinuousClock.now.advanced(by: faults.delay), Array(text.utf8)[...]))
    back.sourceEnded = true
    write(back)
  }

  private func receivedFromServer(_ bytes: ArraySlice<UInt8>) -> Bool {
    switch phase {
    case .answered: return false
    case .swallowing:
      // "100 Continue" is no answer: without it the request's body would never come.
      if bytes.starts(with: "HTTP/1.1 100".utf8) { return true }
      close(reset: true)
      return false
    case .garbling:
      if bytes.starts(with: "HTTP/1.1 100".utf8) { return true }
      answer(FaultProxy.garbage)
      return false
    case .requesting:
      if !bytes.starts(with: "HTTP/1.1 100".utf8) { phase = .idle }
      return true
    case .idle: return true
    }
  }

  /// `POST /path HTTP/1.1`, when the bytes begin with such a line.
  private static func requestLine(_ bytes: ArraySlice<UInt8>) -> String? {
    let line = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\r") }, as: UTF8.self)
    return line.hasSuffix(" HTTP/1.1") || line.hasSuffix(" HTTP/1.0") ? line : nil
  }

  // MARK: Writing

  private func write(_ way: Way) {
    while !isClosed, let chunk = way.chunks.first {
      let now = ContinuousClock.now
      let due = max(chunk.due, way.mayWriteAt)
      if due > now { return wake(way, in: now.duration(to: due)) }
      // When throttled, small pieces often: what a slow line looks like.
      let rate = faults.bytesPerSecond
      let piece = chunk.bytes.prefix(rate.map { max($0 / 50, 1) } ?? .max)
      let count = piece.withUnsafeBytes { send(way.sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count < 0 {
        if errno != EAGAIN && errno != EINTR && errno != ENOTCONN { close(reset: true) }
        return
      }
      way.waiting = max(way.waiting - count, 0)
      if count == chunk.bytes.count {
        way.chunks.removeFirst()
      } else {
        way.chunks[0].bytes = chunk.bytes.dropFirst(count)
      }
      if let rate { way.mayWriteAt = now.advanced(by: .seconds(1) * (Double(count) / Double(rate))) }
    }
    finish(way)
  }

  /// Hands on that a side has finished sending; closes when both have.
  private func finish(_ way: Way) {
    guard !isClosed, way.sourceEnded, way.chunks.isEmpty, !way.sinkEnded else { return }
    way.sinkEnded = true
    shutdown(way.sink, Int32(SHUT_WR))
    if out.sinkEnded && back.sinkEnded || phase == .answered && out.sourceEnded { close(reset: false) }
  }

  private func wake(_ way: Way, in wait: Duration) {
    way.timer.map { loop.cancel($0) }
    way.timer = loop.schedule(after: wait) { [unowned self, unowned way] in
      way.timer = nil
      write(way)
      updateInterest()
    }
  }

  private func updateInterest() {
    guard !isClosed else { return }
    for (descriptor, reading, writing) in [(client, out, back), (server, back, out)] {
      var events: LoopExecutor.Events = []
      if !reading.sourceEnded, reading.waiting < Self.queueLimit { events.insert(.readable) }
      if writing.timer == nil, !writing.chunks.isEmpty { events.insert(.writable) }
      guard let watch = watches[descriptor], watch.events != events else { continue }
      loop.change(watch.id, to: events)
      watches[descriptor]?.events = events
    }
  }

  private var faults: FaultProxy.Faults { proxy.assumeIsolated { $0.faults } }
}
