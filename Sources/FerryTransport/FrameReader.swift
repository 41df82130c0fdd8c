import CWslay
import FerryRuntime

/// wslay's reading side of one WebSocket: bytes in, messages and control answers out. Loop thread only.
///
/// A reader holds 5 KB, so a socket has one only while a frame or message is incomplete; between messages it goes back
/// to the pool.
final class FrameReader {
  struct Result {
    var messages: [WebSocket.Message] = []
    /// Frames that wslay wants sent: pongs, and the answer to a close or to a violation of the protocol.
    var answer: [UInt8] = []
    /// A close frame that arrived.
    var closed: (code: UInt16, reason: String)?
    /// The other side broke the protocol; `answer` closes the socket with this code.
    var violation: UInt16?
    /// Nothing is incomplete: the reader may serve another socket.
    var isBetweenMessages = true
  }

  private var context: wslay_event_context_ptr?
  private var input = UnsafeRawBufferPointer(start: nil, count: 0)
  private var result = Result()
  /// Bytes taken since the last complete frame, and what that frame will have in all.
  private var taken = 0
  private var frameLength = 0
  private var isInMessage = false
  /// A control frame was fragmented or of a wrong length, which wslay lets pass in part (RFC 6455, 5.5 and 5.5.1).
  private var isBadControl = false
  private let isServer: Bool

  init(isServer: Bool) {
    self.isServer = isServer
    var callbacks = wslay_event_callbacks()
    callbacks.recv_callback = giveFrameBytes
    callbacks.send_callback = takeFrameBytes
    callbacks.genmask_callback = maskAnswer
    callbacks.on_frame_recv_start_callback = frameStarted
    callbacks.on_frame_recv_end_callback = frameEnded
    callbacks.on_msg_recv_callback = messageReceived
    let pointer = Unmanaged.passUnretained(self).toOpaque()
    let status =
      isServer
      ? wslay_event_context_server_init(&context, &callbacks, pointer)
      : wslay_event_context_client_init(&context, &callbacks, pointer)
    precondition(status == 0, "there is no memory for a frame reader")
  }

  deinit { wslay_event_context_free(context) }

  func read(_ bytes: UnsafeRawBufferPointer, messageBytes: Int) -> Result {
    wslay_event_config_set_max_recv_msg_length(context, UInt64(messageBytes))
    input = bytes
    result = Result()
    let status = wslay_event_recv(context)
    while wslay_event_want_write(context) != 0, wslay_event_send(context) == 0 {}
    input = UnsafeRawBufferPointer(start: nil, count: 0)
    let isRefused = status != 0 || (result.closed == nil && wslay_event_get_close_sent(context) != 0)
    if isBadControl || isRefused {
      result.closed = nil
      let code = wslay_event_get_status_code_sent(context)
      // For some violations wslay queues a close without a code.
      result.violation = isBadControl || ![1007, 1009].contains(code) ? 1002 : code
      if result.violation != code {
        result.answer = FrameEncoding.close(code: 1002, reason: "", isMasked: !isServer)
      }
    }
    result.isBetweenMessages = taken == 0 && !isInMessage && result.closed == nil && result.violation == nil
    defer { result = Result() }
    return result
  }

  // MARK: Called by wslay, inside `read`

  fileprivate func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    let length = min(buffer.count, input.count)
    guard length > 0 else { return 0 }
    buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<length]))
    input = UnsafeRawBufferPointer(rebasing: input[length...])
    taken += length
    return length
  }

  fileprivate func append(_ bytes: UnsafeBufferPointer<UInt8>) { result.answer.append(contentsOf: bytes) }

  fileprivate func started(payloadLength: UInt64, isFinal: Bool, opcode: UInt8) {
    let extended = payloadLength < 126 ? 0 : payloadLength < 65536 ? 2 : 8
    frameLength = 2 + extended + (isServer ? 4 : 0) + Int(clamping: payloadLength)
    if opcode & 8 == 0 {
      isInMessage = !isFinal
    } else if !isFinal || payloadLength > 125 || (opcode == WSLAY_CONNECTION_CLOSE.rawValue && payloadLength == 1) {
      isBadControl = true
    }
  }

  /// wslay reads ahead into its own buffer, so more may have been taken than this frame.
  fileprivate func ended() { taken -= frameLength }

  fileprivate func received(_ opcode: UInt8, _ payload: UnsafeBufferPointer<UInt8>, status: UInt16) {
    guard !isBadControl else { return }
    switch opcode {
    case UInt8(WSLAY_TEXT_FRAME.rawValue):
      result.messages.append(.text(String(decoding: payload, as: UTF8.self)))
    case UInt8(WSLAY_BINARY_FRAME.rawValue):
      result.messages.append(.binary(Array(payload)))
    case UInt8(WSLAY_CONNECTION_CLOSE.rawValue):
      let reason = String(decoding: payload.dropFirst(2), as: UTF8.self)
      result.closed = (status == 0 ? 1005 : status, reason)
    default: break
    }
  }
}

// All are called inside `wslay_event_recv` or `wslay_event_send`, on the loop thread. `context` is the reader, which is
// alive because it is making that call.

private func reader(_ context: UnsafeMutableRawPointer?) -> FrameReader? {
  context.map { Unmanaged<FrameReader>.fromOpaque($0).takeUnretainedValue() }
}

private let giveFrameBytes: wslay_event_recv_callback = { wslay, buffer, length, _, context in
  let count = reader(context)?.give(UnsafeMutableRawBufferPointer(start: buffer, count: length)) ?? 0
  guard count == 0 else { return count }
  wslay_event_set_error(wslay, WSLAY_ERR_WOULDBLOCK.rawValue)
  return -1
}

private let takeFrameBytes: wslay_event_send_callback = { _, data, length, _, context in
  reader(context)?.append(UnsafeBufferPointer(start: data, count: length))
  return length
}

private let maskAnswer: wslay_event_genmask_callback = { _, buffer, length, _ in
  guard let buffer else { return -1 }
  _ = UnsafeMutableBufferPointer(start: buffer, count: length).update(fromContentsOf: Crypto.randomBytes(length))
  return 0
}

private let frameStarted: wslay_event_on_frame_recv_start_callback = { _, frame, context in
  guard let frame = frame?.pointee else { return }
  reader(context)?.started(payloadLength: frame.payload_length, isFinal: frame.fin != 0, opcode: frame.opcode)
}

private let frameEnded: wslay_event_on_frame_recv_end_callback = { _, context in reader(context)?.ended() }

private let messageReceived: wslay_event_on_msg_recv_callback = { _, message, context in
  guard let message = message?.pointee else { return }
  reader(context)?.received(
    message.opcode, UnsafeBufferPointer(start: message.msg, count: message.msg_length), status: message.status_code)
}

/// Frame readers that no socket holds, and the buffer that sockets are read into. One a loop user; loop thread only.
final class FramePool {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  private var idle: [FrameReader] = []
  private let isServer: Bool

  init(isServer: Bool) { self.isServer = isServer }

  deinit { buffer.deallocate() }

  func take() -> FrameReader { idle.popLast() ?? FrameReader(isServer: isServer) }

  func giveBack(_ reader: FrameReader) { if idle.count < 16 { idle.append(reader) } }
}
