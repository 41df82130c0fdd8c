import FerryCore
import FerryRuntime

/// The exchange that turns a connection into a WebSocket, on the client's side (RFC 6455, 4.1). Loop thread only.
final class ClientHandshake {
  struct Answer: Sendable {
    var status: Int
    var headers: HTTPHeaders
    /// What followed the answer's head.
    var rest: [UInt8]
  }

  private static let headLimit = 32 << 10

  private let wire: any Wire
  private let loop: LoopExecutor
  private let place: String
  private var request: [UInt8]
  private var sent = 0
  private var received: [UInt8] = []
  private var watch: LoopExecutor.WatchID?
  private var timer: LoopExecutor.TimerID?
  private var waiter: CheckedContinuation<Result<Answer, FerryError>, Never>?

  init(wire: any Wire, request: String, place: String, loop: LoopExecutor) {
    self.wire = wire
    self.request = Array(request.utf8)
    self.place = place
    self.loop = loop
  }

  func start(deadline: Duration, _ waiter: CheckedContinuation<Result<Answer, FerryError>, Never>) {
    self.waiter = waiter
    watch = loop.watch(wire.descriptor, for: [.readable, .writable]) { [unowned self] _ in goOn() }
    timer = loop.schedule(after: deadline) { [unowned self] in
      fail(FerryError(.timedOut, "\(place) did not open the WebSocket in time.", retry: .now, didNotAct: false))
    }
    goOn()
  }

  func fail(_ error: FerryError) { end(.failure(error)) }

  private func goOn() {
    while waiter != nil, sent < request.count {
      switch request.withUnsafeBytes({ wire.write(UnsafeRawBufferPointer(rebasing: $0[sent...])) }) {
      case .bytes(let count): sent += count
      case .wouldBlock: return
      case .ended: return fail(broken)
      }
    }
    guard waiter != nil else { return }
    if let watch { loop.change(watch, to: .readable) }
    read()
  }

  private func read() {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while waiter != nil {
      switch buffer.withUnsafeMutableBytes({ wire.read(into: $0) }) {
      case .bytes(let count): received += buffer[..<count]
      case .wouldBlock: return
      case .ended: return fail(broken)
      }
      if let answer = Self.parse(received) { return end(.success(answer)) }
      if received.count > Self.headLimit {
        return fail(FerryError(.badData, "\(place) answered with a head that is too long.", didNotAct: false))
      }
    }
  }

  private var broken: FerryError {
    FerryError(
      .unavailable, "\(place) closed the connection instead of opening a WebSocket.", retry: .now, didNotAct: false)
  }

  private func end(_ result: Result<Answer, FerryError>) {
    guard let waiter else { return }
    self.waiter = nil
    if let watch { loop.unwatch(watch) }
    if let timer { loop.cancel(timer) }
    waiter.resume(returning: result)
  }

  /// Nil while the head is incomplete. What cannot be understood has status 0.
  static func parse(_ bytes: [UInt8]) -> Answer? {
    let end: [UInt8] = [13, 10, 13, 10]
    guard bytes.count >= 4,
      let start = (0...(bytes.count - 4)).first(where: { bytes[$0..<$0 + 4].elementsEqual(end) })
    else { return nil }
    var headers: HTTPHeaders = [:]
    let lines = bytes[..<start].split(separator: 13).map { line in
      String(decoding: line.drop { $0 == 10 }, as: UTF8.self)
    }
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers.add(String(line[..<colon]), String(line[line.index(after: colon)...].trimmingSpaces))
    }
    let words = lines.first?.split(separator: " ") ?? []
    let isHTTP = words.first?.hasPrefix("HTTP/1.") ?? false
    let status = isHTTP && words.count > 1 ? Int(words[1]) ?? 0 : 0
    return Answer(status: status, headers: headers, rest: Array(bytes[(start + 4)...]))
  }
}
