import FerryCore
import FerryRuntime

extension ProviderContract {
  /// Texts that get mangled by those who do not take care.
  static let oddTexts = [
    "plain", " leading and trailing ", "two\nlines\r\nand\ttabs", "e\u{301} is not \u{e9}", "👩‍👩‍👧‍👦🏳️‍🌈 👍🏽",
    "\u{202e}right to left\u{202c} שלום مرحبا", "\"quotes\" 'and' \\backslashes\\ / {\"json\": true}",
    "<b>&amp;</b> %20 + ${HOME} $$ 100%", "\u{1}\u{8}\u{b}\u{1b}[31m\u{7f}",
    "\u{feff}bom \u{200b}zero width\u{2028}line",
    "{\"event\":\"pusher:error\"}", "null", "0", "\u{10ffff}\u{fffd}",
  ]

  static let reading = [
    Rule("what Ferry posts is seen once, with its author, text and stamp") { contract in
      let message = contract.outgoing("hello")
      let id = try await contract.provider.listeningAndPosting(message, contract)
      try contract.require(!id.rawValue.isEmpty, "the message has an empty id")
    },
    Rule("what somebody else writes is seen with author, text and a plausible time", when: \.receives) { contract in
      try await contract.listening { inbox in
        let start = SystemClock().now()
        try await contract.harness.say("good morning", by: bob)
        let message = try contract.unwrap(await inbox.message("good morning"), "the message never arrived")
        try contract.require(message.author.name == "bob", "the author is \(message.author.name)")
        try contract.require(message.stamp == nil, "a stamp of ours is on somebody else's message")
        try contract.require(
          abs(message.time.milliseconds - start.milliseconds) < 60_000, "the time is \(message.time.iso8601)")
      }
    },
    Rule("keys are unique, nothing comes twice, and the order is that of writing", when: \.receives) { contract in
      try await contract.listening { inbox in
        for number in 0..<20 { try await contract.harness.say("message \(number)", by: bob) }
        let record = await inbox.wait { $0.posted.count >= 20 ? $0 : nil }
        let posted = try contract.unwrap(record, "the messages never arrived")
        try contract.require(
          posted.posted.map(\.text) == (0..<20).map { "message \($0)" }, "the order is \(posted.posted.map(\.text))")
        try contract.require(posted.duplicates.isEmpty, "events came again: \(posted.duplicates.map(\.key))")
        try contract.require(Set(posted.posted.map(\.id)).count == 20, "two messages share an id")
      }
    },
    Rule("odd texts are read as they were written, byte for byte", when: \.receives) { contract in
      try await contract.listening { inbox in
        let texts = oddTexts + [contract.longText]
        for text in texts { try await contract.harness.say(text, by: bob) }
        let posted = await inbox.wait { $0.posted.count >= texts.count ? $0.posted : nil } ?? []
        try contract.requireSame(posted.map(\.text), texts)
      }
    },
    Rule("what the inbox could not store is offered again", when: \.receives) { contract in
      try await contract.listening { inbox in
        inbox.failNext(2)
        try await contract.harness.say("kept", by: bob)
        try await contract.harness.say("and this", by: bob)
        _ = try contract.unwrap(await inbox.message("and this"), "the messages never arrived")
        try contract.require(
          inbox.now.posted.map(\.text) == ["kept", "and this"], "got \(inbox.now.posted.map(\.text))")
      }
    },
    Rule(
      "what happened between two runs is read from the cursor on, no more and no less", when: { $0.history == .events }
    ) {
      contract in
      try await contract.harness.say("before the first run", by: bob)
      let cursor = try await contract.listening { inbox in
        try await contract.harness.say("during the first run", by: bob)
        _ = try contract.unwrap(await inbox.message("during the first run"), "the message never arrived")
        try contract.require(inbox.now.posted.count == 1, "what was before the subscription arrived as well")
        return inbox.now.cursors[contract.channel]
      }
      for number in 0..<5 { try await contract.harness.say("meanwhile \(number)", by: bob) }
      try await contract.listening(Subscription(channel: contract.channel, cursor: cursor)) { inbox in
        try await contract.harness.say("at last", by: bob)
        _ = try contract.unwrap(await inbox.message("at last"), "the message never arrived")
        let texts = inbox.now.posted.map(\.text)
        try contract.require(texts == (0..<5).map { "meanwhile \($0)" } + ["at last"], "got \(texts)")
      }
    },
    Rule(
      "a source without history reports the time it was not listened to", when: { $0.receives && $0.history == .none }
    ) {
      contract in
      let lastSeen = SystemClock().now().advanced(by: .seconds(-60))
      try await contract.listening(Subscription(channel: contract.channel, lastSeen: lastSeen)) { inbox in
        let gap = try contract.unwrap(await inbox.wait { $0.gaps.first }, "no gap was reported")
        try contract.require(gap.channel == contract.channel, "the gap is in \(gap.channel)")
        try contract.require(gap.start == lastSeen && gap.end > gap.start, "the gap is from \(gap.start) to \(gap.end)")
      }
    },
  ]

  static let writing = [
    Rule("what Ferry posts, somebody else reads") { contract in
      let watcher = try await contract.harness.watch()
      _ = try await contract.provider.post(contract.outgoing("to you"), to: contract.channel)
      let seen = try await within(.seconds(30), "somebody else reads the message") { await watcher.messages(1) }
      await watcher.close()
      try contract.require(seen == [Seen(author: "ada", text: "to you")], "somebody else reads \(seen)")
    },
    Rule("odd texts are written as they are, byte for byte") { contract in
      let texts = oddTexts + [contract.longText]
      let watcher = try await contract.harness.watch()
      for text in texts { _ = try await contract.provider.post(contract.outgoing(text), to: contract.channel) }
      let seen = try await within(.seconds(30), "somebody else reads the texts") { await watcher.messages(texts.count) }
      await watcher.close()
      try contract.requireSame(seen.map(\.text), texts)
    },
    Rule("a batch is written in its order, with the ids in that order too", when: { $0.batch > 1 }) { contract in
      let provider = try contract.power((any BatchingProvider).self)
      let messages = (0..<min(provider.capabilities.batch, 8)).map { contract.outgoing("batch \($0)") }
      try await contract.listening { inbox in
        let ids = try await provider.post(messages, to: contract.channel)
        let posted = await inbox.wait { $0.posted.count >= messages.count ? $0.posted : nil } ?? []
        try contract.require(posted.map(\.text) == messages.map(\.text), "the order is \(posted.map(\.text))")
        try contract.require(posted.map(\.id) == ids, "the ids are \(ids), and \(posted.map(\.id)) arrived")
        try contract.require(posted.map(\.stamp) == messages.map(\.stamp), "the stamps differ")
      }
    },
    Rule("a file comes back as it was sent, and with the message that names it", when: { $0.attachments == .stored }) {
      contract in
      let provider = try contract.power((any UploadingProvider).self)
      // With the signature of its type: a service may look.
      let bytes = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + Crypto.randomBytes(3_000_001)
      let sha256 = Crypto.hex(Crypto.digest(.sha256, of: bytes))
      let reference = try await provider.upload(
        stream(bytes), name: "a cat.png", mediaType: "image/png", to: contract.channel)
      try contract.require(try await download(reference, provider) == sha256, "another file came back")
      var message = contract.outgoing("look")
      message.attachments = [
        OutgoingAttachment(
          name: "a cat.png", mediaType: "image/png", size: Int64(bytes.count), sha256: sha256, reference: reference)
      ]
      let outgoing = message
      try await contract.listening { inbox in
        _ = try await provider.post(outgoing, to: contract.channel)
        let arrived = try contract.unwrap(await inbox.message("look"), "the message never arrived")
        let attachment = try contract.unwrap(arrived.attachments.first, "the message has lost its file")
        try contract.require(attachment.name == "a cat.png", "the file is called \(attachment.name)")
        try contract.require(attachment.mediaType == "image/png", "the file is \(attachment.mediaType)")
        try contract.require(
          try await download(attachment.reference, provider) == sha256, "the message names another file")
      }
    },
  ]

  /// As long as is allowed, up to 10 KB, and not only of ASCII.
  var longText: String {
    let limit = min(provider.capabilities.bodyBytes ?? 10_240, 10_240)
    return String(String(repeating: "Ferry 🚢 über ", count: 1000).prefix(limit / 2))
  }

  func requireSame(_ texts: [String], _ expected: [String]) throws {
    // By bytes: to Swift, texts that merely look alike are equal.
    for (text, wanted) in zip(texts, expected) where Array(text.utf8) != Array(wanted.utf8) {
      throw ContractViolation("\(wanted.debugDescription.prefix(80)) became \(text.debugDescription.prefix(80))")
    }
    try require(texts.count == expected.count, "\(texts.count) of \(expected.count) texts arrived")
  }

  static func stream(_ bytes: [UInt8]) -> ByteStream {
    let pieces = Locked(stride(from: 0, to: bytes.count, by: 50_000).map { bytes[$0..<min($0 + 50_000, bytes.count)] })
    return ByteStream(size: Int64(bytes.count)) { () async throws(FerryError) -> [UInt8]? in
      pieces.withLock { $0.isEmpty ? nil : Array($0.removeFirst()) }
    }
  }

  /// The SHA-256 of an attachment.
  private static func download(_ reference: AttachmentReference, _ provider: any ChatProvider) async throws -> String {
    let bytes = try await provider.attachment(reference).collect(upTo: 10_000_000)
    return Crypto.hex(Crypto.digest(.sha256, of: bytes))
  }
}

extension ChatProvider {
  /// Posts, and checks how it arrives, where anything does.
  fileprivate func listeningAndPosting(
    _ message: OutgoingMessage, _ contract: ProviderContract
  ) async throws -> MessageID {
    guard capabilities.receives else { return try await post(message, to: contract.channel) }
    return try await contract.listening { inbox in
      let id = try await post(message, to: contract.channel)
      // The second shows that the first came once: events of a channel are in order.
      _ = try await post(contract.outgoing("the second"), to: contract.channel)
      _ = try contract.unwrap(await inbox.message("the second"), "the second message never arrived")
      let copies = inbox.now.posted.filter { $0.text == message.text }
      try contract.require(copies.count == 1, "\(copies.count) copies arrived")
      try contract.require(copies[0].id == id, "the id is \(copies[0].id), and \(id) when posted")
      try contract.require(copies[0].author.name == message.author.name, "the author is \(copies[0].author.name)")
      try contract.require(copies[0].stamp == message.stamp, "the stamp is \(String(describing: copies[0].stamp))")
      return id
    }
  }
}
