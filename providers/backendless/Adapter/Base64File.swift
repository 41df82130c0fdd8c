import FerryCore
import FerryRuntime
import FoundationEssentials

/// One file as a body of Base64, encoded as it streams.
struct Base64File: Sendable {
  let body: ByteStream

  init(_ bytes: ByteStream) {
    /// What is not encoded yet, and whether that is all.
    let rest = Locked<(bytes: [UInt8], isEnd: Bool)>(([], false))
    let size = bytes.size.flatMap { $0 <= Int64.max / 8 ? ($0 + 2) / 3 * 4 : nil }
    body = ByteStream(size: size, mediaType: "text/plain") { () async throws(FerryError) -> [UInt8]? in
      while !rest.withLock({ $0.isEnd }) {
        let piece = try await bytes.next()
        let ready = rest.withLock { rest -> [UInt8] in
          rest.bytes += piece ?? []
          rest.isEnd = piece == nil
          // Three bytes are four letters: only the last piece may need filling up.
          let count = rest.isEnd ? rest.bytes.count : rest.bytes.count / 3 * 3
          defer { rest.bytes.removeFirst(count) }
          return Array(rest.bytes[..<count])
        }
        if !ready.isEmpty { return [UInt8](Data(ready).base64EncodedData()) }
      }
      return nil
    }
  }
}
