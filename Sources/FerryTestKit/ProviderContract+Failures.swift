import FerryCore
import FerryRuntime

extension ProviderContract {
  static let settling = [
    Rule("a send that was made is found by its key, and one that was not is not") { contract in
      let message = contract.outgoing("find me")
      let id = try await contract.provider.post(message, to: contract.channel)
      let made = try await contract.provider.find(message.key, in: contract.channel)
      let never = try await contract.provider.find(contract.outgoing("never").key, in: contract.channel)
      switch contract.provider.capabilities.certainty {
      case .none:
        guard case .unknown = never else { throw ContractViolation("without certainty, \(never) was claimed") }
        if case .absent = made { throw ContractViolation("a send that was made is said to be absent") }
      case .window:
        try contract.require(made == .found(id), "\(id) was posted, and \(made) found")
        if case .found = never { throw ContractViolation("nothing was posted, and \(never) found") }
      case .always:
        try contract.require(made == .found(id), "\(id) was posted, and \(made) found")
        try contract.require(never == .absent, "nothing was posted, and \(never) found")
      }
    },
    Rule("a whole batch is found by its keys", when: { $0.batch > 1 && $0.certainty != .none }) { contract in
      let provider = try contract.power((any BatchingProvider).self)
      let messages = (0..<3).map { contract.outgoing("batch \($0)") }
      let ids = try await provider.post(messages, to: contract.channel)
      let findings = try await provider.find(messages.map(\.key), in: contract.channel)
      try contract.require(findings == ids.map { .found($0) }, "\(ids) were posted, and \(findings) found")
    },
    Rule("wrong credentials are reported as that, at once") { contract in
      let stranger = try contract.harness.makeProvider(goodCredentials: false)
      let posting = try await contract.error([.badCredentials, .forbidden], "posting with wrong credentials") {
        _ = try await stranger.post(contract.outgoing("no"), to: contract.channel)
      }
      try contract.require(posting.retry == .never && posting.didNotAct, "\(posting) may be tried again")
      guard stranger.capabilities.receives else { return }
      let running = try await within(.seconds(30), "run throws") {
        try await contract.error([.badCredentials, .forbidden], "running with wrong credentials") {
          try await stranger.run([Subscription(channel: contract.channel)], into: RecordingInbox())
        }
      }
      try contract.require(running.retry == .never, "\(running) may be tried again")
    },
  ]

  /// A second, as the protocol says; under the thread sanitizer everything takes ten times as long.
  #if TSAN
    private static let cancelLimit = Duration.seconds(10)
  #else
    /// The rule is one second; the rest is for a machine that builds and tests a dozen things beside.
    private static let cancelLimit = Duration.seconds(8)
  #endif

  static let failing = [
    Rule("run ends within a second of being cancelled", when: \.receives) { contract in
      // The best of three, because the machine may be busy.
      for attempt in 1...3 {
        do {
          try await contract.listening(stopsWithin: Self.cancelLimit) { _ in }
          return
        } catch let violation as ContractViolation { if attempt == 3 { throw violation } }
      }
    },
    Rule("a service that refuses connections did certainly not act, and may be tried again") { contract in
      guard let proxy = contract.harness.proxy else { return }
      await proxy.refuse()
      let error = try await contract.error([.unavailable, .timedOut], "posting to nobody") {
        _ = try await contract.provider.post(contract.outgoing("nobody home"), to: contract.channel)
      }
      try contract.require(error.didNotAct, "\(error) does not say that nothing was done")
      try contract.require(error.retry != .never, "\(error) may not be tried again")
      try await proxy.accept()
      _ = try await contract.provider.post(contract.outgoing("back again"), to: contract.channel)
    },
    Rule("429 with Retry-After is kept to, and did certainly not act") { contract in
      guard let proxy = contract.harness.proxy else { return }
      await proxy.answer(1, status: 429, retryAfter: 7)
      let error = try await contract.error([.rateLimited], "posting too much") {
        _ = try await contract.provider.post(contract.outgoing("too much"), to: contract.channel)
      }
      try contract.require(error.retry == .after(.seconds(7)), "the retry is \(error.retry)")
      try contract.require(error.didNotAct, "\(error) does not say that nothing was done")
      _ = try await contract.provider.post(contract.outgoing("now it goes"), to: contract.channel)
    },
    Rule("a failing service may be tried again") { contract in
      guard let proxy = contract.harness.proxy else { return }
      await proxy.answer(1, status: 503)
      let error = try await contract.error([.unavailable], "posting to a failing service") {
        _ = try await contract.provider.post(contract.outgoing("later"), to: contract.channel)
      }
      try contract.require(error.retry != .never, "\(error) may not be tried again")
    },
    Rule("an answer that was lost leaves the outcome open, and find settles it") { contract in
      guard let proxy = contract.harness.proxy else { return }
      // The first post may have to prepare what later ones find ready.
      _ = try await contract.provider.post(contract.outgoing("the first"), to: contract.channel)
      let message = contract.outgoing("did it arrive?")
      await proxy.swallowAnswers(1, method: "POST")
      let error = try await contract.error([.unavailable, .timedOut, .outcomeUnknown], "posting without an answer") {
        _ = try await contract.provider.post(message, to: contract.channel)
      }
      try contract.require(!error.didNotAct, "\(error) says that nothing was done, which was")
      let finding = try await contract.provider.find(message.key, in: contract.channel)
      if finding == .absent { throw ContractViolation("what was done is said not to have been") }
      if contract.provider.capabilities.certainty == .always {
        guard case .found = finding else { throw ContractViolation("with certainty, \(finding) was answered") }
      }
    },
    Rule("after the connection was cut, reading goes on", when: \.receives) { contract in
      guard let proxy = contract.harness.proxy else { return }
      try await contract.listening { inbox in
        try await contract.harness.say("before", by: bob)
        _ = try contract.unwrap(await inbox.message("before"), "the message never arrived")
        let states = inbox.now.connections.count
        await proxy.cut()
        // Not before the adapter has noticed: without history, what is said meanwhile is lost. Whoever only asks now and
        // then, and reads a list, has no connection to lose.
        if contract.provider.capabilities.history != .messages {
          _ = await inbox.wait { record in
            let later = record.connections.dropFirst(states)
            return later.contains { $0.phase == .connecting } && later.last?.phase == .connected ? true : nil
          }
        }
        try await contract.harness.say("after", by: bob)
        _ = try contract.unwrap(await inbox.message("after"), "nothing arrived after the cut")
        try contract.require(
          inbox.now.posted.map(\.text) == ["before", "after"], "got \(inbox.now.posted.map(\.text))")
        if contract.provider.capabilities.history == .none {
          try contract.require(!inbox.now.gaps.isEmpty, "the gap was not reported")
        }
      }
    },
    Rule("what is said while the connection is down is read after it", when: { $0.history == .events }) { contract in
      guard let proxy = contract.harness.proxy else { return }
      try await contract.listening { inbox in
        try await contract.harness.say("before", by: bob)
        _ = try contract.unwrap(await inbox.message("before"), "the message never arrived")
        await proxy.refuse()
        try await contract.harness.say("meanwhile", by: bob)
        try await proxy.accept()
        try await contract.harness.say("after", by: bob)
        _ = try contract.unwrap(await inbox.message("after"), "nothing arrived after the cut")
        let texts = inbox.now.posted.map(\.text)
        try contract.require(texts == ["before", "meanwhile", "after"], "got \(texts)")
        try contract.require(inbox.now.duplicates.isEmpty, "events came twice")
      }
    },
  ]
}
