import FerryCore
import FerryRuntime
import FoundationEssentials

extension ByteStream {
  /// The bytes that this stream of Base64 stands for, decoded as they arrive. White space does not count.
  func decodingBase64() -> ByteStream {
    let rest = Locked<[UInt8]>([])
    let isEnded = Locked(false)
    return ByteStream { () async throws(FerryError) -> [UInt8]? in
      while !isEnded.withLock({ $0 }) {
        let piece = try await self.next()
        if piece == nil { isEnded.withLock { $0 = true } }
        let text = rest.withLock { rest -> [UInt8] in
          rest += (piece ?? []).filter { $0 > 0x20 }
          let count = piece == nil ? rest.count : rest.count / 4 * 4
          defer { rest.removeFirst(count) }
          return Array(rest[..<count])
        }
        if text.isEmpty { continue }
        guard let bytes = Base64Text.bytes(text) else {
          throw FerryError(.badRequest, "The body is not valid Base64.")
        }
        if !bytes.isEmpty { return bytes }
      }
      return nil
    }
  }

  /// Fails once more than `limit` bytes have come.
  func limited(to limit: Int64) -> ByteStream {
    let count = Locked<Int64>(0)
    return ByteStream(size: size, mediaType: mediaType) { () async throws(FerryError) -> [UInt8]? in
      guard let piece = try await self.next() else { return nil }
      let total = count.withLock { count in
        count += Int64(piece.count)
        return count
      }
      guard total <= limit else { throw FerryError(.tooLarge, "The file is larger than the limit of \(limit) bytes.") }
      return piece
    }
  }

  /// This stream, and then another.
  func followed(by other: ByteStream) -> ByteStream {
    let isFirstDone = Locked(false)
    return ByteStream { () async throws(FerryError) -> [UInt8]? in
      if !isFirstDone.withLock({ $0 }) {
        if let piece = try await self.next() { return piece }
        isFirstDone.withLock { $0 = true }
      }
      return try await other.next()
    }
  }
}

enum Base64Text {
  /// With the signs at its end or without them.
  static func bytes(_ text: [UInt8]) -> [UInt8]? {
    let missing = (4 - text.count % 4) % 4
    guard missing < 3 else { return nil }
    let padded = text + [UInt8](repeating: UInt8(ascii: "="), count: missing)
    return Data(base64Encoded: Data(padded)).map { [UInt8]($0) }
  }
}
