package import FerryChat
import FerryCore
package import FerryRuntime
package import FerryTransport

/// A service that speaks Backendless's protocols well enough for its official client libraries: REST under
/// `/{appId}/{apiKey}/` and real time at `/{appId}/`.
///
/// Mounted on a server of its own by whoever makes it. A channel is a room of the chat, a message that is published or
/// saved a message of that room; tables, files and users are documents beside it. Nothing but connections is kept in
/// memory.
package final class BackendlessFacade: Sendable {
  let settings: Settings
  let chat: ChatService
  /// Fetches what clients name by its address, nothing else.
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics?
  let rows: ChatRows
  let hub: Locked<Hub>
  let typists = Locked<[Typist: Timestamp]>([:])
  /// When the next message that waits for its time is due; nil when none is known of.
  let nextDue = Locked<Timestamp?>(nil)
  private let isFollowing = Locked(false)
  let lastPruned = Locked(Timestamp(milliseconds: 0))
  /// Told that there is something that needs the clock.
  private let awake = BoundedChannel<Void>(capacity: 1)

  /// The chat must take files of `settings.fileBytes`, and the server requests of `settings.bodyBytes`.
  package init(
    settings: Settings, chat: ChatService, client: HTTPClient, rehearsal: Rehearsal?, clock: any FerryClock,
    logger: Logger, metrics: Metrics?
  ) {
    self.settings = settings
    self.chat = chat
    self.client = client
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    rows = ChatRows(fields: settings.fields, appID: settings.appID)
    hub = Locked(Hub(appID: settings.appID))
    rehearsal?.onCloseSockets { [hub] _ in
      for connection in hub.withLock({ $0.clients.values.map(\.connection) }) { connection.stop() }
    }
  }

  /// A refusal with which an outage is rehearsed.
  package static func rehearsed(_ status: Int) -> HTTPResponse {
    Fault(status, status, "This failure is rehearsed").response
  }

  var namespace: String { "/\(settings.appID)" }

  /// Follows the chat, sends what waits for its time and lets go who is silent, until cancelled.
  package func run() async {
    await withDiscardingTaskGroup { group in
      group.addTask { await self.followChat() }
      group.addTask { await self.tellTyping() }
      group.addTask { await self.keepTime() }
    }
  }

  /// Lets every client go, which comes back soon. Before the server is stopped.
  package func closeAll() {
    for connection in hub.withLock({ $0.clients.values.map(\.connection) }) { connection.stop() }
  }

  // MARK: Time

  func wake() { _ = awake.offer(()) }

  /// Once a second while there is something to wait for, otherwise not at all.
  private func keepTime() async {
    await prepare()
    while !Task.isCancelled {
      let now = clock.now()
      tickSessions(now: now)
      if let due = nextDue.withLock({ $0 }), due <= now { await publishDue(now: now) }
      await prune(now: now)
      if hub.withLock({ $0.clients.isEmpty }), nextDue.withLock({ $0 }) == nil {
        guard await awake.next() != nil else { return }
      } else {
        guard (try? await clock.sleep(for: .seconds(1))) != nil else { return }
      }
    }
  }

  // MARK: Following the chat

  private func followChat() async {
    while !Task.isCancelled {
      do throws(FerryError) { return try await follow() } catch {
        logger.warning("the chat cannot be followed: \(error)")
        guard (try? await clock.sleep(for: .seconds(5))) != nil else { return }
      }
    }
  }

  /// From then on what is written in the chat by others becomes rows, and is told to the channel's listeners.
  ///
  /// Before anything of this facade's own is written: what the chat's log holds by then is taken for others'. May be
  /// called by several at once.
  private func follow() async throws(FerryError) {
    if isFollowing.withLock({ $0 }) { return }
    try await chat.observe(as: "backendless-facade") { [rows, weak self] transaction, event in
      let writer = TableWriter(transaction, rows)
      let publications = try rows.observed(event, writer)
      guard let self else { return }
      self.tellAfterCommit(writer)
      for publication in publications { try self.tellAfterCommit(publication, transaction) }
    }
    isFollowing.withLock { $0 = true }
  }

  // MARK: Transactions

  /// Writes to the chat and to tables, and tells the listeners once all is durable. Nothing is written when `body`
  /// throws.
  func change<T: Sendable>(_ body: @escaping @Sendable (TableWriter) throws -> T) async throws(Fault) -> T {
    let fault = Locked<Fault?>(nil)
    do throws(FerryError) {
      try await follow()
      return try await chat.write(isOfObserver: true) { [self] transaction in
        do {
          let writer = TableWriter(transaction, rows)
          let result = try body(writer)
          tellAfterCommit(writer)
          return result
        } catch let error as Fault {
          fault.withLock { $0 = error }
          throw FerryError(.badRequest, error.message)
        }
      }
    } catch {
      throw fault.withLock { $0 } ?? Fault(error)
    }
  }

  func read<T: Sendable>(_ body: @escaping @Sendable (ChatTransaction) throws -> T) async throws(Fault) -> T {
    let fault = Locked<Fault?>(nil)
    do throws(FerryError) {
      return try await chat.read { transaction in
        do { return try body(transaction) } catch let error as Fault {
          fault.withLock { $0 = error }
          throw FerryError(.badRequest, error.message)
        }
      }
    } catch {
      throw fault.withLock { $0 } ?? Fault(error)
    }
  }

  private func tellAfterCommit(_ writer: TableWriter) {
    let changes = writer.changes
    if changes.isEmpty { return }
    writer.transaction.afterCommit { [hub] in
      hub.withLock { hub in
        for change in changes { hub.deliver(change) }
      }
    }
  }
}
