import FerryCore
import FerryRuntime

/// What the table says: all that was missed, in its order.
extension ChannelFeed {
  /// How many of the last messages are looked at for deletions after nobody has listened.
  private static let longWindow = 1000
  /// A condition that is much longer is refused.
  private static let longestList = 6000

  // MARK: When

  /// Before a channel's news flow: reads what was missed since it was last listened to, or notes where listening
  /// begins. Goes on trying; throws only when cancelled.
  mutating func catchUp(_ channel: ChannelID) async throws(FerryError) {
    guard adapter.settings.table != nil else { return await reportGap(channel) }
    var backoff = Backoff(base: .milliseconds(250), limit: .seconds(15))
    while true {
      do throws(FerryError) {
        if rooms[channel]?.cursor == nil {
          try await beginHere(channel)
          await reportGap(channel)
        } else {
          try await readNew(channel)
          try await readChanged(channel)
          try await readGone(channel, of: max(adapter.settings.pollWindow, Self.longWindow))
        }
        let next = now.advanced(by: adapter.settings.pollInterval)
        rooms[channel]?.nextPoll = next
        return
      } catch {
        if Task.isCancelled { throw .cancelled() }
        if error.retry == .never {
          adapter.logger.error("\(channel) goes on without its table: \(error)")
          return await reportGap(channel)
        }
        adapter.logger.warning("the table cannot be read, again soon: \(error)")
        inbox.connection(ConnectionState(.degraded, reason: error.message))
        let wait = if case .after(let asked) = error.retry { max(asked, backoff.next()) } else { backoff.next() }
        do { try await adapter.clock.sleep(for: wait) } catch { throw .cancelled() }
      }
    }
  }

  /// Now and then while listening. A failure waits for the next time.
  mutating func poll(_ channel: ChannelID) async throws(FerryError) {
    do throws(FerryError) {
      if rooms[channel]?.cursor == nil { return try await beginHere(channel) }
      try await readNew(channel)
      try await readChanged(channel)
      try await readGone(channel, of: adapter.settings.pollWindow)
    } catch {
      if Task.isCancelled { throw .cancelled() }
      adapter.logger.warning("\(channel) could not be compared with its table: \(error)")
    }
  }

  private func reportGap(_ channel: ChannelID) async {
    guard let start = rooms[channel]?.silentSince else { return }
    await inbox.gap(Gap(channel: channel, start: start, end: now))
  }

  // MARK: Questions

  /// A table that is not there yet has no rows.
  private func rows(
    where parts: [String?], sortBy order: String, limit: Int = 100
  ) async throws(FerryError) -> [JSONValue] {
    let table = try adapter.table(doing: "read the table")
    do throws(FerryError) {
      return try await adapter.api.rows(
        of: table, where: Condition.all(parts), sortBy: order, limit: limit, doing: "read the table")
    } catch  where error.code == .notFound {
      return []
    }
  }

  private func own(_ channel: ChannelID) throws(FerryError) -> String? {
    let condition = try adapter.condition(channel)
    return condition.isEmpty ? nil : condition
  }

  /// The first time: what is there already is not news.
  private mutating func beginHere(_ channel: ChannelID) async throws(FerryError) {
    let own = try own(channel)
    let newest = try await rows(where: [own], sortBy: "created desc")
    let changed = try await rows(where: [own, "updated is not null"], sortBy: "updated desc", limit: 1)
    let created = newest.first?["created"]?.integer ?? 0
    let updated = changed.first?["updated"]?.integer ?? 0
    let ids = Set(newest.filter { $0["created"]?.integer == created }.compactMap { $0["objectId"]?.text })
    // Too many to name: what else comes in that second is heard of all the same.
    let floor = ids.count < 100 ? created : created + 1
    let cursor = FeedCursor(
      created: created, updated: updated,
      floor: .init(created: floor, updated: updated, ids: ids.count < 100 ? ids : []))
    try await store(cursor, channel)
  }

  private mutating func store(_ cursor: FeedCursor, _ channel: ChannelID) async throws(FerryError) {
    rooms[channel]?.cursor = cursor
    let inbox = inbox
    try await untilItSucceeds("the place in \(channel)") { () async throws(FerryError) in
      try await inbox.accept(cursor: cursor.cursor, for: channel)
    }
  }

  /// Hands over what was found, and then moves the cursor: never before.
  private mutating func move(_ channel: ChannelID, created: Int64? = nil, updated: Int64? = nil)
    async throws(FerryError)
  {
    try await handOver()
    guard let old = rooms[channel]?.cursor else { return }
    var cursor = old
    cursor.advance(created: created, updated: updated)
    if cursor != old { try await store(cursor, channel) }
  }

  // MARK: New rows

  /// Rows since the cursor, less a margin, in their order. What of it was heard of before is no news, and what is still
  /// on its way will not be: so nothing that is found has to wait.
  private mutating func readNew(_ channel: ChannelID) async throws(FerryError) {
    guard let cursor = rooms[channel]?.cursor else { return }
    let scope = [try own(channel), "created >= \(cursor.createdSince)"]
    let table = try adapter.table(doing: "read the table")
    var walk = RowWalk(by: "created", finer: adapter.settings.fields.time, ascending: true)
    while !walk.isDone {
      let asOf = rooms[channel]?.book.mark ?? 0
      let (seconds, next) = try await adapter.api.seconds(
        of: table, where: scope, along: walk, doing: "read the table")
      walk = next
      for second in seconds {
        for row in second.rows {
          guard let (created, id) = walk.place(of: row), cursor.floor?.admits(created, id) != false,
            case .message(let said)? = adapter.reader.row(row)
          else { continue }
          observe(said, .listed(asOf: asOf), in: channel)
        }
        // A long absence is handed over as it is read, lest everything be kept in memory.
        if events.count >= Self.batch { try await move(channel, created: second.time) }
      }
    }
    try await move(channel, created: walk.passed)
  }

  // MARK: Changes

  private mutating func readChanged(_ channel: ChannelID) async throws(FerryError) {
    guard let cursor = rooms[channel]?.cursor else { return }
    let scope = [try own(channel), "updated >= \(cursor.updatedSince)"]
    let table = try adapter.table(doing: "read the table")
    var walk = RowWalk(by: "updated", finer: "", ascending: true)
    while !walk.isDone {
      let asOf = rooms[channel]?.book.mark ?? 0
      let page = try await rows(where: scope + [walk.condition], sortBy: walk.sort)
      switch walk.take(page, isFull: page.count >= BackendlessAPI.pageSize) {
      case .seconds(let seconds): for second in seconds { changed(second.rows, asOf, cursor.floor, in: channel) }
      case .crowded(let time):
        // Changes in bulk: as many as there are, and in no order.
        var after: String?
        repeat {
          let asOf = rooms[channel]?.book.mark ?? 0
          let (page, next) = try await adapter.api.byID(
            time, after: after, of: table, where: scope, by: "updated", doing: "read the table")
          changed(page, asOf, cursor.floor, in: channel)
          if events.count >= Self.batch { try await handOver() }
          after = next
        } while after != nil
        walk.pass(time)
      }
      if events.count >= Self.batch { try await handOver() }
    }
    try await move(channel, updated: walk.passed)
  }

  private mutating func changed(_ rows: [JSONValue], _ asOf: UInt64, _ floor: FeedCursor.Floor?, in channel: ChannelID)
  {
    for row in rows {
      guard let updated = row["updated"]?.integer, let id = row["objectId"]?.text else { continue }
      let isOld = updated <= floor?.updated ?? .min
      guard !isOld || rooms[channel]?.book.isKnown(MessageID(id)) == true,
        case .message(let said)? = adapter.reader.row(row)
      else { continue }
      observe(said, .listedAsChanged(asOf: asOf), in: channel)
    }
  }

  /// Compares the last messages with the table: what is not there any more was deleted.
  private mutating func readGone(_ channel: ChannelID, of count: Int) async throws(FerryError) {
    let table = try adapter.table(doing: "compare with the table")
    var ids = (rooms[channel]?.book.live(count) ?? []).filter { Condition.isPlain($0.rawValue) }[
      ...]
    while !ids.isEmpty {
      let asOf = rooms[channel]?.book.mark ?? 0
      var bytes = 0
      let part = ids.prefix(BackendlessAPI.pageSize).prefix { id in
        defer { bytes += id.rawValue.utf8.count + 3 }
        return bytes < Self.longestList
      }
      ids = ids.dropFirst(part.count)
      let quoted = part.compactMap { Condition.quoted($0.rawValue) }
      let rows: [JSONValue]
      do throws(FerryError) {
        rows = try await adapter.api.rows(
          of: table, where: "objectId in (\(quoted.joined(separator: ",")))",
          sortBy: "created asc", doing: "compare with the table")
      } catch  where error.code == .notFound {
        // A table that is gone as a whole is somebody's mistake rather than everybody's deletion.
        return
      }
      let there = Set(rows.compactMap { $0["objectId"]?.text })
      for row in rows {
        if case .message(let said)? = adapter.reader.row(row) {
          observe(said, .listedAsChanged(asOf: asOf), in: channel)
        }
      }
      for id in part where !there.contains(id.rawValue) && rooms[channel]?.book.isGone(id, asOf: asOf) == true {
        deleted(id, in: channel)
      }
    }
    try await handOver()
  }
}
