import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials

/// One run: two services, a relay, two people who talk, and one kind of fault. Everything follows from the seed.
struct Trial: Sendable, CustomStringConvertible {
  let kinds: [PlaceKind]
  let fault: Fault
  let seed: UInt64

  var description: String { "\(kinds[0].rawValue) and \(kinds[1].rawValue), \(fault.rawValue), seed \(seed)" }

  /// What came of it for either service, as the one that was written to, and what was wrong.
  struct Outcome: Sendable {
    var tallies: [Tally]
    var remarks: [String]
  }

  func play() async throws -> Outcome {
    let run = try await TrialRun(self)
    do {
      let outcome = try await run.play()
      await run.close()
      return outcome
    } catch {
      await run.close()
      throw error
    }
  }
}

private actor TrialRun {
  private let trial: Trial
  private let stage: Stage
  private let trouble: Trouble
  private let isInner: Bool
  private let loop: LoopExecutor
  private let client: HTTPClient
  private let dice: Dice
  private let conversation = Conversation()
  private var life: (any RelayLife)?
  private var faults = 0
  private var strangers = 0

  init(_ trial: Trial) async throws {
    self.trial = trial
    dice = Dice(seed: trial.seed)
    loop = try LoopExecutor(name: "gate")
    client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    let haste = trial.fault == .slow ? 1 : 4
    var places: [any Place] = []
    for kind in trial.kinds { places.append(try await kind.open()) }
    stage = Stage(
      folder: try TemporaryFolder(), places: places, gate: try HookGate(loop: loop, client: client),
      clock: ShiftingClock(haste: haste), haste: haste)
    isInner = !(trial.fault.needsProcess && stage.isServed)
    trouble = Trouble(fault: trial.fault, stage: stage, isInner: isInner)
  }

  func close() async {
    if let life { await stage.end(life) }
    for place in stage.places { await place.close() }
    await stage.gate.close()
    loop.stop()
  }

  // MARK: The run

  func play() async throws -> Trial.Outcome {
    life = try await begin()
    try await waitUntilReady()
    for side in [0, 1] { try await conversation.say(side, at: stage.places[side], stage.clock) }
    for _ in 0..<trial.fault.rounds { try await round() }
    try await waitUntilReady()
    for side in [0, 1] {
      try await conversation.stopTyping(side, at: stage.places[side])
      try await conversation.say(side, at: stage.places[side], stage.clock)
    }
    return try await judge()
  }

  private func begin(failpoint: String? = nil) async throws -> any RelayLife {
    // Files that cannot grow make a write fail, and not the process end.
    try await stage.begin(
      inProcess: isInner, failpoint: failpoint, script: trial.fault == .disk ? "trap '' XFSZ" : nil)
  }

  private func round() async throws {
    try await talk(2)
    let before = await trouble.spent()
    if trial.fault == .failpoint { return try await dieSomewhere() }
    guard let current = life else { return }
    faults += try await trouble.begin(current, with: dice)
    // The port of one that is gone may be anybody's.
    if !current.isRunning { life = nil }
    try await talk(4)
    try await letStrangersTry()
    let next = try await trouble.end(current, with: dice)
    life = next
    try await letStrangersTry()
    if isCalmBetween { try await waitUntilDelivered() }
    faults += await trouble.spent() - before
  }

  /// Faults that requests spend are all to be spent before there are more; a relay that comes back is killed again.
  private var isCalmBetween: Bool { trial.fault != .kill && trial.fault != .tornLog }

  /// Starts the relay so that it ends between two durable steps, and then without that.
  private func dieSomewhere() async throws {
    if let life { await stage.end(life) }
    let points = Failpoint.allCases
    let point = points[dice.roll(points.count)]
    let number = 1 + dice.roll(3)
    let doomed = try await begin(failpoint: "\(point.rawValue):\(number)")
    life = doomed
    try await talk(5)
    let limit = ContinuousClock.now.advanced(by: .seconds(2))
    while doomed.isRunning, ContinuousClock.now < limit { try await SystemClock().sleep(for: .milliseconds(10)) }
    // Some places are not passed in every conversation: then it dies where it is.
    await stage.end(doomed)
    faults += 1
    life = try await begin()
    try await letStrangersTry()
  }

  private func talk(_ acts: Int) async throws {
    for _ in 0..<acts {
      for side in [0, 1] {
        try await conversation.act(side, at: stage.places[side], stage.clock, with: dice)
      }
      if dice.roll(3) == 0 { try await SystemClock().sleep(for: .milliseconds(10)) }
    }
  }

  /// With wrong credentials, at the services and at the relay.
  private func letStrangersTry() async throws {
    for place in stage.places where try await !place.isIntruderRefused() { strangers += 1 }
    for path in ["/status", "/dead"] {
      if let status = try? await get(path, token: "wrong").status, status != 401, status != 503 { strangers += 1 }
    }
    for index in [0, 1] where trial.kinds[index] == .twilio {
      guard let life else { continue }
      var request = ClientRequest(method: "POST", url: "\(life.url)/hooks/\(Stage.names[index])")
      request.headers = ["X-Twilio-Signature": "AAAA", "Content-Type": "application/x-www-form-urlencoded"]
      request.body = .bytes(Array("EventType=onMessageAdded&Author=eve&Body=intruder".utf8))
      if let status = try? await client.send(request).status, status != 403, status != 503 { strangers += 1 }
    }
  }

  // MARK: Looking at the relay

  private func get(_ path: String, token: String = Stage.token) async throws -> (status: Int, body: JSONValue) {
    guard let life else { return (503, .null) }
    var request = ClientRequest(method: "GET", url: life.url + path)
    request.headers.set("Authorization", "Bearer \(token)")
    let response = try await client.send(request)
    let body = try await response.collect(upTo: 1 << 20)
    return (response.status, (try? JSONDecoder().decode(JSONValue.self, from: Data(body))) ?? .null)
  }

  #if TSAN
    /// The thread sanitizer makes everything ten times as slow.
    private static let patience = Duration.seconds(600)
  #else
    private static let patience = Duration.seconds(60)
  #endif

  private func waitUntilReady() async throws {
    let limit = ContinuousClock.now.advanced(by: Self.patience)
    while ContinuousClock.now < limit {
      if (try? await get("/readyz").status) == 200 { return }
      try await SystemClock().sleep(for: .milliseconds(10))
    }
  }

  private func isDelivered() async -> Bool {
    guard let status = try? await get("/status").body, let lanes = status["lanes"]?.array else { return false }
    return lanes.allSatisfy { $0["pending"] == .integer(0) }
  }

  private func waitUntilDelivered() async throws {
    let limit = ContinuousClock.now.advanced(by: Self.patience / 3)
    try await waitUntilReady()
    while await !isDelivered(), ContinuousClock.now < limit { try await SystemClock().sleep(for: .milliseconds(20)) }
  }

  // MARK: Judging

  private func judgements() async throws -> [Judgement] {
    let status = (try? await get("/status").body) ?? .null
    let said = await conversation.said
    var found: [Judgement] = []
    for destination in [0, 1] {
      let source = 1 - destination
      let gaps = trial.kinds[source].keepsHistory ? [] : Self.gaps(in: status, at: stage.address(source))
      let lane = status["lanes"]?.array?.first { $0["destination"]?.string == stage.address(destination).description }
      found.append(
        Judgement(
          said, from: source, to: destination, shown: try await stage.places[destination].shown(),
          gaps: gaps, dead: Int(lane?["dead"]?.integer ?? 0)))
    }
    return found
  }

  private static func gaps(in status: JSONValue, at address: Address) -> [ClosedRange<Timestamp>] {
    (status["gaps"]?.array ?? []).compactMap { gap in
      guard gap["address"]?.string == address.description,
        let start = gap["start"]?.string.flatMap({ Timestamp(iso8601: $0) }),
        let end = gap["end"]?.string.flatMap({ Timestamp(iso8601: $0) }), start <= end
      else { return nil }
      return start...end
    }
  }

  /// Waits until all is well and stays so, or has not become better for a long time.
  private func judge() async throws -> Trial.Outcome {
    let limit = ContinuousClock.now.advanced(by: Self.patience)
    var clean = 0
    var latest = try await judgements()
    while clean < 3, ContinuousClock.now < limit {
      let isDelivered = await isDelivered()
      latest = try await judgements()
      clean = isDelivered && latest.allSatisfy(\.isClean) && !isAnybodyTyping ? clean + 1 : 0
      try await SystemClock().sleep(for: .milliseconds(clean > 0 ? 100 : 30))
    }
    return try await outcome(latest)
  }

  /// Typing that has been shown for longer than it may last without renewal.
  private var isAnybodyTyping: Bool { stage.notes.contains { $0.withLock { !$0.typing.isEmpty } } }

  private func outcome(_ judgements: [Judgement]) async throws -> Trial.Outcome {
    let said = await conversation.said
    var outcome = Trial.Outcome(tallies: [], remarks: [])
    for (index, judgement) in judgements.enumerated() {
      var tally = Tally()
      tally.runs = 1
      // Half of the faults each, the odd one for the first.
      tally.faults = (faults + 1 - index) / 2
      tally.messages = said.count { $0.side != index }
      for (guarantee, remarks) in judgement.broken {
        tally[guarantee] += remarks.count
        outcome.remarks += remarks.map {
          "at \(trial.kinds[index].rawValue): \(Tally.guarantees[guarantee - 1]): \($0)"
        }
      }
      let notes = stage.notes[index].withLock { $0 }
      let hasty = notes.hasty.values.reduce(0, +)
      tally[6] += notes.typing.count + hasty
      tally[9] += notes.breaches
      if index == 0 { tally[8] += strangers }
      if tally[6] > 0 { outcome.remarks.append("typing: \(notes.typing.count) kept on, \(hasty) hasty") }
      if notes.breaches > 0 { outcome.remarks.append("limits broken \(notes.breaches) times") }
      outcome.tallies.append(tally)
    }
    if strangers > 0 { outcome.remarks.append("\(strangers) strangers were let in") }
    if !outcome.remarks.isEmpty, let dead = try? await get("/dead").body { outcome.remarks.append("dead: \(dead)") }
    if !outcome.remarks.isEmpty, let status = try? await get("/status").body { outcome.remarks.append("\(status)") }
    return outcome
  }
}
