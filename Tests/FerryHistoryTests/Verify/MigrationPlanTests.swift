import FerryCore
import FerryHistory
import Testing

@Suite struct MigrationPlanTests {
  private static let start: Int64 = 1_706_832_000_123

  private func plan(
    _ records: [Record], from source: Capabilities? = nil, to destination: Capabilities?, limit: Int = 1000
  ) async throws -> MigrationPlan {
    var survey = MigrationSurvey(from: PlanEnd("FROM", source), to: PlanEnd("TO", destination))
    try await survey.read(ListedRecords(records), limit: limit)
    return survey.plan
  }

  private func item(_ plan: MigrationPlan, _ what: String, _ outcome: MigrationPlan.Outcome? = nil) -> MigrationPlan
    .Item?
  {
    plan.items.first { $0.what == what && (outcome == nil || $0.outcome == outcome) }
  }

  private func service(_ change: (inout Capabilities) -> Void = { _ in }) -> Capabilities {
    narrow {
      $0.importing = ImportPowers()
      change(&$0)
    }
  }

  @Test("long texts are counted, and the writes they take")
  func long() async throws {
    var story = Story(seed: 1)
    let records: [Record] = [story.message(), story.message(long: true), story.message()].map { .message($0) }
    let plan = try await plan(records, to: service { $0.sendsPerSecond = 2 })
    #expect(item(plan, "messages")?.count == 2)
    #expect(
      item(plan, "long messages")
        == .init(what: "long messages", outcome: .converted, count: 1, how: "split, at 1600 characters"))
    #expect(plan.messages == 3)
    #expect(plan.writes > 4)
    #expect(plan.seconds == Double(plan.writes) / 2)
    #expect(plan.isWhole)
  }

  @Test("what stands out of order is counted where the destination sorts by time")
  func order() async throws {
    let records: [Record] = [0, 60_000, 30_000, 90_000].map {
      .message(record("m\($0)", "said", at: Self.start + $0))
    }
    #expect(item(try await plan(records, to: service()), "order") == nil)
    let sorting = try await plan(records, to: service { $0.importing?.sortsByTime = true })
    #expect(
      item(sorting, "order")
        == .init(
          what: "order", outcome: .converted, count: 1, how: "older than what came before them; TO sorts by time"))
    let patient = service {
      $0.importing?.sortsByTime = true
      $0.importing?.orderSlack = 60_000
    }
    #expect(item(try await plan(records, to: patient), "order") == nil)
  }

  @Test("batches make it quicker")
  func batches() async throws {
    var story = Story(seed: 1)
    let records: [Record] = (0..<95).map { _ in .message(story.message()) }
    let destination = service {
      $0.sendsPerSecond = 5
      $0.importing?.batch = 10
    }
    #expect(try await plan(records, to: destination).seconds == 2)
  }

  @Test("files are kept, sent apart, or dropped for a reason")
  func files() async throws {
    var message = record("m1", "see", at: Self.start)
    message.message.attachments = [
      file("a.png", "aa"), file("b.png", "bb", size: 900), file("c.png", "cc"), file("d.txt", "dd"),
    ]
    message.message.attachments[3].mediaType = "text/plain"
    message.files = [FileState(), FileState(), FileState(status: .expired)]
    let plan = try await plan(
      [.message(message)],
      to: service {
        $0.attachmentBytes = 100
        $0.captions = false
        $0.mediaTypes = ["image/*"]
      })
    #expect(item(plan, "attachments", .kept)?.count == 1)
    #expect(item(plan, "attachments", .kept)?.how == "915 bytes; 3 in messages of their own")
    #expect(
      plan.items.filter { $0.what == "attachments" && $0.outcome == .dropped } == [
        .init(what: "attachments", outcome: .dropped, count: 1, how: "larger than 100 bytes"),
        .init(what: "attachments", outcome: .dropped, count: 1, how: "TO takes image/*"),
        .init(what: "attachments", outcome: .dropped, count: 1, how: "the source has lost them"),
      ])
  }

  @Test("what happened beside the messages is kept where it can be")
  func beside() async throws {
    let bo = Author(id: "u7", name: "Bo")
    var edited = record("m1", "now", at: Self.start)
    edited.message.edited = Timestamp(milliseconds: Self.start + 5)
    let records: [Record] = [
      .message(record("m1", "before", at: Self.start)), .edit(edited),
      .delete(DeleteRecord(channel: "lobby", id: "m0")),
      .join(MembershipRecord(channel: "lobby", member: bo, time: Timestamp(milliseconds: Self.start))),
      .reaction(
        ReactionRecord(channel: "lobby", reaction: Reaction(message: "m1", by: bo, emoji: "👏", added: true))),
      .skipped(SkippedRecord(reason: "unreadable", count: 4)),
    ]
    let kept = try await plan(records, to: nil)
    #expect(kept.items.filter { $0.outcome == .dropped }.map(\.what) == ["unreadable records"])
    #expect(item(kept, "edits")?.outcome == .kept)
    let narrow = try await plan(
      records,
      to: service {
        $0.members = true
        $0.absent["reactions"] = "There are none."
      })
    #expect(
      item(narrow, "edits")
        == .init(what: "edits", outcome: .converted, count: 1, how: "the last text, and when it was edited"))
    #expect(item(narrow, "deleted messages")?.outcome == .dropped)
    #expect(item(narrow, "joins and leaves")?.outcome == .converted)
    #expect(item(narrow, "reactions") == .init(what: "reactions", outcome: .dropped, count: 1, how: "There are none."))
    #expect(item(narrow, "unreadable records")?.count == 4)
    let closed = try await plan(records, to: service { $0.absent["members"] = "Nobody joins." })
    #expect(
      item(closed, "joins and leaves")
        == .init(what: "joins and leaves", outcome: .dropped, count: 1, how: "Nobody joins."))
    let able = try await plan(
      records,
      to: service {
        $0.importing?.revisions = true
        $0.importing?.joins = true
        $0.importing?.reactions = true
      })
    #expect(able.items.filter { $0.outcome == .dropped }.map(\.what) == ["deleted messages", "unreadable records"])
  }

  @Test("a source without history, and a destination without import, say so")
  func impossible() async throws {
    var source = Capabilities()
    source.absent["history"] = "It keeps nothing."
    let nothing = try await plan([], from: source, to: service())
    #expect(item(nothing, "everything")?.how.hasPrefix("It keeps nothing.") == true)
    let closed = try await plan([.message(record("m1", "hi", at: Self.start))], to: narrow())
    #expect(item(closed, "everything")?.outcome == .dropped)
  }

  @Test("a sample is called one")
  func sample() async throws {
    var story = Story(seed: 2)
    let records: [Record] = (0..<50).map { _ in .message(story.message()) }
    let part = try await plan(records, to: service(), limit: 20)
    #expect(part.sampled == 20)
    #expect(!part.isWhole)
    #expect(try await plan(records, to: service(), limit: 50).isWhole)
  }

  @Test("times that are rounded for show are kept beside")
  func times() async throws {
    let plan = try await plan(
      [.message(record("m1", "hi", at: Self.start))], to: service { $0.importing?.timeUnit = 1000 })
    #expect(item(plan, "times")?.how == "TO shows whole seconds; the exact times are kept beside them")
  }
}
