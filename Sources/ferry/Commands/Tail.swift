import FerryCore
import FerryRuntime

/// `ferry tail`: what happens in a channel, as it happens.
enum Tail {
  static let command = Command(
    name: "tail", positional: ["ADDRESS"],
    summary: "Follow a channel until interrupted.",
    options: [
      .init("since", "TIME|ID", "first print what came since that time (ISO 8601) or after that message"),
      Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: """
      With --json, one object a line: kind (message, edit, delete, typing, join, leave, read, reaction), address, id,
      author {id, name}, text, time, edited, attachments [{name, type, size, sha256, url}], reply_to, origin.

      \(Commands.addressNotes)
      """,
    runsUntilSignal: true,
    run: run)

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let (provider, address, session) = try Session.open(arguments.positional[0], arguments)
    let printer = EventPrinter(address: address, json: arguments.has("json"), logger: session.logger)
    var since: (any HistoryProvider)?
    if arguments.has("since") {
      since = provider as? any HistoryProvider
      if since == nil || provider.capabilities.history == .none {
        throw FerryError(.unsupported, "\(address) keeps no history, so --since has nothing to print.")
      }
      printer.hold()
    }
    return try await withThrowingTaskGroup(of: Int32.self) { group in
      group.addTask {
        try await provider.run([Subscription(channel: address.channel)], into: printer)
        return 0
      }
      if let since, let start = arguments["since"] {
        group.addTask {
          let messages = try await History.messages(of: address.channel, from: since, after: start)
          printer.release(after: messages)
          // The work goes on in the other task.
          return try await waitForEver()
        }
      }
      group.addTask {
        _ = await invocation.signals.next()
        return ExitCode.interrupted
      }
      let code = try await group.next() ?? 0
      group.cancelAll()
      return code
    }
  }

  private static func waitForEver() async throws -> Int32 {
    while true { try await SystemClock().sleep(for: .seconds(3600)) }
  }
}

/// An inbox that prints.
final class EventPrinter: Inbox {
  private struct State: Sendable {
    /// Lines kept back while history is being read; nil when there is nothing to wait for.
    var held: [(id: String?, line: String)]?
    /// The last events, oldest first, for adapters that compare.
    var recent: [Event] = []
    /// What was last told of the connection.
    var connection: String?
  }

  private static let remembered = 1000

  private let address: Address
  private let json: Bool
  private let logger: Logger
  private let state = Locked(State())

  init(address: Address, json: Bool, logger: Logger) {
    self.address = address
    self.json = json
    self.logger = logger
  }

  func hold() { state.withLock { $0.held = [] } }

  func release(after messages: [Message]) {
    let known = Set(messages.map(\.id.rawValue))
    for message in messages { Terminal.output(text(of: EventLine(message, at: address))) }
    let held = state.withLock { state in
      defer { state.held = nil }
      return state.held ?? []
    }
    for (id, line) in held where id.map({ !known.contains($0) }) ?? true { Terminal.output(line) }
  }

  func accept(_ events: [Event]) async throws(FerryError) {
    for event in events where event.channel == address.channel {
      guard remember(event) else { continue }
      let line = EventLine(event, at: address)
      var posted: String?
      if case .posted = event.kind { posted = line.id }
      emit(line, id: posted)
    }
  }

  func accept(cursor: Cursor, for channel: ChannelID) async throws(FerryError) {}

  func recent(in channel: ChannelID, limit: Int) async throws(FerryError) -> [KnownMessage] {
    guard channel == address.channel else { return [] }
    return Array(state.withLock { KnownMessage.latest(of: $0.recent.reversed()) }.prefix(limit))
  }

  func typing(_ typing: Typing) {
    guard typing.channel == address.channel else { return }
    emit(EventLine(typing, at: address, time: SystemClock().now()), id: nil)
  }

  func gap(_ gap: Gap) async {
    logger.warning("nothing is known of \(address) from \(gap.start.iso8601) to \(gap.end.iso8601)")
  }

  func connection(_ state: ConnectionState) {
    // Every attempt to connect again is told by the adapter: people want to know what is wrong once, and when it is over.
    let news = state.phase == .connected ? "connected" : state.reason ?? ""
    let isNews = self.state.withLock { known in
      guard known.connection != news, !news.isEmpty || known.connection == nil else { return false }
      known.connection = news
      return true
    }
    guard isNews else { return }
    logger.notice("\(address.account) is \(state.phase.rawValue)\(state.reason.map { ": \($0)" } ?? "")")
  }

  /// False for an event that was printed already: some services announce one twice.
  private func remember(_ event: Event) -> Bool {
    state.withLock { state in
      guard !state.recent.contains(where: { $0.key == event.key }) else { return false }
      state.recent.append(event)
      if state.recent.count > Self.remembered { state.recent.removeFirst(Self.remembered / 2) }
      return true
    }
  }

  private func emit(_ line: EventLine, id: String?) {
    let text = text(of: line)
    let isHeld = state.withLock { state in
      state.held?.append((id, text))
      return state.held != nil
    }
    if !isHeld { Terminal.output(text) }
  }

  private func text(of line: EventLine) -> String {
    json ? (try? Terminal.json(line)) ?? "{}" : line.readable
  }
}
