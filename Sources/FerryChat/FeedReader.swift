package import FerryCore
import FerryRuntime

/// One reader's place in the feed of a room, or of all rooms.
///
/// It reads the log until it has caught up, then is told live, without a gap and without a repeat. A reader that
/// lags is not told any more and reads the log again from where it stands: it costs a bounded memory and loses
/// nothing but typing.
package final class FeedReader: Sendable {
  /// Reads the log: the events after a sequence, oldest first, at most so many.
  typealias ReadLog = @Sendable (_ after: Int64, _ limit: Int) async throws(FerryError) -> [LoggedEvent]

  private struct State {
    /// The last sequence handed out, or that the reader asked to start after.
    var position: Int64 = 0
    var queue: [FeedItem] = []
    /// Nothing is queued: the reader has yet to catch up with the log, or an item did not fit.
    var isBehind = true
    var isFinished = false
    var waiter: CheckedContinuation<Void, Never>?

    var hasNews: Bool { isBehind || isFinished || !queue.isEmpty }
  }

  private static let queueLimit = 256
  private static let pageLimit = 256

  private let state = Locked(State())
  private let feed: Feed
  private let room: ChannelID?
  private let readLog: ReadLog

  /// Nil `after`: what happens from now on.
  init(feed: Feed, room: ChannelID?, after: Int64?, readLog: @escaping ReadLog) throws(FerryError) {
    self.feed = feed
    self.room = room
    self.readLog = readLog
    let head = feed.add(self, room: room)
    if let after, after > head {
      feed.remove(self, room: room)
      throw FerryError(
        .conflict, "The log ends at \(head), before the sequence \(after). It may have been restored from a backup.")
    }
    state.withLock { $0.position = after ?? head }
  }

  /// Everything up to here has been handed out.
  package var position: Int64 { state.withLock { $0.position } }

  /// What comes next, at least one item; empty once the reader or the service is closed or the task cancelled.
  ///
  /// One caller at a time. Throws when the log cannot be read; it may then be called again.
  package func next() async throws(FerryError) -> [FeedItem] {
    while !Task.isCancelled {
      let (items, isBehind, isFinished) = state.withLock { state in
        let items = state.queue
        state.queue = []
        return (items, state.isBehind, state.isFinished)
      }
      if isFinished { return [] }
      // What was queued before the reader fell behind joins what it has: it is handed out first.
      let news = advance(items)
      if !news.isEmpty { return news }
      if isBehind {
        let page = try await catchUp()
        if !page.isEmpty { return page }
      } else {
        await waitForNews()
      }
    }
    return []
  }

  /// Ends the reader. May be called more than once, from anywhere.
  package func close() {
    feed.remove(self, room: room)
    finish()
  }

  // MARK: Called by the feed

  func offer(_ items: [FeedItem]) {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      if state.isFinished || state.isBehind { return nil }
      if state.queue.count + items.count > Self.queueLimit, !state.queue.isEmpty {
        state.isBehind = true
      } else {
        state.queue.append(contentsOf: items)
      }
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  func finish() {
    let waiter = state.withLock { state in
      state.isFinished = true
      state.queue = []
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  // MARK: The reader's task

  private func catchUp() async throws(FerryError) -> [FeedItem] {
    // From here on items are queued again: what is committed before the log is read is in the page, and what is
    // committed later is in the queue. `advance` drops what is in both.
    let position = state.withLock { state in
      state.isBehind = false
      return state.position
    }
    let page: [LoggedEvent]
    do throws(FerryError) { page = try await readLog(position, Self.pageLimit) } catch {
      fallBehind()
      throw error
    }
    if page.count == Self.pageLimit { fallBehind() }
    return advance(page.map(FeedItem.event))
  }

  private func fallBehind() {
    state.withLock { state in
      state.isBehind = true
      state.queue = []
    }
  }

  /// Drops the events that were handed out before and moves the position. A closed reader hands out nothing, though
  /// it was reading the log while it was closed.
  private func advance(_ items: [FeedItem]) -> [FeedItem] {
    if items.isEmpty { return items }
    return state.withLock { state in
      if state.isFinished { return [] }
      return items.filter { item in
        guard case .event(let event) = item else { return true }
        guard event.sequence > state.position else { return false }
        state.position = event.sequence
        return true
      }
    }
  }

  private func waitForNews() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.hasNews || Task.isCancelled { return true }
          precondition(state.waiter == nil, "a reader has one caller at a time")
          state.waiter = continuation
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        defer { state.waiter = nil }
        return state.waiter
      }
      waiter?.resume()
    }
  }
}
