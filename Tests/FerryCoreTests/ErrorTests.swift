import FerryCore
import Testing

@Suite struct ErrorTests {
  @Test("an error reads as code, message and cause")
  func description() {
    #expect("\(FerryError(.notFound, "There is no such room."))" == "not_found: There is no such room.")
    #expect("\(FerryError(.storage, "Full.", cause: "ENOSPC"))" == "storage: Full. (ENOSPC)")
  }

  @Test("a foreign error counts as ours, with its outcome unknown")
  func wrapping() {
    struct Odd: Error {}
    let odd = FerryError.wrap(Odd())
    #expect(odd.code == .internal)
    #expect(!odd.didNotAct)
    #expect(FerryError.wrap(CancellationError()).code == .cancelled)
    #expect(FerryError.wrap(FerryError(.conflict, "x", retry: .after(.seconds(3)))).retry == .after(.seconds(3)))
  }

  @Test("a stream is collected up to its limit and no further")
  func collect() async throws {
    let limit = 10
    #expect(try await stream(pieces: 2, of: 5).collect(upTo: limit).count == 10)
    let error = await #expect(throws: FerryError.self) { try await stream(pieces: 3, of: 4).collect(upTo: limit) }
    #expect(error?.code == .tooLarge)
  }

  private func stream(pieces: Int, of size: Int) -> ByteStream {
    let left = Counter(pieces)
    return ByteStream { await left.take() ? [UInt8](repeating: 1, count: size) : nil }
  }

  private actor Counter {
    private var left: Int
    init(_ left: Int) { self.left = left }
    func take() -> Bool {
      left -= 1
      return left >= 0
    }
  }
}
