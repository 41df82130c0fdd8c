import FerryCore
import FerryRuntime

/// `ferry history`: the messages of a channel, oldest first.
enum History {
  static let command = Command(
    name: "history", positional: ["ADDRESS"],
    summary: "Print the newest messages of a channel, oldest first.",
    options: [
      .init("limit", "N", "how many (50)"),
      .init("before", "TIME", "only messages before that time (ISO 8601)"),
      .init("after", "TIME|ID", "only messages after that time, or after that message"),
      Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: Commands.addressNotes, run: run)

  private static let page = 100

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let (provider, address, _) = try Session.open(arguments.positional[0], arguments)
    guard let provider = provider as? any HistoryProvider, provider.capabilities.history != .none else {
      throw FerryError(.unsupported, "The provider of \(address) keeps no history.")
    }
    let limit = try arguments.integer("limit", in: 1...1_000_000, default: 50)
    var before: Timestamp?
    if let text = arguments["before"] {
      before = Timestamp(iso8601: text)
      if before == nil { throw arguments.fail("--before is a time such as 2026-11-30T08:00:00Z, not \"\(text)\"") }
    }
    let messages = try await messages(
      of: address.channel, from: provider, after: arguments["after"], before: before, limit: limit)
    for message in messages {
      let line = EventLine(message, at: address)
      Terminal.output(arguments.has("json") ? try Terminal.json(line) : line.readable)
    }
    return 0
  }

  /// Read from the newest back, returned oldest first. `start` is a time or a message's id.
  static func messages(
    of channel: ChannelID, from provider: any HistoryProvider, after start: String?, before end: Timestamp? = nil,
    limit: Int = .max
  ) async throws(FerryError) -> [Message] {
    let startTime = start.flatMap { Timestamp(iso8601: $0) }
    var newestFirst: [Message] = []
    var cursor: Cursor?
    repeat {
      let found = try await provider.history(
        of: channel, order: .newestFirst, after: cursor, limit: min(page, limit))
      for message in found.messages {
        if let startTime, message.time <= startTime { return newestFirst.reversed() }
        if startTime == nil, let start, message.id.rawValue == start { return newestFirst.reversed() }
        if let end, message.time >= end { continue }
        newestFirst.append(message)
        if newestFirst.count == limit { return newestFirst.reversed() }
      }
      cursor = found.next
    } while cursor != nil
    if startTime == nil, let start {
      throw FerryError(
        .notFound,
        "\(channel) has no message \"\(start)\". Give the id of one, or a time such as 2026-11-30T08:00:00Z.")
    }
    return newestFirst.reversed()
  }
}
