/// Bytes that arrive piece by piece, read once by one task. Reading the next piece is what lets the source send it.
package struct ByteStream: Sendable {
  /// As declared by the source; what arrives may differ.
  package let size: Int64?
  package let mediaType: String?
  private let read: @Sendable () async throws(FerryError) -> [UInt8]?

  /// `read` returns pieces that are not empty, and nil at the end and ever after.
  package init(
    size: Int64? = nil, mediaType: String? = nil, read: @escaping @Sendable () async throws(FerryError) -> [UInt8]?
  ) {
    self.size = size
    self.mediaType = mediaType
    self.read = read
  }

  package func next() async throws(FerryError) -> [UInt8]? { try await read() }

  /// The whole, or `tooLarge` once it exceeds `limit` bytes.
  package func collect(upTo limit: Int) async throws(FerryError) -> [UInt8] {
    var all: [UInt8] = []
    while let piece = try await next() {
      guard all.count + piece.count <= limit else {
        throw FerryError(.tooLarge, "The data is larger than the limit of \(limit) bytes.")
      }
      all.append(contentsOf: piece)
    }
    return all
  }
}
