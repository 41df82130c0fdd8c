import FerryCore
import FerryRuntime
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
    #expect(text(book.observe(said("two", updated: 1_796_022_763_000), .listed(asOf: book.mark))) == "posted two")
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

  @Test func `an edit in the second of one that was accepted before a restart is news`() {
    var edited = said("two", updated: 1_796_022_763_000).message
    edited.edited = Timestamp(milliseconds: 1_796_022_763_345)
    edited.revision = 1_796_022_763_345
    var book = ChannelBook(recent: [KnownMessage(id: "A", message: edited)])
    let kind = book.observe(said("three", updated: 1_796_022_763_000), .listedAsChanged(asOf: book.mark))
    #expect(text(kind) == "edited three")
    guard case .edited(let message)? = kind else { return }
    #expect(message.revision > edited.revision)
  }

  @Test func `what was cut off between a change and its message is told of all the same`() {
    let changed = said("two", updated: 1_796_022_763_000)
    let cut = Event(
      key: "e:A:1", channel: "lobby", time: changed.message.time, kind: .edited(changed.message), cursor: nil)
    var book = ChannelBook(recent: KnownMessage.latest(of: [cut]))
    #expect(book.observe(changed, .listed(asOf: book.mark)) == .posted(changed.message))
    #expect(book.observe(changed, .listed(asOf: book.mark)) == nil)
    // Both are known where both were accepted, the later first.
    let posted = Event(
      key: "m:A", channel: "lobby", time: changed.message.time, kind: .posted(changed.message), cursor: nil)
    #expect(KnownMessage.latest(of: [cut, posted]).map(\.isPosted) == [true])
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

  private func ids(_ step: RowWalk.Step) -> [[String]]? {
    guard case .seconds(let seconds) = step else { return nil }
    return seconds.map { $0.rows.compactMap { $0["objectId"]?.string } }
  }

  private func walk(_ cursor: Cursor? = nil, ascending: Bool = true) -> RowWalk {
    RowWalk(cursor, by: "created", finer: "ferryTime", ascending: ascending)
  }

  @Test func `a second that a page's end may have cut waits for the next page`() {
    var walk = walk()
    let page = [row("a", created: 1000), row("b", created: 2000), row("c", created: 2000)]
    #expect(ids(walk.take(page, isFull: true)) == [["a"]])
    #expect(walk.condition == "created > 1000")
    #expect(ids(walk.take([row("b", created: 2000), row("c", created: 2000)], isFull: false)) == [["b", "c"]])
    #expect(walk.isDone && walk.cursor == nil)
  }

  @Test func `a second that fills a page is read by itself`() {
    var walk = walk()
    #expect(walk.take([row("a", created: 1000), row("b", created: 1000)], isFull: true) == .crowded(1000))
    #expect(walk.condition == nil)
    walk.pass(1000)
    #expect(walk.condition == "created > 1000")
  }

  @Test func `finer times order a second only where all of its rows have one`() {
    let some = [row("a", created: 1000, time: 3), row("b", created: 1000), row("c", created: 1000, time: 1)]
    var one = walk()
    #expect(ids(one.take(some, isFull: false)) == [["a", "b", "c"]])
    let all = [row("a", created: 1000, time: 3), row("b", created: 1000, time: 2), row("c", created: 1000, time: 2)]
    var two = walk()
    #expect(ids(two.take(all, isFull: false)) == [["b", "c", "a"]])
    // The service lists the newest first, and what it lists last was saved first.
    var three = walk(ascending: false)
    #expect(ids(three.take(all.reversed(), isFull: false)) == [["b", "c", "a"]])
  }

  @Test(arguments: [true, false]) func `a reader who stops within a second goes on after the last row taken`(
    ascending: Bool
  ) throws {
    let rows = (0..<6).map { row("r\($0)", created: 5000, time: Int64($0)) }
    let second = RowWalk.Second(5000, rows, finer: "ferryTime")
    let stopped = walk(ascending: ascending).stopped(in: second, at: 2, after: nil)
    var resumed = walk(stopped.cursor, ascending: ascending)
    let stop = try #require(resumed.stop)
    let rest = resumed.rest(of: second, after: stop)
    #expect(
      resumed.inDirection(rest).compactMap { $0["objectId"]?.string }
        == (ascending ? ["r2", "r3", "r4", "r5"] : ["r3", "r2", "r1", "r0"]))
    // When rows that were taken have gone, nothing that was not taken goes with them.
    for missing in [[1], [0], [0, 1]] {
      let ids = Set(missing.map { stop.taken[$0] })
      let left = rows.filter { $0["objectId"]?.string.map { !ids.contains($0) } ?? true }
      let gone = RowWalk.Second(5000, left, finer: "ferryTime")
      #expect(resumed.inDirection(resumed.rest(of: gone, after: stop)) == resumed.inDirection(rest), "\(missing)")
    }
    resumed.pass(5000)
    #expect(resumed.stop == nil && resumed.condition == "created \(ascending ? ">" : "<") 5000")
  }

  @Test(arguments: [true, false]) func `a reader who stops twice within a second counts from its beginning`(
    ascending: Bool
  ) throws {
    let rows = (0..<6).map { row("r\($0)", created: 5000, time: Int64($0)) }
    let second = RowWalk.Second(5000, rows, finer: "ferryTime")
    let way = ascending ? rows : rows.reversed()
    let once = walk(walk(ascending: ascending).stopped(in: second, at: 2, after: nil).cursor, ascending: ascending)
    let rest = once.rest(of: second, after: try #require(once.stop))
    let twice = walk(once.stopped(in: rest, at: 2, after: nil).cursor, ascending: ascending)
    let stop = try #require(twice.stop)
    #expect(stop.taken.count == 4 && stop.isWhole)
    for left in [way[4...], way[3...], way[0...]] {
      let second = RowWalk.Second(5000, ascending ? Array(left) : left.reversed(), finer: "ferryTime")
      #expect(twice.inDirection(twice.rest(of: second, after: stop)) == Array(way[4...]))
    }
    // A cursor is text from outside.
    for ids: JSONValue in [[], ["unheard of"], [1, .null]] {
      let odd: JSONValue = ["in": ["t": 5000, "ids": ids]]
      let resumed = walk(Cursor(JSON.text(of: odd)), ascending: ascending)
      #expect(resumed.rest(of: second, after: try #require(resumed.stop)).rows.count == 6)
    }
  }

  @Test(arguments: [true, false]) func `of many rows taken the last are remembered`(ascending: Bool) throws {
    let rows = (0..<300).map { row("r\($0)", created: 5000, time: Int64($0)) }
    let second = RowWalk.Second(5000, rows, finer: "ferryTime")
    let way = ascending ? rows : rows.reversed()
    let resumed = walk(walk(ascending: ascending).stopped(in: second, at: 250, after: nil).cursor, ascending: ascending)
    let stop = try #require(resumed.stop)
    #expect(stop.taken.count == RowWalk.Stop.memory && !stop.isWhole)
    for left in [way, Array(way[..<200] + way[249...]), Array(way[..<160] + way[250...])] {
      let second = RowWalk.Second(5000, ascending ? Array(left) : left.reversed(), finer: "ferryTime")
      #expect(resumed.inDirection(resumed.rest(of: second, after: stop)) == Array(way[250...]))
    }
    // None of those is left: everything once more.
    let left = way[..<100] + way[250...]
    let without = RowWalk.Second(5000, ascending ? Array(left) : left.reversed(), finer: "ferryTime")
    #expect(resumed.rest(of: without, after: stop).rows.count == 150)
  }

  @Test func `rows without what they are sorted by end nothing and stop nothing`() {
    var walk = walk("rubbish")
    #expect(ids(walk.take(["x", .null, [:], row("a", created: 1)], isFull: false)) == [["a"]])
    var idle = self.walk(#"{"t":"x","in":{"t":1,"n":-5}}"#)
    #expect(idle.passed == nil && idle.stop == nil)
    // A service that answers with what was not asked for is not asked for ever.
    #expect(ids(idle.take([.null, .null], isFull: true)) == [])
    #expect(idle.isDone)
  }
}
