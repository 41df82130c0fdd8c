import FerryCore
import FerryRuntime

extension ProviderContract {
  static let importing = [
    Rule("what is imported reads back with author, text, stamp and exact times", when: { $0.importing != nil }) {
      contract in
      let provider = try contract.power((any ImportingProvider).self)
      try await provider.prepareImport(into: contract.channel, notify: false)
      // Twice, which is harmless.
      try await provider.prepareImport(into: contract.channel, notify: false)
      let start: Int64 = 1_470_366_650_123
      let items = (oddTexts + [contract.longText]).enumerated().map { number, text in
        contract.past(text, number, at: start + Int64(number) * 1777)
      }
      try await contract.write(items, provider)
      try contract.requireSame(try await contract.everything().map(\.text), items.compactMap { $0.message?.text })
      for (read, item) in zip(try await contract.everything(), items) {
        try contract.require(read.time == item.time, "\(item.time.iso8601) reads back as \(read.time.iso8601)")
        try contract.require(read.author == ada, "the author reads back as \(read.author)")
        try contract.require(read.stamp == item.stamp, "the stamp reads back as \(String(describing: read.stamp))")
        try contract.require(read.edited == item.message?.edited, "edited \(String(describing: read.edited))")
      }
    },
    Rule("what was imported is found, and where it may be repeated it stays one", when: { $0.importing != nil }) {
      contract in
      let provider = try contract.power((any ImportingProvider).self)
      try await provider.prepareImport(into: contract.channel, notify: false)
      let items = (0..<3).map { contract.past("number \($0)", $0, at: 1_470_366_650_000 + Int64($0)) }
      let ids = try await contract.write(items, provider)
      if provider.capabilities.importing?.isRepeatable == true {
        let again = try await contract.write(items, provider)
        try contract.require(again == ids, "repeated, \(ids) are called \(again)")
      } else {
        let finding = try await provider.find(items[1].key, in: contract.channel)
        try contract.require(finding == .found(ids[1]), "found \(finding) instead of \(ids[1])")
      }
      let read = try await contract.everything()
      try contract.require(read.map(\.id) == ids, "written as \(ids), the history has \(read.map(\.id))")
    },
    Rule(
      "an edit made between an import and its repetition stays",
      when: { $0.importing?.isRepeatable == true && $0.edits }
    ) { contract in
      let provider = try contract.power((any ImportingProvider).self)
      let editing = try contract.power((any EditingProvider).self)
      try await provider.prepareImport(into: contract.channel, notify: false)
      let items = (0..<3).map { contract.past("number \($0)", $0, at: 1_470_366_650_000 + Int64($0)) }
      // Interrupted after the second.
      let ids = try await contract.write(Array(items.prefix(2)), provider)
      try await editing.edit(ids[1], in: contract.channel, to: contract.outgoing("changed meanwhile"))
      let again = try await contract.write(items, provider)
      try contract.require(Array(again.prefix(2)) == ids, "repeated, \(ids) are called \(again)")
      try contract.requireSame(
        try await contract.everything().map(\.text), ["number 0", "changed meanwhile", "number 2"])
    },
    Rule(
      "an imported edit leaves the last text with its time, and a deletion nothing",
      when: { $0.importing != nil && $0.edits && $0.deletes }
    ) { contract in
      let provider = try contract.power((any ImportingProvider).self)
      try await provider.prepareImport(into: contract.channel, notify: false)
      let items = (0..<3).map { contract.past("number \($0)", $0, at: 1_470_366_650_000 + Int64($0)) }
      let ids = try await contract.write(items, provider)
      let reply = PastReference(key: items[0].key, id: ids[0])
      let edited = Timestamp(milliseconds: 1_470_366_720_456)
      let edit = PastItem(
        key: "edit", time: edited,
        kind: .edit(reply, PastMessage(author: ada, text: "changed", edited: edited, revision: 1)))
      let removed = PastReference(key: items[1].key, id: ids[1])
      let deletion = PastItem(
        key: "delete", time: edited, kind: .delete(removed, by: ada), stamp: items[1].stamp)
      try await contract.write([edit, deletion], provider)
      let read = try await contract.everything()
      try contract.require(read.map(\.id) == [ids[0], ids[2]], "left are \(read.map(\.id)) of \(ids)")
      try contract.require(read[0].text == "changed", "the text is \(read[0].text)")
      try contract.require(read[0].edited == edited, "edited \(String(describing: read[0].edited?.iso8601))")
      try contract.require(read[0].time == items[0].time, "written \(read[0].time.iso8601)")
    },
    Rule("joins and leaves of the past keep their times", when: { $0.importing?.joins == true }) { contract in
      let provider = try contract.power((any ImportingProvider).self)
      try await provider.prepareImport(into: contract.channel, notify: false)
      let items = [
        PastItem(key: "j1", time: Timestamp(milliseconds: 1_470_366_650_001), kind: .join(bob)),
        PastItem(key: "l1", time: Timestamp(milliseconds: 1_470_366_650_002), kind: .leave(bob)),
        PastItem(key: "j2", time: Timestamp(milliseconds: 1_470_366_650_003), kind: .join(bob)),
      ]
      try await contract.write(items, provider)
      let found = try await contract.notices()
      try contract.require(found.map(\.time) == items.map(\.time), "got \(found.map(\.time.iso8601))")
      try contract.require(
        found.map(\.isJoin) == [true, false, true] && found.allSatisfy { $0.member == bob }, "got \(found)")
    },
    Rule("everything that happened is told again, in order and in pages", when: { $0.history == .events }) { contract in
      let provider = try contract.power((any EventHistoryProvider).self)
      var ids: [MessageID] = []
      for number in 0..<5 {
        ids.append(try await provider.post(contract.outgoing("event \(number)"), to: contract.channel))
      }
      if let editing = provider as? any EditingProvider {
        try await editing.edit(ids[0], in: contract.channel, to: contract.outgoing("edited"))
      }
      var kinds: [Event.Kind] = []
      var cursor: Cursor?
      for _ in 0..<10 {
        let page = try await provider.events(of: contract.channel, after: cursor, limit: 2)
        kinds += page.events.map(\.kind)
        cursor = page.next
        if page.isLast { break }
      }
      let posted = kinds.compactMap { if case .posted(let message) = $0 { message.text } else { nil } }
      try contract.require(posted == (0..<5).map { "event \($0)" }, "posted were \(posted)")
      let edited = kinds.compactMap { if case .edited(let message) = $0 { message.text } else { nil } }
      try contract.require(edited == ["edited"], "edited were \(edited)")
      let rest = try await provider.events(of: contract.channel, after: cursor, limit: 2)
      try contract.require(rest.events.isEmpty && rest.isLast, "after the end there is more")
      _ = try await contract.error([.notFound], "reading what is not there") {
        _ = try await provider.events(of: "nowhere", after: nil, limit: 2)
      }
    },
  ]

  private func past(_ text: String, _ number: Int, at milliseconds: Int64) -> PastItem {
    let time = Timestamp(milliseconds: milliseconds)
    let stamp = Stamp(
      bridge: "import", origin: Address(account: "elsewhere", channel: "room"), id: MessageID("m\(number)"))
    let edited = number % 2 == 0 ? nil : time.advanced(by: .milliseconds(number * 700))
    return PastItem(
      key: stamp.key, time: time,
      kind: .message(PastMessage(author: Self.ada, text: text, edited: edited, revision: edited == nil ? 0 : 1)),
      stamp: stamp)
  }

  @discardableResult
  private func write(_ items: [PastItem], _ provider: any ImportingProvider) async throws -> [MessageID] {
    let batch = max(provider.capabilities.importing?.batch ?? 1, 1)
    var ids: [MessageID] = []
    var rest = items[...]
    while !rest.isEmpty {
      ids += try await provider.write(Array(rest.prefix(batch)), into: channel).compactMap { $0 }
      rest = rest.dropFirst(batch)
    }
    return ids
  }

  private func everything() async throws -> [Message] {
    let provider = try power((any HistoryProvider).self)
    var messages: [Message] = []
    var cursor: Cursor?
    repeat {
      let page = try await provider.history(of: channel, order: .oldestFirst, after: cursor, limit: 10)
      messages += page.messages
      cursor = page.next
    } while cursor != nil
    return messages
  }

  private struct Notice: Hashable {
    let time: Timestamp
    let isJoin: Bool
    let member: Author
  }

  private func notices() async throws -> [Notice] {
    var events: [Event]
    if let provider = provider as? any EventHistoryProvider {
      events = try await provider.events(of: channel, after: nil, limit: 100).events
    } else {
      let provider = try power((any HistoryProvider).self)
      events = try await provider.history(of: channel, order: .oldestFirst, after: nil, limit: 100).notices
    }
    return events.compactMap { event in
      switch event.kind {
      case .joined(let membership): Notice(time: event.time, isJoin: true, member: membership.member)
      case .left(let membership): Notice(time: event.time, isJoin: false, member: membership.member)
      default: nil
      }
    }
  }
}

extension PastItem {
  fileprivate var message: PastMessage? { if case .message(let message) = kind { message } else { nil } }
}
