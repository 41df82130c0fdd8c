import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import PusherProvider

@Suite struct ChunkTests {
  static let now = Timestamp(milliseconds: 1_700_000_000_000)

  private func chunk(_ id: String, _ index: Int, _ text: String, _ isFinal: Bool = false) -> Chunk {
    Chunk(id: id, index: index, text: text, isFinal: isFinal)
  }

  @Test func `slices of any text put together are the text, in any order and with repetitions`() async throws {
    var random = SeededGenerator(seed: 4)
    for _ in 0..<200 {
      await Task.yield()
      let text = Samples.text(using: &random, longest: 300)
      let limit = Int.random(in: 80...400, using: &random)
      let slices = Chunk.slices(of: text, id: "i", limit: limit)
      #expect(slices.allSatisfy { $0.data.utf8.count <= limit })
      #expect(slices == Chunk.slices(of: text, id: "i", limit: limit))
      var assembly = ChunkAssembly()
      var results: [ChunkAssembly.Result] = []
      // Some come twice, and all in any order.
      for slice in (slices + slices.shuffled(using: &random).prefix(3)).shuffled(using: &random) {
        // As it travels.
        let value = try #require(JSONText.decode(JSONValue.self, from: slice.data))
        results.append(assembly.add(try #require(Chunk(value)), of: "e", in: "c", now: Self.now).result)
      }
      let complete = results.filter { $0 != .waiting }
      guard case .complete(let whole)? = complete.first, complete.count == 1 else {
        throw FerryError(.badData, "completed \(complete.count) times")
      }
      #expect(Array(whole.utf8) == Array(text.utf8))
    }
  }

  @Test func `a slice's size is what it takes in JSON`() {
    for scalar in "a\"\\\n\r\t\u{0}\u{8}\u{1f} é€🚢\u{2028}".unicodeScalars {
      #expect(JSONText.width(of: scalar) == JSONText.quoted(String(scalar)).utf8.count - 2)
    }
  }

  @Test func `sets do not mix, whether of ids, events or channels`() {
    var assembly = ChunkAssembly()
    func add(_ chunk: Chunk, _ event: String, _ channel: ChannelID) -> ChunkAssembly.Result {
      assembly.add(chunk, of: event, in: channel, now: Self.now).result
    }
    #expect(add(chunk("1", 0, "a"), "e", "c") == .waiting)
    #expect(add(chunk("2", 0, "b"), "e", "c") == .waiting)
    #expect(add(chunk("1", 0, "c"), "f", "c") == .waiting)
    #expect(add(chunk("1", 0, "d"), "e", "d") == .waiting)
    #expect(add(chunk("1", 1, "!", true), "e", "d") == .complete("d!"))
    #expect(add(chunk("1", 1, "!", true), "e", "c") == .complete("a!"))
    #expect(add(chunk("1", 1, "!", true), "f", "c") == .complete("c!"))
    #expect(add(chunk("2", 1, "!", true), "e", "c") == .complete("b!"))
    // What comes after the end is a repetition.
    #expect(add(chunk("1", 0, "a"), "e", "c") == .waiting)
    #expect(add(chunk("1", 1, "!", true), "e", "c") == .waiting)
  }

  @Test func `a set that stays incomplete is given up after a minute`() {
    var assembly = ChunkAssembly()
    _ = assembly.add(chunk("1", 0, "a"), of: "e", in: "c", now: Self.now)
    let later = Self.now.advanced(by: .seconds(60))
    let (result, dropped) = assembly.add(chunk("1", 1, "b", true), of: "e", in: "c", now: later)
    #expect(result == .waiting)
    #expect(dropped == 1)
  }

  @Test func `sets, their size and all of them together are limited, the oldest go first`() {
    var assembly = ChunkAssembly()
    var dropped = 0
    for number in 0..<100 {
      let now = Self.now.advanced(by: .milliseconds(number))
      dropped += assembly.add(chunk("\(number)", 0, "x"), of: "e", in: "c", now: now).dropped
    }
    #expect(dropped == 36)
    #expect(assembly.add(chunk("99", 1, "y", true), of: "e", in: "c", now: Self.now).result == .complete("xy"))
    #expect(assembly.add(chunk("0", 1, "y", true), of: "e", in: "c", now: Self.now).result == .waiting)

    var big = ChunkAssembly()
    let piece = String(repeating: "x", count: 100_000)
    dropped = 0
    for index in 0..<11 { dropped += big.add(chunk("big", index, piece), of: "e", in: "c", now: Self.now).dropped }
    #expect(dropped == 1)
    dropped = 0
    for number in 0..<50 {
      dropped += big.add(chunk("\(number)", 0, piece), of: "e", in: "c", now: Self.now).dropped
    }
    #expect(dropped > 0 && dropped < 20)
  }

  @Test(arguments: [
    "null", "[]", "{}", #"{"id":"a","index":-1,"chunk":"x","final":false}"#,
    #"{"id":"a","index":9223372036854775807,"chunk":"x","final":true}"#, #"{"id":"a","index":0,"chunk":7}"#,
    #"{"id":[],"index":0,"chunk":"x"}"#, #"{"index":0,"chunk":"x"}"#,
  ])
  func `what is no slice is none`(data: String) throws {
    #expect(Chunk(try #require(JSONText.decode(JSONValue.self, from: data))) == nil)
  }

  @Test func `ends that contradict one another complete nothing twice and crash nothing`() async {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<200 {
      await Task.yield()
      var assembly = ChunkAssembly()
      for _ in 0..<40 {
        _ = assembly.add(
          chunk(
            "\(Int.random(in: 0...2, using: &random))", Int.random(in: 0...4, using: &random), "x",
            .random(using: &random)),
          of: "e", in: "c", now: Self.now.advanced(by: .seconds(Int.random(in: -50...50, using: &random))))
      }
    }
  }

  @Test func `an event in slices is read as the event`() throws {
    var session = try SessionTests.session(["a"])
    _ = session.receive(FrameText.established(socketID: "1.2", activityTimeout: 15), now: Self.now)
    let data = #"{"ID":7,"text":"\#(String(repeating: "long ", count: 100))","sender":"Ann"}"#
    var actions: [String] = []
    for slice in Chunk.slices(of: data, id: "x", limit: 200).reversed() {
      let frame = FrameText.event("chunked-new_message", channel: "a", data: slice.data)
      actions += session.receive(frame, now: Self.now).map(\.words)
    }
    #expect(actions.count == 1)
    #expect(actions.first?.hasPrefix("deliver m:7 ") == true)
    // Reserved names stay reserved.
    let sly = Chunk(id: "y", index: 0, text: #"{"code":4001,"message":"go"}"#, isFinal: true)
    #expect(
      session.receive(FrameText.event("chunked-pusher:error", channel: "a", data: sly.data), now: Self.now).isEmpty)
  }
}
