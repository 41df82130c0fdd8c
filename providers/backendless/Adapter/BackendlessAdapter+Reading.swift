package import FerryCore
import FerryRuntime
import FerryTransport

extension BackendlessAdapter {
  package func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    if case .provider(let url) = reference {
      guard api.isOwnFile(url, of: settings.place) else {
        throw FerryError(.addressRefused, "The picture is not a file of this app.")
      }
      return try await api.download(url)
    }
    guard case .url(let url) = reference else { return .none }
    // Anybody may have written the link.
    let response = try await client.send(
      ClientRequest(url: url, deadline: .seconds(600), redirects: 3, isTrusted: false))
    guard response.isSuccess else {
      throw FerryError.from(
        status: response.status, retryAfter: response.headers["Retry-After"], doing: "fetch the attachment")
    }
    return response.body
  }

  /// The channels that the table's rows name: the service lists none. The account is reached in any case.
  package func channels() async throws(FerryError) -> [ChannelSummary] {
    _ = try await api.realtimePlace()
    _ = try await api.token()
    guard let table = settings.table, let column = settings.fields.channel else { return [] }
    var channels: [ChannelSummary] = []
    var condition = "\(column) is not null"
    // From one channel to the next, however many rows each has.
    while channels.count < Self.mostChannels {
      let rows: [JSONValue]
      do throws(FerryError) {
        rows = try await api.rows(
          of: table, where: condition, sortBy: "\(column) asc", limit: 1, doing: "list the channels")
      } catch  where error.code == .notFound { break }
      guard let row = rows.first, let name = row[column]?.text, let quoted = Condition.quoted(name) else { break }
      // A service that sorts in another way than it compares would go round for ever.
      guard channels.last?.name != name else { break }
      channels.append(ChannelSummary(id: ChannelID(name), name: name))
      condition = "\(column) > \(quoted)"
    }
    return channels.filter { !$0.name.isEmpty }
  }

  private static let mostChannels = 500
}

extension BackendlessAdapter: SetupProvider {
  /// The chat table with its columns; channels need nothing of their own.
  package func setUp(_ channels: [ChannelID]) async throws(FerryError) -> [String] {
    for channel in channels { _ = try checked(channel) }
    guard let table = settings.table else { return [] }
    // The service refuses to compare a column that is not there.
    let columns = columns.map { "\($0) is null" }.joined(separator: " or ")
    do throws(FerryError) {
      _ = try await api.rows(of: table, where: columns, sortBy: "created asc", limit: 1, doing: "look at the table")
      return []
    } catch  where error.code == .notFound {
      return [try await prepare()]
    }
  }

  /// Those that Ferry writes.
  private var columns: [String] {
    let fields = settings.fields
    return [fields.author[0], fields.text[0], fields.picture[0], fields.channel, fields.time, fields.ferry]
      .compactMap { $0 }.sorted()
  }

  /// Creates the chat table, or the columns it lacks, by saving a row with all of them and deleting it again; texts long
  /// enough for the service to make long columns of them. Returns what was done, for people.
  ///
  /// An app whose schema is closed has to be opened for it, or given the columns by hand.
  package func prepare() async throws(FerryError) -> String {
    let table = try table(doing: "prepare the table")
    let long = String(repeating: "x", count: 600)
    let fields = settings.fields
    let id = ClientIdentity.guid()
    var row: [String: JSONValue] = [
      "objectId": .string(id), fields.author[0]: "ferry", fields.text[0]: .string(long),
      fields.picture[0]: .string(long), fields.time: .integer(clock.now().milliseconds), fields.ferry: .string(long),
    ]
    if let channel = fields.channel { row[channel] = .string("ferry-check") }
    deletions.note(id, nil)
    _ = try await api.upsert(.object(row), in: table, doing: "prepare the table")
    try await api.delete(id, of: table, doing: "delete the row that prepared the table")
    return "the table \(table) with the columns \(columns.joined(separator: ", "))"
  }
}

extension BackendlessAdapter: HistoryProvider {
  /// In the order of `RowWalk`, which is that of the messages' saving: the order in which whoever listened had them.
  package func history(
    of channel: ChannelID, order: HistoryOrder, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> HistoryPage {
    let table = try table(doing: "read the history")
    let limit = max(limit, 1)
    let own = try condition(channel)
    let scope = own.isEmpty ? nil : own
    var walk = RowWalk(cursor, by: "created", finer: settings.fields.time, ascending: order == .oldestFirst)
    var messages: [Message] = []
    var notices: [Event] = []
    while messages.count < limit, !walk.isDone {
      let before = walk
      let (seconds, after) = try await api.seconds(of: table, where: [scope], along: walk, doing: "read the history")
      walk = after
      var earlier: RowWalk.Second?
      reading: for second in seconds {
        for (index, row) in walk.inDirection(second).enumerated() {
          if messages.count == limit {
            walk = before.stopped(in: second, at: index, after: earlier)
            break reading
          }
          switch reader.row(row) {
          case .message(let said): messages.append(said.message)
          case .notice(let notice, let membership, let id, let time):
            notices.append(
              Event(
                key: EventKey(id), channel: channel, time: time,
                kind: notice == .joined ? .joined(membership) : .left(membership)))
          case nil: break
          }
        }
        earlier = second
      }
    }
    return HistoryPage(messages: messages, notices: notices, next: walk.cursor)
  }
}
