import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct AdapterBookTests {
  private func said(
    _ text: String, id: String = "A", created: Int64? = 1_796_022_762_000, updated: Int64? = nil, picture: String? = nil
  ) -> ChatReader.Said {
    var message = Message(
      id: MessageID(id), author: Author(id: "ann", name: "ann"), text: text,
      time: Timestamp(milliseconds: 1_796_022_762_000))
    message.revision = Int(updated ?? 0)
    message.edited = updated.map { Timestamp(milliseconds: $0) }
    message.attachments =
      picture.map {
        [Attachment(name: "a", mediaType: "image/png", reference: .url($0))]
      } ?? []
    message.attributes = created.map { ["created": .integer($0)] }
    return ChatReader.Said(message: message, created: created, updated: updated)
  }

  private func text(_ kind: Event.Kind?) -> String? {
    switch kind {
    case .posted(let message): "posted \(message.text)"
    case .edited(let message): "edited \(message.text)"
    default: nil
    }
  }

  @Test(arguments: [
    [ChannelBook.Origin.created, .published, .listed(asOf: 0), .changed],
    [.published, .created, .listed(asOf: 9), .listedAsChanged(asOf: 9)],
    [.listed(asOf: 0), .published, .created, .changed],
  ])
  func `a message is news once, however it is learned`(origins: [ChannelBook.Origin]) {
    var book = ChannelBook()
    let news = origins.map { text(book.observe(said("hello"), $0)) }
    #expect(news == ["posted hello", nil, nil, nil])
  }

  @Test func `an edit is news once, and what says the same is none`() {
    var book = ChannelBook()
    _ = book.observe(said("one"), .created)
    #expect(text(book.observe(said("two", updated: 1_796_022_763_000), .changed)) == "edited two")
    #expect(book.observe(said("two", updated: 1_796_022_763_000), .listedAsChanged(asOf: book.mark)) == nil)
    // Another column changed.
    #expect(book.observe(said("two", updated: 1_796_022_764_000), .changed) == nil)
    #expect(text(book.observe(said("two", updated: 1_796_022_765_000, picture: "http://a/b.png"), .changed)) != nil)
  }

  @Test func `edits within one tick of the service are all news, and their revisions rise`() {
    var book = ChannelBook()
    _ = book.observe(said("a"), .created)
    var revisions: [Int] = []
    for text in ["b", "a", "b"] {
      guard case .edited(let message)? = book.observe(said(text, updated: 1_796_022_763_000), .changed) else {
        continue
      }
      revisions.append(message.revision)
    }
    #expect(revisions == [1_796_022_763_000, 1_796_022_763_001, 1_796_022_763_002])
  }

  @Test func `what was published before an edit and arrives after it does not undo it`() {
    var book = ChannelBook()
    _ = book.observe(said("one"), .created)
    _ = book.observe(said("two", updated: 1_796_022_763_000), .changed)
    #expect(book.observe(said("one"), .published) == nil)
    #expect(book.observe(said("one"), .created) == nil)
    // A row that is published again after a change is an edit, should nobody have told of the change.
    #expect(text(book.observe(said("three", updated: 1_796_022_764_000), .published)) == "edited three")
  }

  @Test func `an answer that was asked for before a change does not undo it`() {
    var book = ChannelBook()
    _ = book.observe(said("one"), .created)
    let asOf = book.mark
    _ = book.observe(said("two", updated: 1_796_022_763_000), .changed)
    #expect(book.observe(said("one", updated: 1_796_022_763_000), .listed(asOf: asOf)) == nil)
    #expect(book.isGone("A", asOf: asOf) == false)
    #expect(book.isGone("A", asOf: book.mark))
  }

  @Test func `an edit of what is not known is reported, and its coming when the table shows it`() {
    var book = ChannelBook()
    #expect(text(book.observe(said("two", updated: 1_796_022_763_000), .changed)) == "edited two")
    #expect(!book.isPosted("A"))
    #expect(text(book.observe(said("two", updated: 1_796_022_763_000), .listed(asOf: book.mark))) == "posted two")
    #expect(book.isPosted("A"))
  }

  @Test func `a deletion is news once, and what comes late of the message is none`() {
    var book = ChannelBook()
    _ = book.observe(said("one"), .created)
    let deletions = [book.delete("A"), book.delete("A")]
    #expect(deletions == [true, false])
    #expect(book.observe(said("one"), .published) == nil)
    #expect(book.observe(said("two", updated: 1_796_022_763_000), .changed) == nil)
    #expect(book.live(10).isEmpty)
  }

  @Test func `only what was seen as a row can be missing from the table`() {
    var book = ChannelBook()
    _ = book.observe(said("bare", id: "message:1", created: nil), .published)
    _ = book.observe(said("row", id: "B"), .published)
    #expect(book.live(10) == ["B"])
    #expect(!book.isGone("message:1", asOf: book.mark))
    #expect(!book.isGone("unheard of", asOf: book.mark))
  }

  @Test func `what was accepted before a restart is known after it`() {
    var edited = said("two", updated: 1_796_022_763_000).message
    edited.revision += 5
    let recent = [KnownMessage(id: "A", message: edited), KnownMessage(id: "B", message: nil)]
    var book = ChannelBook(recent: recent)
    #expect(book.observe(said("two", updated: 1_796_022_763_000), .listed(asOf: book.mark)) == nil)
    #expect(book.observe(said("gone", id: "B"), .listed(asOf: book.mark)) == nil)
    #expect(book.live(10) == ["A"])
    guard case .edited(let message)? = book.observe(said("three", updated: 1_796_022_763_000), .changed) else {
      Issue.record("no edit")
      return
    }
    #expect(message.revision == edited.revision + 1)
  }

  @Test func `a book forgets the oldest and stays small`() {
    var book = ChannelBook(limit: 100)
    for number in 0..<1000 { _ = book.observe(said("x", id: "\(number)"), .created) }
    #expect(book.isKnown("999"))
    #expect(!book.isKnown("1"))
    #expect(book.live(1000).count <= 100)
  }
}

@Suite struct AdapterCursorTests {
  @Test func `a cursor is read as it was written, and nothing else is one`() {
    let cursor = FeedCursor(
      created: 1_796_022_762_000, updated: 5, floor: .init(created: 1_796_022_760_000, updated: 3, ids: ["A", "B'\""]))
    #expect(FeedCursor(cursor.cursor) == cursor)
    #expect(FeedCursor("17") == nil)
    #expect(FeedCursor("") == nil)
    #expect(FeedCursor(#"{"c":"x"}"#) == nil)
  }

  @Test func `reading goes back by a margin, and never before where listening began`() {
    var cursor = FeedCursor(created: 100_000, updated: 0, floor: .init(created: 100_000, updated: 0, ids: ["A"]))
    #expect(cursor.createdSince == 100_000)
    #expect(cursor.floor?.admits(100_000, "A") == false)
    #expect(cursor.floor?.admits(100_000, "B") == true)
    #expect(cursor.floor?.admits(99_000, "B") == false)
    cursor.advance(created: 105_000, updated: nil)
    #expect(cursor.createdSince == 100_000)
    #expect(cursor.floor?.ids == ["A"])
    cursor.advance(created: 120_000, updated: 119_000)
    #expect(cursor.createdSince == 110_000)
    #expect(cursor.updatedSince == 109_000)
    #expect(cursor.floor?.ids == [])
    cursor.advance(created: 1, updated: 1)
    #expect(cursor.created == 120_000)
  }

  @Test func `no number moves a cursor out of bounds`() {
    var cursor = FeedCursor(created: .min, updated: .max, floor: nil)
    _ = (cursor.createdSince, cursor.updatedSince)
    cursor.advance(created: .max, updated: .min)
    _ = (cursor.createdSince, cursor.updatedSince)
    #expect(FeedCursor(cursor.cursor) == cursor)
  }
}

@Suite struct AdapterWalkTests {
  private func row(_ id: String, created: Int64, time: Int64? = nil) -> JSONValue {
    ["objectId": .string(id), "created": .integer(created), "ferryTime": time.map(JSONValue.integer) ?? .null]
  }

  private func ids(_ rows: [JSONValue]) -> [String] { rows.compactMap { $0["objectId"]?.string } }

  /// What a service would answer that sorts as it is asked to.
  private func answer(_ walk: RowWalk, _ rows: [JSONValue], limit: Int) throws -> [JSONValue] {
    let condition = try walk.condition.map { try SQLCondition($0) }
    let found = rows.filter { row in condition?.matches { row[$0] } ?? true }
    let isByID = walk.sort.hasPrefix("objectId")
    let sorted = found.enumerated().sorted { left, right in
      if isByID { return left.element["objectId"]?.string ?? "" < right.element["objectId"]?.string ?? "" }
      let (one, two) = (left.element[walk.column]?.integer ?? 0, right.element[walk.column]?.integer ?? 0)
      if one == two { return left.offset < right.offset }
      return walk.isAscending ? one < two : one > two
    }
    return sorted.prefix(limit).map(\.element)
  }

  @Test(arguments: [true, false]) func `a way leads past every row once, however many share a time`(ascending: Bool)
    throws
  {
    var rows: [JSONValue] = []
    for (time, count) in [(1000, 3), (2000, 450), (3000, 1), (4000, 99), (5000, 260)] {
      for number in 0..<count { rows.append(row("it's \(count - number)/\(time)", created: Int64(time))) }
    }
    rows.append(row("odd\\", created: 6000))
    var walk = RowWalk(by: "created", ascending: ascending)
    var seen: [String] = []
    while !walk.isDone, seen.count <= rows.count {
      let page = try answer(walk, rows, limit: 100)
      let new = walk.new(page)
      for row in new { walk.pass(row) }
      seen += ids(new)
      walk.endPage(isLast: page.count < 100, isIdle: new.isEmpty)
      // As text and back it is the same way.
      walk = try #require(RowWalk(walk.value, by: "created", ascending: ascending))
    }
    #expect(seen.count == rows.count)
    #expect(Set(seen).count == rows.count)
    let first = ascending ? Array(ids(rows).prefix(3)) : ["odd\\"]
    #expect(Array(seen.prefix(first.count)) == first)
  }

  @Test func `two ways become one in the order of their times, and the place goes on from there`() {
    var merge = HistoryMerge(nil, time: "ferryTime", ascending: true)
    let timed = [
      row("T1", created: 9000, time: 1000), row("T2", created: 9000, time: 3000), row("T3", created: 9000, time: 4000),
    ]
    let page = merge.merge(timed, [row("P1", created: 2000), row("P2", created: 5000)], limit: 3)
    #expect(ids(page) == ["T1", "P1", "T2"])
    var rest = HistoryMerge(merge.next, time: "ferryTime", ascending: true)
    #expect(rest.timed.condition == "ferryTime > 3000 or (ferryTime = 3000 and objectId not in ('T2'))")
    #expect(ids(rest.merge([timed[2]], [row("P2", created: 5000)], limit: 3)) == ["T3", "P2"])
    #expect(rest.next == nil)
  }

  @Test func `newest first is the same backwards`() {
    var merge = HistoryMerge(nil, time: "ferryTime", ascending: false)
    let page = merge.merge(
      [row("T2", created: 1, time: 3000)], [row("P2", created: 5000), row("P1", created: 2000)], limit: 10)
    #expect(ids(page) == ["P2", "T2", "P1"])
    #expect(merge.next == nil)
  }

  @Test func `rows without what they are sorted by end nothing and stop nothing`() {
    var merge = HistoryMerge("rubbish", time: "ferryTime", ascending: true)
    #expect(
      merge.merge(["x", .null, row("T", created: 1, time: 2)], [[:], row("P", created: 1)], limit: 10).count == 2)
  }
}
