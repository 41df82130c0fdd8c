import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import Testing

private let ann = Author(id: "ann", name: "Ann")
private let down = FerryError(.unavailable, "The service is down.", retry: .now)
private let lostAnswer = FerryError(.timedOut, "No answer came.", retry: .now, didNotAct: false)
private let slower = FerryError(.rateLimited, "Slower.", retry: .after(.milliseconds(60)))

@Suite(.timeLimit(.minutes(2))) struct RelayFaultTests {
  @Test("failures, lost answers and sudden ends lose nothing, repeat nothing and keep the order", arguments: 1...6)
  func randomFaults(seed: UInt64) async throws {
    var random = SeededGenerator(seed: seed)
    let rig = try Rig.pair()
    // The first time a source is listened to, it is from then on.
    try await rig.relaying { _ in
      for account in rig.accounts.keys { rig.say("\(account) first", at: account) }
      for account in rig.accounts.keys { await rig.wait(for: 2, at: account) }
    }
    var said: [AccountName: [String]] = ["here": ["here first"], "there": ["there first"]]
    for round in 0..<8 {
      for account in ["here", "there"] as [AccountName] {
        for write in [MemoryProvider.Write.post, .find, .post] {
          let error = [down, lostAnswer, slower].randomElement(using: &random) ?? down
          rig[account].failNext(
            Int.random(in: 0...3, using: &random), write, with: error,
            afterActing: error.code == .timedOut && Bool.random(using: &random))
        }
        for number in 0..<Int.random(in: 1...30, using: &random) {
          let text = "\(account) \(round).\(number)"
          said[account, default: []].append(text)
          rig.say(text, at: account)
        }
      }
      let pause = Duration.milliseconds(Int.random(in: 0...25, using: &random))
      try await rig.relaying(gracefully: Bool.random(using: &random)) { _ in try await SystemClock().sleep(for: pause) }
    }
    let total = said.values.reduce(0) { $0 + $1.count }
    try await rig.relaying { _ in
      for account in rig.accounts.keys { await rig.wait(for: total, at: account) }
      // Whatever would be repeated has its chance.
      try await SystemClock().sleep(for: .milliseconds(30))
    }
    for account in rig.accounts.keys {
      let texts = rig.texts(at: account)
      #expect(texts.count == total)
      for source in rig.accounts.keys {
        #expect(texts.filter { $0.hasPrefix("\(source) ") } == said[source], "\(source) at \(account), seed \(seed)")
      }
    }
  }

  /// Then libcurl sends the request again over a new connection. That this cannot be made says nothing about the first.
  @Test func aKeptConnectionThatBreaksWhenItsServiceGoesAwayLeavesTheOutcomeOpen() async throws {
    let loop = try LoopExecutor(name: "kept")
    let (reached, release) = (BoundedChannel<Void>(capacity: 1), BoundedChannel<Void>(capacity: 1))
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(50)), loop: loop, logger: .silent
    ) { request in
      if request.path == "/second" {
        _ = reached.offer(())
        _ = await release.next()
      }
      return .text("done")
    }
    let task = Task { await server.run() }
    let proxy = try await FaultProxy.start(to: server.port)
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let first = try await client.send(ClientRequest(method: "POST", url: proxy.url + "/first", body: .bytes([1])))
    _ = try await first.collect(upTo: 100)
    async let second: FerryError? = {
      do throws(FerryError) {
        _ = try await client.send(ClientRequest(method: "POST", url: proxy.url + "/second", body: .bytes([2])))
        return nil
      } catch { return error }
    }()
    _ = await reached.next()
    await proxy.refuse()
    let error = try #require(await second)
    #expect(!error.didNotAct, "\(error)")
    release.finish()
    await proxy.close()
    task.cancel()
    await task.value
    loop.stop()
  }

  /// What comes from a service that is not itself today, or from something before it, may be right tomorrow.
  @Test func anAnswerThatIsNoHTTPLeavesTheOutcomeOpenAndMayBeTriedAgain() async throws {
    let loop = try LoopExecutor(name: "garbage")
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(50)), loop: loop, logger: .silent
    ) { _ in .text("done") }
    let task = Task { await server.run() }
    let proxy = try await FaultProxy.start(to: server.port)
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    for afterActing in [true, false] {
      await proxy.garble(afterActing: afterActing)
      let error = await #expect(throws: FerryError.self) {
        _ = try await client.send(ClientRequest(method: "POST", url: proxy.url + "/", body: .bytes([1])))
      }
      #expect(error?.didNotAct == false)
      #expect(error?.retry == .now)
    }
    await proxy.close()
    task.cancel()
    await task.value
    loop.stop()
  }

  @Test func editsAndDeletesFindTheirCopiesAfterARestartAndWhenTheyFailAtFirst() async throws {
    let rig = try Rig.pair()
    let (kept, gone) = try await rig.relaying { _ in
      let kept = rig["here"].say("frist", by: ann, in: Rig.room)
      let gone = rig["here"].say("oops", by: ann, in: Rig.room)
      await rig.wait(for: 2, at: "there")
      return (kept, gone)
    }
    rig["there"].failNext(2, .edit, with: lostAnswer, afterActing: true)
    rig["there"].failNext(2, .delete, with: down)
    rig["here"].change(kept, to: "first", in: Rig.room)
    rig["here"].remove(gone, in: Rig.room, by: ann)
    try await rig.relaying { _ in await rig.wait(for: ["first"], at: "there") }
    #expect(rig.texts(at: "here") == ["first"])
  }

  /// Else a start after a sudden end would send the next change at once, and the broken-off one might arrive after it.
  @Test func whatMayStillArriveIsMarkedAlsoWhenItIsAChange() async throws {
    let rig = try Rig.pair()
    try await rig.relaying { journal in
      let id = rig["here"].say("frist", by: ann, in: Rig.room)
      await rig.wait(for: 1, at: "there")
      rig["there"].pause()
      rig["here"].change(id, to: "first", in: Rig.room)
      let lane = LaneID(bridge: "pair", destination: Address(account: "there", channel: Rig.room))
      while try await journal.open(lane, limit: 1).first?.state != .sending {
        try await SystemClock().sleep(for: .milliseconds(5))
      }
      rig["there"].pause(false)
      await rig.wait(for: ["first"], at: "there")
    }
  }

  /// Each of its messages goes by itself then, and what is behind them waits.
  @Test func aBatchThatIsRefusedIsNotOvertaken() async throws {
    let rig = try Rig.pair(there: MemoryProvider { $0.batch = 4 })
    let expected = (0...20).map { "\($0)" }
    let lane = LaneID(bridge: "pair", destination: Address(account: "there", channel: Rig.room))
    try await rig.relaying { journal in
      rig["there"].pause()
      rig.say(expected[0], at: "here")
      while try await journal.open(lane, limit: 1).first?.state != .sending { await Task.yield() }
      // Behind one that is being sent, all the others gather.
      for text in expected.dropFirst() { rig.say(text, at: "here") }
      while try await journal.open(lane, limit: 100).count < expected.count { await Task.yield() }
      rig["there"].failNext(1, .batch, with: FerryError(.tooLarge, "One of them is too long."))
      rig["there"].pause(false)
      await rig.wait(for: expected.count, at: "there")
    }
    #expect(rig.texts(at: "there") == expected)
  }

  /// The send may have been carried out, whatever becomes of the question whether it was.
  @Test(arguments: [MemoryProvider.Write.find, .upload])
  func aSendOfUnknownOutcomeStaysUnknownWhenTheNextAttemptFailsBeforeItsSend(_ write: MemoryProvider.Write) async throws
  {
    let rig = try Rig.pair(
      there: MemoryProvider {
        $0.attachmentsPerMessage = 1
        $0.captions = false
      })
    let image = Attachment(name: "a.png", mediaType: "image/png", reference: rig["here"].store([7]))
    rig["there"].failNext(1, .post, with: lostAnswer, afterActing: true)
    // The first upload is made before the send whose answer is lost.
    rig["there"].failNext(1, write, with: down, after: write == .upload ? 1 : 0)
    try await rig.relaying { _ in
      rig["here"].say("look", by: ann, in: Rig.room, attachments: [image])
      rig["here"].say("next", by: ann, in: Rig.room)
      await rig.wait(for: ["look", "", "next"], at: "there")
    }
    #expect(rig.texts(at: "there") == ["look", "", "next"])
  }

  @Test func noTopologyEchoes() async throws {
    let accounts: [AccountName] = ["a", "b", "c"]
    let rig = try Rig(
      Dictionary(uniqueKeysWithValues: accounts.map { ($0, MemoryProvider()) }),
      bridges: [("ab", ["a", "b"]), ("bc", ["b", "c"]), ("ca", ["c", "a"]), ("all", accounts)])
    try await rig.relaying { journal in
      for account in accounts { rig.say("from \(account)", at: account) }
      // Two bridges lead from every account to every other: each makes its copy, and no copy is copied.
      for account in accounts { await rig.wait(for: 5, at: account) }
      while try await journal.counts().values.contains(where: { $0.pending > 0 }) {
        try await SystemClock().sleep(for: .milliseconds(5))
      }
      // Whatever would be repeated has its chance.
      try await SystemClock().sleep(for: .milliseconds(100))
      #expect(try await journal.counts().values.allSatisfy { $0.pending == 0 && $0.dead == 0 })
    }
    for account in accounts { #expect(rig.texts(at: account).count == 5, "\(rig.texts(at: account))") }
  }

  @Test func aServiceThatDoesNotAnswerHoldsUpNobodyElse() async throws {
    let accounts: [AccountName] = ["here", "stuck", "there"]
    let rig = try Rig(
      Dictionary(uniqueKeysWithValues: accounts.map { ($0, MemoryProvider()) }), bridges: [("all", accounts)])
    rig["stuck"].pause()
    try await rig.relaying { _ in
      for number in 0..<50 { rig.say("\(number)", at: "here") }
      await rig.wait(for: 50, at: "there")
      #expect(rig.texts(at: "stuck").isEmpty)
      rig["stuck"].pause(false)
      await rig.wait(for: 50, at: "stuck")
    }
    #expect(rig.texts(at: "stuck") == (0..<50).map(String.init))
  }

  @Test func whatIsRefusedForGoodIsADeadLetterWithItsReasonAndTheRestGoesOn() async throws {
    let rig = try Rig.pair()
    rig["there"].failNext(1, with: FerryError(.tooLarge, "It is too large for this room."))
    let dead = try await rig.relaying { journal in
      rig.say("large", at: "here")
      while try await journal.deadLetters().isEmpty { try await SystemClock().sleep(for: .milliseconds(2)) }
      rig.say("small", at: "here")
      await rig.wait(for: 1, at: "there")
      return try await journal.deadLetters()
    }
    #expect(dead.map(\.reason) == ["too_large: It is too large for this room."])
    #expect(rig.texts(at: "there") == ["small"])
  }

  @Test func rejectedCredentialsHoldTheMessagesAndBuryNone() async throws {
    let rig = try Rig.pair()
    rig["there"].failNext(3, with: FerryError(.badCredentials, "The token is wrong."))
    let dead = try await rig.relaying { journal in
      for text in ["one", "two", "three"] { rig.say(text, at: "here") }
      await rig.wait(for: 3, at: "there")
      return try await journal.deadLetters()
    }
    #expect(dead.isEmpty)
    #expect(rig.texts(at: "there") == ["one", "two", "three"])
  }

  @Test func aLongTextIsSplitAndItsPartsAreEditedAndDeletedTogether() async throws {
    let rig = try Rig.pair(there: MemoryProvider { $0.bodyCharacters = 10 })
    let long = "one two three four five"
    let longer = "now it is long again, very"
    try await rig.relaying { _ in
      let id = rig["here"].say(long, by: ann, in: Rig.room)
      _ = await rig["there"].wait(in: Rig.room) { $0.map(\.text).joined() == long ? true : nil }
      rig["here"].change(id, to: "short", in: Rig.room)
      await rig.wait(for: ["short"], at: "there")
      rig["here"].change(id, to: longer, in: Rig.room)
      _ = await rig["there"].wait(in: Rig.room) { $0.map(\.text).joined() == longer ? true : nil }
      rig["here"].remove(id, in: Rig.room, by: ann)
      await rig.wait(for: [], at: "there")
    }
  }
}
