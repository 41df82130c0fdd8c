import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import TwilioProvider

@Suite struct RefusalTests {
  private func error(
    _ status: Int, _ code: Int?, retryAfter: String? = nil, isWrite: Bool = true
  ) -> FerryError {
    Refusal.error(
      status: status, code: code, retryAfter: retryAfter, isWrite: isWrite, doing: "try",
      delay: { .milliseconds(1234) })
  }

  @Test(arguments: [
    (401, 20003, FerryError.Code.badCredentials, FerryError.Retry.never),
    (403, 20006, .forbidden, .never), (403, 20403, .forbidden, .never), (403, 20005, .forbidden, .never),
    (404, 20404, .notFound, .never), (404, 50350, .notFound, .never), (404, 50432, .notFound, .never),
    (404, 50500, .notFound, .never), (404, 50200, .notFound, .never), (404, 50507, .notFound, .now),
    (400, 20001, .badRequest, .never), (400, 20422, .badRequest, .never), (400, 50304, .badRequest, .never),
    (400, 50303, .tooLarge, .never), (400, 50504, .tooLarge, .never), (400, 50310, .tooLarge, .never),
    (400, 50207, .tooLarge, .never), (400, 50003, .tooLarge, .never), (400, 50503, .badRequest, .never),
    (400, 50308, .badRequest, .never), (400, 50309, .badRequest, .never), (400, 50204, .badRequest, .never),
    (400, 50411, .badRequest, .never), (400, 50412, .badRequest, .never), (400, 50407, .badRequest, .never),
    (400, 50408, .badRequest, .never), (400, 50441, .badRequest, .never), (409, 50353, .conflict, .never),
    (409, 50433, .conflict, .never), (409, 50404, .conflict, .never), (409, 50416, .conflict, .never),
    (409, 50437, .conflict, .never), (409, 50438, .conflict, .never), (409, 50201, .conflict, .never),
    (409, 50514, .conflict, .now), (409, 50391, .conflict, .now), (409, 50419, .conflict, .now),
    (409, 50213, .conflict, .now), (409, 50449, .conflict, .now), (409, 20409, .conflict, .now),
    (400, 50514, .conflict, .now), (400, 50430, .forbidden, .never), (403, 50377, .forbidden, .never),
    (400, 50386, .unavailable, .after(.seconds(2))), (400, 50334, .notFound, .never), (400, 50002, .notFound, .never),
    (400, 50417, .forbidden, .never), (400, 50418, .forbidden, .never), (400, 50422, .forbidden, .never),
    (400, 50403, .forbidden, .never), (400, 50214, .forbidden, .never), (400, 50208, .forbidden, .never),
    (403, 50056, .forbidden, .never), (400, 50361, .badRequest, .never), (400, 50365, .badRequest, .never),
    (400, 50372, .badRequest, .never), (400, 50509, .unsupported, .never), (400, 50508, .notFound, .now),
    (429, 20429, .rateLimited, .after(.milliseconds(1234))), (429, 50063, .rateLimited, .after(.milliseconds(1234))),
    (429, 50074, .rateLimited, .after(.milliseconds(1234))), (429, 54009, .rateLimited, .after(.milliseconds(1234))),
    (400, 50063, .rateLimited, .after(.milliseconds(1234))),
  ])
  func `every code of Twilio's says what to do, and that nothing was done`(
    status: Int, code: Int, expected: FerryError.Code, retry: FerryError.Retry
  ) {
    let error = error(status, code)
    #expect(error.code == expected)
    #expect(error.retry == retry)
    #expect(error.didNotAct)
    #expect(error.message.hasPrefix("Could not try: "))
    #expect(error.cause?.contains("errors/\(code)") == true)
  }

  @Test(arguments: [500, 502, 503, 504])
  func `a failing server may have acted, unless it was only asked`(status: Int) {
    for code in [nil, 20500, 20503] {
      let write = error(status, code)
      #expect(write.code == .unavailable)
      #expect(write.retry == .now)
      #expect(!write.didNotAct)
      #expect(error(status, code, isWrite: false).didNotAct)
      #expect(error(status, code, retryAfter: "3").retry == .after(.seconds(3)))
      #expect(!error(status, code, retryAfter: "3").didNotAct)
    }
  }

  @Test func `a time that the service names is kept to`() {
    #expect(error(429, 20429, retryAfter: "7").retry == .after(.seconds(7)))
    #expect(error(429, nil).retry == .after(.milliseconds(1234)))
    #expect(error(429, nil, retryAfter: "0").retry == .after(.zero))
    #expect(error(400, 50386, retryAfter: "9").code == .unavailable)
  }

  @Test func `a body too long for phones names the setting`() {
    #expect(error(400, 50504).message.contains("messaging: true"))
  }

  @Test func `an unknown code is judged by its status`() {
    #expect(error(400, 99999).code == .badRequest)
    #expect(error(404, nil).code == .notFound)
    #expect(error(401, nil).code == .badCredentials)
    #expect(error(302, nil).code == .unavailable)
    #expect(error(409, 12345).retry == .never)
  }
}

@Suite struct FerryAttributesTests {
  private static let full: FerryAttributes = {
    var attributes = FerryAttributes()
    attributes.stamp = AdapterRig.stamp
    attributes.key = "k"
    attributes.author = "ann"
    attributes.time = Timestamp(milliseconds: 1_767_323_045_678)
    attributes.sent = Timestamp(milliseconds: 1_767_323_046_000)
    attributes.sha256 = "ab"
    attributes.replyTo = "IM1"
    attributes.format = .markdown
    attributes.read = FerryAttributes.ReadStamp(index: 3, stamp: AdapterRig.stamp)
    attributes.display = "Ann"
    return attributes
  }()

  @Test func `what is written is read again`() {
    #expect(FerryAttributes(Self.full.text()) == Self.full)
  }

  @Test func `text stays as it is, without escapes that Twilio refuses`() throws {
    var attributes = FerryAttributes()
    attributes.author = "Zoë 👩‍👩‍👧 a/b \u{1}"
    let text = attributes.text(beside: ["mood": "sunny/ünder"])
    #expect(text.contains("sunny/ünder"))
    #expect(!text.contains("\\u") && !text.contains("\\/"))
    #expect(JSONText.value(text)?["mood"]?.string == "sunny/ünder")
  }

  @Test(arguments: ["x", "\"", "\\", "\u{1}", "é", "👩‍👩‍👧"])
  func `however long the names are, they fit into Twilio's 4 KB`(piece: String) {
    let long = String(repeating: piece, count: 5000)
    var attributes = Self.full
    attributes.stamp = Stamp(
      bridge: BridgeName(long), origin: Address(account: AccountName(long), channel: ChannelID(long)),
      id: MessageID(long),
      revision: .max, part: .max)
    attributes.key = long
    attributes.author = long
    attributes.replyTo = long
    attributes.display = nil
    attributes.read = nil
    let text = attributes.text()
    #expect(text.utf8.count <= AdapterLimits.attributesBytes)
    let read = FerryAttributes(text)
    #expect(read?.stamp != nil)
    #expect(read?.key == FerryAttributes.fitted(long))
    #expect(FerryAttributes.fitted(long) != FerryAttributes.fitted(long + "x"))
    attributes = Self.full
    attributes.read = FerryAttributes.ReadStamp(
      index: .max,
      stamp: Stamp(
        bridge: BridgeName(long), origin: Address(account: "a", channel: ChannelID(long)), id: MessageID(long)))
    #expect(attributes.text().utf8.count <= AdapterLimits.attributesBytes)
  }

  @Test func `a mark that cannot be read whole is a mark all the same`() {
    #expect(FerryAttributes(#"{"ferry":{"bridge":"b"}}"#)?.stamp?.bridge == "b")
    #expect(FerryAttributes(#"{"ferry":{"bridge":"b","origin":"none","id":7}}"#)?.stamp?.id == "7")
    #expect(FerryAttributes(#"{"ferry":{"key":"k"}}"#)?.stamp == nil)
  }

  @Test(arguments: [
    "", "{}", "null", "[]", "\"ferry\"", "{\"ferry\":1}", "{\"ferry\":null}", "{\"ferry\"", "{\"Ferry\":{}}",
  ])
  func `others' attributes are not ours`(text: String) { #expect(FerryAttributes(text) == nil) }

  @Test func `times that no date can be are left out`() {
    #expect(FerryAttributes(#"{"ferry":{"time":9223372036854775807}}"#)?.time == nil)
    #expect(FerryAttributes(#"{"ferry":{"time":"x"}}"#)?.time == nil)
  }
}

@Suite(.timeLimit(.minutes(1))) struct WritePaceTests {
  @Test func `no stretch of a second has more writes than allowed`() async throws {
    let clock = ManualClock()
    let pace = WritePace(perSecond: 3, clock: clock)
    let times = Observed<[Int64]>([])
    let start = clock.now().milliseconds
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for _ in 0..<8 {
          try await pace.wait(for: "a")
          let now = clock.now().milliseconds - start
          times.update { $0.append(now) }
        }
      }
      for _ in 0..<2 {
        await clock.waitForSleepers()
        clock.advance(by: .milliseconds(999))
        #expect(times.value.count % 3 == 0)
        clock.advance(by: .milliseconds(1))
      }
      try await group.waitForAll()
    }
    #expect(times.value == [0, 0, 0, 1000, 1000, 1000, 2000, 2000])
  }

  @Test func `conversations do not wait for one another`() async throws {
    let clock = ManualClock()
    let pace = WritePace(perSecond: 1, clock: clock)
    for number in 0..<3000 { try await pace.wait(for: ChannelID("\(number)")) }
    #expect(clock.sleepers == 0)
  }

  @Test func `whoever waits can be stopped, and has certainly done nothing`() async throws {
    let clock = ManualClock()
    let pace = WritePace(perSecond: 1, clock: clock)
    try await pace.wait(for: "a")
    let waiting = Task { () async -> FerryError? in
      do throws(FerryError) {
        try await pace.wait(for: "a")
        return nil
      } catch { return error }
    }
    await clock.waitForSleepers()
    waiting.cancel()
    let error = await waiting.value
    #expect(error?.code == .cancelled)
    #expect(error?.didNotAct == true)
  }

  @Test func `a clock that is set back holds nobody up for long`() async throws {
    let clock = ManualClock()
    let pace = WritePace(perSecond: 1, clock: clock)
    try await pace.wait(for: "a")
    clock.advance(by: .seconds(-3600))
    try await pace.wait(for: "a")
    #expect(clock.sleepers == 0)
  }
}

@Suite struct RememberedTests {
  @Test func `the oldest is forgotten, and what is set again is not old`() {
    var remembered = Remembered<Int, Int>(capacity: 3)
    for number in 0..<3 { remembered[number] = number }
    remembered[0] = 10
    remembered[3] = 3
    #expect(remembered[1] == nil)
    #expect(remembered[0] == 10)
    remembered[0] = nil
    #expect(remembered[0] == nil)
    #expect(remembered.count == 2)
  }

  @Test func `however often it is written to, it stays small`() {
    var remembered = Remembered<Int, Int>(capacity: 10)
    for number in 0..<10_000 { remembered[number % 12] = number }
    #expect(remembered.count <= 10)
  }
}
