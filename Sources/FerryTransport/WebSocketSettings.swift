/// Limits and timers of one WebSocket.
package struct WebSocketSettings: Sendable {
  /// The largest message accepted, fragments joined; a larger one closes the socket with 1009.
  package var messageBytes: Int
  /// How much may wait to be sent. A reader that falls further behind is dropped.
  package var queueBytes: Int
  /// What such a reader is told behind what it has half received, should it read on within `closeTimeout`; the rest is
  /// thrown away. Nil: nothing.
  package var slowCode: UInt16?
  package var slowReason: String
  /// After this much silence from the other side (any traffic counts) a ping is sent. Nil: never.
  package var pingAfter: Duration?
  /// How long after a ping the silence may last. Then the socket is closed with `deadCode`.
  package var pongTimeout: Duration
  package var deadCode: UInt16
  package var deadReason: String
  /// How the socket is closed when the server stops.
  package var stopCode: UInt16
  package var stopReason: String
  /// How long the other side may take to answer a close.
  package var closeTimeout: Duration
  /// When the other side sends more, the socket is read more slowly. Nil: no limit.
  package var messagesPerSecond: Int?

  package init(
    messageBytes: Int = 1 << 20, queueBytes: Int = 1 << 20, slowCode: UInt16? = nil,
    slowReason: String = "too slow", pingAfter: Duration? = .seconds(60), pongTimeout: Duration = .seconds(30),
    deadCode: UInt16 = 1001, deadReason: String = "no pong", stopCode: UInt16 = 1001,
    stopReason: String = "the server stops", closeTimeout: Duration = .seconds(5), messagesPerSecond: Int? = nil
  ) {
    self.messageBytes = messageBytes
    self.queueBytes = queueBytes
    self.slowCode = slowCode
    self.slowReason = slowReason
    self.pingAfter = pingAfter
    self.pongTimeout = pongTimeout
    self.deadCode = deadCode
    self.deadReason = deadReason
    self.stopCode = stopCode
    self.stopReason = stopReason
    self.closeTimeout = closeTimeout
    self.messagesPerSecond = messagesPerSecond
  }
}
