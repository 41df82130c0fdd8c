import FerryCore
import FerryRuntime
import FerryStorage
import Testing

@testable import FerryRelay

private let a = LaneID(bridge: "b", destination: Address(account: "there", channel: "a"))
private let b = LaneID(bridge: "b", destination: Address(account: "there", channel: "b"))
private let c = LaneID(bridge: "b", destination: Address(account: "there", channel: "c"))
private let down = FerryError(.unavailable, "The service is down.", retry: .now)

/// Always the longest pause.
private struct Longest: RandomNumberGenerator {
  mutating func next() -> UInt64 { .max }
}

@Suite struct CircuitTests {
  private var circuit = Circuit()
  private var random = Longest()
  private let start = Timestamp(milliseconds: 1_000_000)

  private mutating func fail(_ lane: LaneID, _ error: FerryError = down, at now: Timestamp? = nil) -> [LaneID] {
    circuit.failed(lane, error, at: now ?? start, using: &random)
  }

  private mutating func ask(_ lane: LaneID, at now: Timestamp? = nil) -> Circuit.Answer {
    circuit.ask(lane, at: now ?? start)
  }

  private var until: Timestamp {
    if case .open(let until) = circuit.state { until } else { Timestamp(milliseconds: -1) }
  }

  @Test mutating func oneFailingChannelHoldsUpNobody() {
    for _ in 0..<100 { #expect(fail(a).isEmpty) }
    #expect(circuit.isClosed)
    #expect(circuit.failures == 100)
    let answer = ask(b)
    #expect(answer == .go)
  }

  @Test mutating func aSuccessBetweenThemMakesFailuresSingle() {
    for _ in 0..<50 {
      _ = fail(a)
      _ = fail(b)
      _ = circuit.succeeded(c)
    }
    #expect(circuit.isClosed)
  }

  @Test mutating func lanesWaitTogetherAndTryInTurn() {
    for lane in [a, b, c] { _ = fail(lane) }
    #expect(!circuit.isClosed)
    let first = ask(a)
    #expect(first == .wait(.milliseconds(until.milliseconds - start.milliseconds)))
    for lane in [b, c] {
      let answer = ask(lane)
      #expect(answer == .wait(nil))
    }
    var now = until
    var order: [LaneID] = []
    for _ in 0..<6 {
      // All ask at the same moment: one may.
      let going = [c, b, a].filter { circuit.ask($0, at: now) == .go }
      #expect(going.count == 1)
      guard let prober = going.first else { return }
      order.append(prober)
      let told = fail(prober, at: now)
      #expect(told.count == 1 && told.first != prober)
      now = until
    }
    #expect(order == [a, b, c, a, b, c] || Set(order.prefix(3)) == [a, b, c])
    #expect(order.prefix(3) == order.suffix(3))
  }

  @Test mutating func oneSuccessLetsAllGo() {
    for lane in [a, b, c] { _ = fail(lane) }
    for lane in [a, b, c] { _ = ask(lane) }
    let now = until
    let probe = ask(a, at: now)
    #expect(probe == .go)
    #expect(Set(circuit.succeeded(a)) == [b, c])
    #expect(circuit.isClosed)
    for lane in [a, b, c] {
      let answer = ask(lane, at: now)
      #expect(answer == .go)
    }
  }

  @Test mutating func pausesGrowToAMinuteAndStartAnewAfterASuccess() {
    _ = fail(a)
    _ = fail(b)
    var pauses: [Int64] = []
    var now = start
    _ = fail(a, at: now)
    for _ in 0..<10 {
      pauses.append(until.milliseconds - now.milliseconds)
      now = until
      _ = ask(a, at: now)
      _ = fail(a, at: now)
    }
    #expect(pauses == pauses.sorted())
    #expect(pauses.first == 1000)
    #expect(pauses.last == 60_000)
    _ = circuit.succeeded(a)
    for lane in [a, b, a] { _ = fail(lane, at: now) }
    #expect(until.milliseconds - now.milliseconds == 1000)
  }

  @Test mutating func whatTheServiceAsksForIsKept() {
    for lane in [a, b] { _ = fail(lane) }
    _ = fail(a, FerryError(.rateLimited, "Slower.", retry: .after(.seconds(90))))
    #expect(until == start.advanced(by: .seconds(90)))
    // Another one's answer, under way meanwhile, asks for more; a plain failure does not.
    _ = fail(c)
    #expect(until == start.advanced(by: .seconds(90)))
    _ = fail(c, FerryError(.rateLimited, "Slower.", retry: .after(.seconds(120))))
    #expect(until == start.advanced(by: .seconds(120)))
  }

  @Test mutating func rejectedCredentialsStopAllAtOnce() {
    _ = fail(a, FerryError(.badCredentials, "No."))
    let answer = ask(b)
    #expect(answer != .go)
    #expect(until >= start.advanced(by: .seconds(10)))
  }

  @Test mutating func whoeverLeavesMakesRoomForTheNext() {
    for lane in [a, b, c] { _ = fail(lane) }
    for lane in [a, b, c] { _ = ask(lane) }
    #expect(circuit.left(a, at: start) == [b])
    #expect(circuit.left(c, at: start) == [])
    let now = until
    let probe = ask(b, at: now)
    #expect(probe == .go)
    _ = ask(c, at: now)
    // The prober ends without having found out anything.
    #expect(circuit.left(b, at: now) == [c])
    let next = ask(c, at: now)
    #expect(next == .go)
    // One that waited, left and came again stands at the end.
    _ = ask(a, at: now)
    _ = ask(b, at: now)
    _ = circuit.left(a, at: now)
    _ = ask(a, at: now)
    _ = fail(c, at: now)
    let later = until
    let tooSoon = ask(a, at: later)
    #expect(tooSoon == .wait(nil))
    let turn = ask(b, at: later)
    #expect(turn == .go)
  }
}
