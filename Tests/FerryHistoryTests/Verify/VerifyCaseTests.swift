import FerryCore
import FerryHistory
import FerryRuntime
import Testing

@Suite struct VerifyCaseTests {
  private static let start: Int64 = 1_706_832_000_123

  private func times(_ count: Int, _ text: (Int) -> String) -> [MessageRecord] {
    (0..<count).map { record("m\($0)", text($0), at: Self.start + Int64($0) * 10_000) }
  }

  private func only(_ lines: [VerifyLine], _ outcome: VerifyOutcome) -> [VerifyLine] {
    lines.filter { $0.outcome == outcome }
  }

  // MARK: The reference's cases 32 to 37

  @Test("a long message in four parts is converted")
  func split() async throws {
    var story = Story(seed: 3)
    var text = ""
    while text.count < 5000 { text += story.text(words: 5) + " " }
    let whole = record("m1", String(text.prefix(5000)), at: Self.start)
    for marked in [false, true] {
      let parts = TextSplitter(bytes: nil, characters: 1560).parts(of: whole.message.text)
      try #require(parts.count == 4)
      let pieces = parts.enumerated().map { index, part in
        record("p\(index)", marked ? "(\(index + 1)/4) \(part)" : part, at: Self.start)
      }
      let (report, lines) = try await verify([whole], pieces, narrow())
      #expect(report.counts == ["converted": 1])
      #expect(lines.first?.losses == ["split:4"])
      #expect(lines.first?.to.map(\.id) == ["p0", "p1", "p2", "p3"])
      // Where nothing had to be split, it is a fault.
      #expect(try await verify([whole], pieces).report.counts == ["altered": 1])
    }
  }

  @Test("a part that is lost is an alteration of the whole")
  func lostPart() async throws {
    var story = Story(seed: 4)
    let whole = record("m1", story.text(words: 900), at: Self.start)
    var pieces = TextSplitter(bytes: nil, characters: 1600).parts(of: whole.message.text)
      .enumerated().map { record("p\($0)", $1, at: Self.start) }
    pieces.remove(at: 1)
    let (report, lines) = try await verify([whole], pieces, narrow())
    #expect(report.counts == ["altered": 1])
    #expect(lines.first?.faults == ["text"])
  }

  @Test("two messages that changed places are one reordered")
  func swapped() async throws {
    let from = times(20) { "text \($0)" }
    var to = from
    to.swapAt(7, 8)
    let (report, lines) = try await verify(from, to)
    #expect(report.counts == ["identical": 19, "reordered": 1])
    #expect(only(lines, .reordered).count == 1)
    #expect(!report.isFull)
  }

  /// Messages told in this order, at these seconds.
  private func told(_ seconds: [Int64]) -> [MessageRecord] {
    seconds.enumerated().map { record("m\($0)", "said \($0)", at: 1_706_832_000_000 + $1 * 1000) }
  }

  private func sorting(_ slack: Int64 = 0) -> Capabilities {
    narrow {
      $0.importing = ImportPowers()
      $0.importing?.sortsByTime = true
      $0.importing?.orderSlack = slack
    }
  }

  @Test("what a destination sorts by time is converted; what stands elsewhere is reordered there too")
  func sortedByTime() async throws {
    let from = told([0, 100, 200, 7200, 7260, 3600, 7320, 3700])
    let sorted = from.sorted { $0.message.time < $1.message.time }
    let (report, lines) = try await verify(from, sorted, sorting())
    #expect(report.counts == ["identical": 6, "converted": 2])
    #expect(report.losses == ["order:time": 2])
    #expect(report.isFull)
    #expect(only(lines, .converted).map(\.from?.id) == ["m5", "m7"])
    var plain = sorting()
    plain.importing?.sortsByTime = false
    #expect(try await verify(from, sorted, plain).report.counts == ["identical": 6, "reordered": 2])
    #expect(try await verify(from, sorted).report.counts == ["identical": 6, "reordered": 2])
    var swapped = sorted
    swapped.swapAt(0, 1)
    let wrong = try await verify(from, swapped, sorting()).report
    #expect(wrong.counts == ["identical": 5, "converted": 2, "reordered": 1])
    #expect(!wrong.isFull)
    // Who keeps FROM's order all the same has lost nothing.
    #expect(try await verify(from, from, sorting()).report.counts == ["identical": 8])
  }

  @Test("what is only a little late keeps its place where the destination says so")
  func slack() async throws {
    let from = told([0, 10, 5, 8, 3600, 20, 15])
    let kept = [0, 1, 2, 3, 5, 6, 4].map { from[$0] }
    #expect(try await verify(from, kept, sorting(60_000)).report.counts == ["identical": 6, "converted": 1])
    let sorted = from.sorted { $0.message.time < $1.message.time }
    #expect(try await verify(from, sorted, sorting(60_000)).report[.reordered] == 2)
    #expect(try await verify(from, sorted, sorting()).report.isFull)
  }

  @Test("one of five hundred that read ok is missing", arguments: [10_000, 300] as [Int64])
  func repeats(spacing: Int64) async throws {
    let from = (0..<500).map { record("m\($0)", "ok", at: Self.start + Int64($0) * spacing) }
    for (index, record) in from.enumerated().filter({ [0, 1, 250, 499].contains($0.offset) }) {
      var to = from.enumerated().map { index, record in
        var record = record
        record.message.id = MessageID("n\(index)")
        return record
      }
      to.remove(at: index)
      let (report, lines) = try await verify(from, to)
      #expect(report.counts == ["identical": 499, "missing": 1])
      #expect(only(lines, .missing).first?.from?.id == record.message.id.rawValue)
    }
  }

  @Test("a second copy is a duplicate")
  func secondCopy() async throws {
    let from = times(10) { "text \($0)" }
    var to = from
    var copy = from[4]
    copy.message.id = "again"
    to.insert(copy, at: 5)
    let (report, lines) = try await verify(from, to)
    #expect(report.counts == ["identical": 10, "extra:duplicate": 1])
    #expect(only(lines, .duplicate).first?.to.first?.id == "again")
  }

  @Test("whole seconds are a conversion")
  func precision() async throws {
    let from = times(10) { "text \($0)" }
    let to = from.map { record in
      var record = record
      record.message.time = Timestamp(milliseconds: record.message.time.milliseconds / 1000 * 1000)
      record.precision = .seconds
      return record
    }
    let (report, _) = try await verify(from, to)
    #expect(report.counts == ["converted": 10])
    #expect(report.losses == ["time:s": 10])
    // FROM knows no more than the second: nothing was lost.
    #expect(try await verify(to, from).report.counts == ["identical": 10])
  }

  @Test("an edit that was lost is an alteration", arguments: [false, true])
  func lostEdit(isStamped: Bool) async throws {
    let first = times(5) { "text \($0)" }
    var edit = first[2]
    edit.message.text = "Nothing of it is left."
    edit.message.edited = Timestamp(milliseconds: Self.start + 99_000)
    edit.message.revision = 1
    var to = first
    for index in to.indices {
      to[index].message.id = MessageID("n\(index)")
      if isStamped {
        to[index].message.stamp = Stamp(
          bridge: "import", origin: Address(account: "here", channel: "lobby"), id: first[index].message.id)
      }
    }
    let (report, lines) = try await verify(
      first.map { .message($0) } + [.edit(edit)], to.map { .message($0) }, narrow()
    ) { from, _ in from.address = Address(account: "here", channel: "lobby") }
    #expect(report.counts == ["identical": 4, "altered": 1])
    #expect(only(lines, .altered).first?.faults.contains("edit lost") == true)
  }

  // MARK: Joining

  @Test("a stamp finds its original whatever else differs")
  func stamps() async throws {
    let from = times(3) { "text \($0)" }
    var to = from
    for index in to.indices {
      to[index].message.id = MessageID("n\(index)")
      to[index].message.stamp = Stamp(
        bridge: "b", origin: Address(account: "here", channel: "lobby"), id: from[index].message.id)
    }
    to[1].message.text = "altogether different"
    to[1].message.time = Timestamp(milliseconds: Self.start + 90_000_000)
    let (report, lines) = try await verify(from, to, narrow()) { from, _ in
      from.address = Address(account: "here", channel: "lobby")
    }
    #expect(report.counts == ["identical": 2, "altered": 1])
    #expect(only(lines, .altered).first?.faults == ["time", "text"])
  }

  @Test("numbers of lines are no identifiers")
  func numbered() async throws {
    let from = times(20) { "text \($0)" }
    var to = from
    to.remove(at: 3)
    for index in to.indices { to[index].message.id = from[index].message.id }
    let address = Address(account: "jsonl", channel: "lobby")
    let (report, _) = try await verify(from, to) { from, to in
      from.address = address
      to.address = address
      to.hasLastingIDs = false
    }
    #expect(report.counts == ["identical": 19, "missing": 1])
  }

  @Test("copies of one original know each other")
  func sameOrigin() async throws {
    let origin = Address(account: "first", channel: "lobby")
    var from = times(3) { "text \($0)" }
    for index in from.indices {
      from[index].message.stamp = Stamp(bridge: "b", origin: origin, id: MessageID("original \(index)"))
    }
    var to = from
    for index in to.indices { to[index].message.id = MessageID("n\(index)") }
    to[2].message.text = "altogether different"
    #expect(try await verify(from, to, narrow()).report.counts == ["identical": 2, "altered": 1])
    // And an original knows its copy, when one goes back.
    let originals = times(3) { "text \($0)" }.enumerated().map { index, record in
      var record = record
      record.message.id = MessageID("original \(index)")
      return record
    }
    let (report, _) = try await verify(to, originals, narrow()) { _, to in to.address = origin }
    #expect(report.counts == ["identical": 2, "altered": 1])
  }

  @Test("parts are found by their stamps, and a part that came twice")
  func stampedParts() async throws {
    var story = Story(seed: 5)
    let whole = record("m1", story.text(words: 700), at: Self.start)
    let texts = TextSplitter(bytes: nil, characters: 1600).parts(of: whole.message.text)
    var parts = texts.enumerated().map { index, text in
      var part = record("p\(index)", text, at: Self.start + 100_000 + Int64(index))
      part.message.stamp = Stamp(
        bridge: "b", origin: Address(account: "here", channel: "lobby"), id: "m1", part: index)
      return part
    }
    var again = parts[1]
    again.message.id = "again"
    parts.append(again)
    let (report, lines) = try await verify([whole], parts, narrow { $0.keepsTime = false }) { from, _ in
      from.address = Address(account: "here", channel: "lobby")
    }
    #expect(report.counts == ["converted": 1, "extra:duplicate": 1])
    #expect(lines.first?.losses == ["time", "split:\(texts.count)"])
  }

  @Test("one offset of all times is found; it is a fault unless a side names no zone", arguments: [false, true])
  func zone(isAssumed: Bool) async throws {
    let from = times(40) { "text \($0)" }
    let to = from.map { record in
      var record = record
      record.message.time = record.message.time.advanced(by: .seconds(2 * 3600))
      if isAssumed { record.zone = "assumed:Europe/Berlin" }
      return record
    }
    let (report, _) = try await verify(from, to, narrow())
    #expect(report.zoneOffset == 7_200_000)
    #expect(report.counts == (isAssumed ? ["converted": 40] : ["altered": 40]))
    #expect((isAssumed ? report.losses : report.faults) == ["zone:+02:00": 40])
  }

  @Test("names in front of texts are the authors where the account is Ferry's")
  func prefixes() async throws {
    let from = (0..<9).map { record("m\($0)", by: "u\($0 % 3)", "text \($0 / 3)", at: Self.start + Int64($0)) }
    for form in ["%: ", "[%] ", "<%> ", "**%**: "] {
      let to = from.enumerated().map { index, original in
        let name = form.replacing("%", with: original.message.author.name)
        return record("n\(index)", by: "ferry", name + original.message.text, at: original.message.time.milliseconds)
      }
      let (report, _) = try await verify(from, to, narrow { $0.keepsAuthor = false })
      #expect(report.counts == ["converted": 9])
      #expect(report.losses == ["author:prefix": 9])
    }
  }

  @Test("texts that are written otherwise are found again")
  func forms() async throws {
    var from = times(3) { "see *this* :clap: https://a.example/x_y?z number \($0)" }
    for index in from.indices { from[index].formatName = "mrkdwn" }
    let to = times(3) { "see **this** \u{1F44F} https://a.example/x_y?z number \($0)" }
    let (report, _) = try await verify(from, to, narrow())
    #expect(report.counts == ["converted": 3])
    #expect(report.losses == ["text:format": 3, "format": 3])
    let accents = try await verify(
      times(1) { _ in "caf\u{e9}\r\nopen" }, times(1) { _ in "cafe\u{301}\nopen" }, narrow())
    #expect(accents.report.losses == ["text:normal": 1])
    let altered = try await verify(times(1) { _ in "wait, what?" }, times(1) { _ in "wait what" }, narrow())
    #expect(altered.report.counts == ["altered": 1])
  }
}
