extension WebSocket {
  /// What a socket's lock protects: the way out and the messages that wait for the receiver.
  struct State: Sendable {
    /// Nil once the socket is gone.
    var wire: (any Wire)?
    /// Nil before the socket is started and once it is gone. The loop holds it.
    weak var driver: SocketDriver?

    // Outbound.
    var queue: [[UInt8]] = []
    /// How much of the queue's first frame has been written.
    var offset = 0
    var queuedBytes = 0
    /// A close frame was sent or queued, or the socket is gone: nothing more is sent.
    var hasSentClose = false
    var senders: [(number: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    var lastSender: UInt64 = 0

    // Inbound.
    var inbound: [Message] = []
    var inboundBytes = 0
    var isInboundEnded = false
    var isReadingPaused = false
    var receiver: UnsafeContinuation<Void, Never>?
    var closing: (code: UInt16, reason: String)?

    init(wire: any Wire) { self.wire = wire }

    /// Writes what the socket takes and queues the rest. The driver is needed when something is queued newly.
    mutating func send(_ bytes: [UInt8], limit: Int) -> (Transmission, needsDriver: Bool) {
      guard let wire else { return (.closed, false) }
      guard queuedBytes == 0, wire.writesAnywhere else {
        if queuedBytes > 0, queuedBytes + bytes.count > limit { return (.full, false) }
        let isFirst = queuedBytes == 0
        queue.append(bytes)
        queuedBytes += bytes.count
        return (.sent, isFirst)
      }
      switch bytes.withUnsafeBytes({ wire.write($0) }) {
      case .bytes(bytes.count): return (.sent, false)
      case .bytes(let count): enqueue(bytes, from: count)
      case .wouldBlock: enqueue(bytes, from: 0)
      case .ended: return (.closed, false)
      }
      return (.sent, true)
    }

    private mutating func enqueue(_ bytes: [UInt8], from start: Int) {
      queue.append(bytes)
      offset = start
      queuedBytes = bytes.count - start
    }

    /// Frees what waits, but for the frame that may be half sent, and puts `goodbye` behind that. False when a close
    /// was sent before.
    mutating func giveUp(_ goodbye: [UInt8]?) -> Bool {
      guard !hasSentClose else { return false }
      hasSentClose = true
      guard let goodbye else { return true }
      queue = queue.prefix(1) + [goodbye]
      queuedBytes = queue.reduce(-offset) { $0 + $1.count }
      return true
    }

    enum Flushed { case all, some, ended }

    /// Writes as much of the queue as the socket takes. Loop thread.
    mutating func flush() -> Flushed {
      guard let wire else { return .ended }
      var done = 0
      defer { queue.removeFirst(done) }
      while done < queue.count {
        let frame = queue[done]
        let result = frame.withUnsafeBytes { wire.write(UnsafeRawBufferPointer(rebasing: $0[offset...])) }
        switch result {
        case .bytes(let count):
          offset += count
          queuedBytes -= count
          guard offset == frame.count else { return .some }
          offset = 0
          done += 1
        case .wouldBlock: return .some
        case .ended: return .ended
        }
      }
      return .all
    }

    mutating func takeMessage() -> Message? {
      guard !inbound.isEmpty else { return nil }
      let message = inbound.removeFirst()
      inboundBytes -= message.size
      return message
    }

    /// Adds what arrived and returns the receiver to be resumed.
    mutating func receive(_ messages: [Message]) -> UnsafeContinuation<Void, Never>? {
      guard !isInboundEnded, !messages.isEmpty else { return nil }
      inbound += messages
      for message in messages { inboundBytes += message.size }
      if inboundBytes > WebSocket.inboundBytes || inbound.count > WebSocket.inboundMessages { isReadingPaused = true }
      defer { receiver = nil }
      return receiver
    }

    /// Nothing more is received, but for what waits already.
    mutating func endInbound() -> UnsafeContinuation<Void, Never>? {
      isInboundEnded = true
      defer { receiver = nil }
      return receiver
    }
  }
}
