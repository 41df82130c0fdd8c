import FerryCore
import FerryRuntime
import Testing

@testable import FerryTransport

struct FrameTests {
  private func read(_ bytes: [UInt8], with reader: FrameReader = FrameReader(isServer: true)) -> FrameReader.Result {
    bytes.withUnsafeBytes { reader.read($0, messageBytes: 1 << 20) }
  }

  @Test(
    "broken control frames are answered with a close of 1002",
    arguments: [
      [0x09, 0x80, 0, 0, 0, 0], [0x08, 0x80, 0, 0, 0, 0], [0x89, 0xfe, 0, 0x7e, 0, 0, 0, 0, 1],
      [0x88, 0x81, 0, 0, 0, 0, 3],
    ] as [[UInt8]])
  func badControl(bytes: [UInt8]) {
    let result = read(bytes)
    #expect(result.violation == 1002)
    #expect(result.answer == [0x88, 2, 0x03, 0xea])
    #expect(!result.isBetweenMessages)
  }

  @Test("a reader is free again exactly when a message is whole")
  func boundaries() {
    let reader = FrameReader(isServer: true)
    let first = RawSocket.frame(0x01, Array("ab".utf8))
    let last = RawSocket.frame(0x80, Array("c".utf8))
    let ping = RawSocket.frame(0x89, [1])
    #expect(!read(Array(first[..<1]), with: reader).isBetweenMessages)
    #expect(!read(Array(first[1...]), with: reader).isBetweenMessages)
    #expect(!read(ping, with: reader).isBetweenMessages)
    let end = read(last + Array(first[..<3]), with: reader)
    #expect(end.messages == [.text("abc")])
    #expect(!end.isBetweenMessages)
    #expect(!read(Array(first[3...]), with: reader).isBetweenMessages)
    #expect(read(last, with: reader).isBetweenMessages)
    let large = RawSocket.frame(0x82, [UInt8](repeating: 1, count: 100_000))
    #expect(read(large, with: reader).isBetweenMessages)
    #expect(read(ping, with: reader).isBetweenMessages)
  }

  @Test("frames are encoded as the other side reads them", arguments: [0, 1, 125, 126, 5000, 65535, 65536, 200_000])
  func encoding(size: Int) {
    let payload = [UInt8](repeating: 0x41, count: size)
    let masked = FrameEncoding.encode(.binary, payload, isMasked: true)
    #expect(read(masked).messages == [.binary(payload)])
    let plain = FrameEncoding.encode(.binary, payload, isMasked: false)
    #expect(read(plain, with: FrameReader(isServer: false)).messages == [.binary(payload)])
  }

  @Test("a close reason is cut at a character")
  func closeReason() {
    let bytes = FrameEncoding.close(code: 1000, reason: String(repeating: "é", count: 100), isMasked: false)
    #expect(bytes.count == 2 + 2 + 122)
    #expect(FrameEncoding.close(code: 1005, reason: "", isMasked: false) == [0x88, 0])
  }
}
