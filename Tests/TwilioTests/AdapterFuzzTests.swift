import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

@testable import TwilioProvider

/// A service gone wrong must not take the adapter with it.
@Suite(.timeLimit(.minutes(4))) struct TwilioFuzzTests {
  /// Every part of a value replaced by chance.
  private static func spoiled(_ value: JSONValue, _ random: inout SeededGenerator) -> JSONValue {
    if random.next() % 12 == 0 {
      let odd: [JSONValue] = [
        .null, true, -1, 9_223_372_036_854_775_807, .number(1e300), "", "x", "9999-99-99T99:99:99Z", [], [:],
        .string(String(repeating: "é", count: 3000)), .array([[]]), "{\"ferry\":{\"bridge\":[]}}",
        "http://127.0.0.1:1/",
      ]
      return odd[Int(random.next() % UInt64(odd.count))]
    }
    switch value {
    case .array(let values): return .array(values.map { spoiled($0, &random) })
    case .object(let members):
      var result: [String: JSONValue] = [:]
      for (name, value) in members.sorted(by: { $0.key < $1.key }) where random.next() % 20 != 0 {
        result[name] = spoiled(value, &random)
      }
      return .object(result)
    default: return value
    }
  }

  private static func spoiled(_ bytes: [UInt8], _ random: inout SeededGenerator) -> [UInt8] {
    switch random.next() % 10 {
    case 0: return Array(bytes.prefix(Int(random.next() % UInt64(bytes.count + 1))))
    case 1: return (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    case 2: return bytes
    default:
      guard let value = JSONText.value(bytes) else { return bytes }
      return (try? ServiceJSON.bytes(spoiled(value, &random))) ?? []
    }
  }

  @Test(arguments: [1, 2, 3])
  func `whatever the service answers, the adapter goes on, and reads right again when it is well`(seed: UInt64)
    async throws
  {
    let twilio = ScriptedTwilio()
    twilio.state.update { state in
      state.participants = [ScriptedTwilio.participant(1, "ann", read: 0)]
      for index in 0..<5 {
        var message = ScriptedTwilio.message(Int64(index), "\(index)")
        message.media = [["sid": "ME1", "size": 1, "content_type": "image/png", "filename": "a.png"]]
        message.delivery = ["delivered": "some", "read": "none"]
        state.messages.append(message)
        state.receipts[message.sid] = [["sid": "DY1", "message_sid": .string(message.sid), "status": "delivered"]]
      }
    }
    let random = Locked(SeededGenerator(seed: seed))
    let isSpoiling = Locked(false)
    let spoiledAnswers = Observed(0)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      var response = await twilio.handle(request)
      guard isSpoiling.withLock({ $0 }), case .bytes(let bytes) = response.body else { return response }
      let (spoiled, status) = random.withLock { random in
        (
          Self.spoiled(bytes, &random),
          random.next() % 8 == 0 ? [200, 404, 500, 302, 204][Int(random.next() % 5)] : nil
        )
      }
      response.body = .bytes(spoiled)
      response.status = status ?? response.status
      spoiledAnswers.update { $0 += 1 }
      return response
    }
    // Failures would be waited out; a second is as good as an hour.
    let clock = HurriedClock()
    try await AdapterRig.with(
      clock: clock, twilio: twilio, handler: handler, adjust: { $0.poll = .milliseconds(1) }
    ) { rig in
      // A service that denies the conversation ends the run, which whoever owns it starts again.
      let running = Task {
        while !Task.isCancelled {
          let cursor = rig.inbox.now.cursors["lobby"]
          try? await rig.adapter.run([Subscription(channel: "lobby", cursor: cursor)], into: rig.inbox)
          try? await clock.sleep(for: .seconds(1))
        }
      }
      defer { running.cancel() }
      await rig.inbox.connected()
      isSpoiling.withLock { $0 = true }
      for round in 0..<25 {
        let message = AdapterRig.outgoing("\(round)", id: "\(round)")
        _ = try? await rig.adapter.post(message, to: "lobby")
        _ = try? await rig.adapter.find(message.key, in: "lobby")
        _ = try? await rig.adapter.history(of: "lobby", order: .oldestFirst, after: nil, limit: 7)
        _ = try? await rig.adapter.members(of: "lobby")
        _ = try? await rig.adapter.channels()
        try? await rig.adapter.edit(MessageID(ScriptedTwilio.sid("IM", 0)), in: "lobby", to: message)
        let mark = ReadMark(upTo: MessageID(ScriptedTwilio.sid("IM", 1)), by: Author(id: "b", name: "b"), state: .read)
        try? await rig.adapter.mark(mark, in: "lobby")
        _ = try? await rig.adapter.attachment(.provider("ME1"))
      }
      _ = await spoiledAnswers.wait { $0 > 250 ? true : nil }
      isSpoiling.withLock { $0 = false }
      let index = (twilio.state.value.messages.map(\.index).max() ?? 0) + 1
      twilio.add(ScriptedTwilio.message(index, "all is well"))
      _ = await rig.inbox.message("all is well")
    }
  }
}

/// Sleeps a thousandth of what it is asked to.
private struct HurriedClock: FerryClock {
  func now() -> Timestamp { SystemClock().now() }

  func sleep(for duration: Duration) async throws(CancellationError) {
    try await SystemClock().sleep(for: .microseconds(max(duration.milliseconds, 1)))
  }
}
