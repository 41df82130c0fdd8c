import CWslay
import FerryRuntime

/// A text message encoded once, to be sent to many sockets. Server frames are not masked, so all get the same bytes.
package struct EncodedFrame: Sendable {
  let bytes: [UInt8]

  package init(text: String) { bytes = FrameEncoding.encode(.text, Array(text.utf8), isMasked: false) }

  package init(binary message: [UInt8]) { bytes = FrameEncoding.encode(.binary, message, isMasked: false) }
}

/// Frames by wslay, written into memory.
enum FrameEncoding {
  enum Kind: UInt8 { case text = 1, binary = 2, close = 8, ping = 9 }

  /// One whole frame, masked with a random key as a client must.
  static func encode(_ kind: Kind, _ payload: [UInt8], isMasked: Bool) -> [UInt8] {
    var callbacks = wslay_frame_callbacks(
      send_callback: appendFrameBytes, recv_callback: nil, genmask_callback: makeFrameMask)
    var context: wslay_frame_context_ptr?
    let output = FrameOutput(capacity: payload.count + 14)
    guard wslay_frame_context_init(&context, &callbacks, Unmanaged.passUnretained(output).toOpaque()) == 0 else {
      preconditionFailure("there is no memory for a frame")
    }
    defer { wslay_frame_context_free(context) }
    payload.withUnsafeBufferPointer { bytes in
      var frame = wslay_frame_iocb()
      frame.fin = 1
      frame.opcode = kind.rawValue
      frame.mask = isMasked ? 1 : 0
      frame.payload_length = UInt64(bytes.count)
      frame.data = bytes.baseAddress
      frame.data_length = bytes.count
      // Masking goes in pieces of wslay's own buffer; a call may end early.
      var sent = 0
      repeat {
        let count = wslay_frame_send(context, &frame)
        precondition(count >= 0, "a frame could not be encoded: \(count)")
        sent += count
        frame.data = bytes.baseAddress.map { $0 + sent }
        frame.data_length = bytes.count - sent
      } while sent < bytes.count
    }
    return output.bytes
  }

  /// `reason` is cut to what fits into a control frame, at a character's boundary. Code 1005 means: without a code.
  static func close(code: UInt16, reason: String, isMasked: Bool) -> [UInt8] {
    guard code != 1005 else { return encode(.close, [], isMasked: isMasked) }
    var text = reason[...]
    while text.utf8.count > 123 { text.removeLast() }
    return encode(.close, [UInt8(code >> 8), UInt8(code & 255)] + Array(text.utf8), isMasked: isMasked)
  }

  private final class FrameOutput {
    var bytes: [UInt8] = []
    init(capacity: Int) { bytes.reserveCapacity(capacity) }
  }

  // Both are called by wslay inside `wslay_frame_send`, on the caller's thread; the context lives as long as that call.

  private static let appendFrameBytes: wslay_frame_send_callback = { data, length, _, context in
    guard let data, let context else { return -1 }
    let output = Unmanaged<FrameOutput>.fromOpaque(context).takeUnretainedValue()
    output.bytes.append(contentsOf: UnsafeBufferPointer(start: data, count: length))
    return length
  }

  private static let makeFrameMask: wslay_frame_genmask_callback = { buffer, length, _ in
    guard let buffer else { return -1 }
    _ = UnsafeMutableBufferPointer(start: buffer, count: length).update(fromContentsOf: Crypto.randomBytes(length))
    return 0
  }
}
