package import FerryCore
import FerryRuntime

/// Imports as rows alone: nothing is published, so nobody who listens to the channel is told.
extension BackendlessAdapter: ImportingProvider {
  /// A channel is there as soon as a row names it.
  package func prepareImport(into channel: ChannelID, notify: Bool) async throws(FerryError) {
    _ = try checked(channel)
    _ = try table(doing: "import")
    _ = try await api.token()
  }

  /// Runs of messages and notices are saved together; an edit or a deletion of one of them comes after it.
  package func write(
    _ items: [PastItem], into channel: ChannelID
  ) async throws(FerryError) -> [MessageID?] {
    let table = try table(doing: "import")
    _ = try checked(channel)
    // Before anything has its place in time.
    for item in items {
      switch item.kind {
      case .join: _ = try words(for: .joined)
      case .leave: _ = try words(for: .left)
      case .message, .edit, .delete, .read, .reaction: break
      }
    }
    var rows: [JSONValue] = []
    var ids: [MessageID?] = []
    for item in items {
      switch item.kind {
      case .message(let message):
        ids.append(MessageID(ChatWriter.objectID(item.key, in: channel)))
        rows.append(try writer.row(message, item, in: channel, at: place(item.time, in: channel)))
      case .join(let member):
        ids.append(nil)
        rows.append(try notice(.joined, member, item, in: channel))
      case .leave(let member):
        ids.append(nil)
        rows.append(try notice(.left, member, item, in: channel))
      case .edit(let reference, let message):
        try await save(&rows, in: table)
        ids.append(nil)
        try await edit(reference, in: channel, table, to: message, item)
      case .delete(let reference, let author):
        try await save(&rows, in: table)
        ids.append(nil)
        try await delete(Self.id(of: reference, in: channel), in: channel, as: author, stamp: item.stamp)
      case .read, .reaction: throw FerryError(.unsupported, "Backendless does not keep this of the past.")
      }
    }
    try await save(&rows, in: table)
    return ids
  }

  /// By the app's own notice, as when somebody is announced.
  private func notice(
    _ kind: FerryMark.Notice, _ member: Author, _ item: PastItem, in channel: ChannelID
  ) throws(FerryError) -> JSONValue {
    writer.notice(try words(for: kind), kind, member, item, in: channel, at: place(item.time, in: channel))
  }

  /// Throws `unsupported` where the app has no notice, or one for coming and none for going: what is left out is to be
  /// reported.
  private func words(for kind: FerryMark.Notice) throws(FerryError) -> String {
    if let reason = capabilities.absent["members"] {
      throw FerryError(.unsupported, "Could not import who came and went: \(reason)")
    }
    guard let words = kind == .joined ? settings.joinNotice : settings.leaveNotice else {
      throw FerryError(
        .unsupported, "Could not import who went: the app has no notice for it. Set leave_notice if it has.")
    }
    return words
  }

  /// Rows of one second are sorted by this time, and rows of one import are saved within few seconds: so what happened at
  /// one time, or was told a little out of order, gets times that keep the order. The exact one is in the mark.
  private func place(_ time: Timestamp, in channel: ChannelID) -> Int64 {
    let powers = capabilities.importing
    return pastOrder.withLock { $0[channel, default: PastOrder(powers)].place(time) }
  }

  /// Saves those that are not there: what has become of the others since they were saved is not undone.
  private func save(_ rows: inout [JSONValue], in table: String) async throws(FerryError) {
    if rows.isEmpty { return }
    let doing = "import messages"
    let there = try await api.present(rows.compactMap { $0["objectId"]?.string }, in: table, doing: doing)
    let missing = rows.filter { $0["objectId"]?.string.map { !there.contains($0) } ?? true }
    rows = []
    if missing.isEmpty { return }
    try await pace.wait()
    try await api.upsertAll(missing, in: table, doing: doing)
  }

  private static func id(of reference: PastReference, in channel: ChannelID) -> MessageID {
    reference.id ?? MessageID(ChatWriter.objectID(reference.key, in: channel))
  }

  private func edit(
    _ reference: PastReference, in channel: ChannelID, _ table: String, to past: PastMessage, _ item: PastItem
  ) async throws(FerryError) {
    let id = Self.id(of: reference, in: channel)
    guard let row = try await api.row(id.rawValue, of: table, doing: "edit the message") else {
      throw FerryError(.notFound, "Could not edit the message: it is gone.")
    }
    // Whose stamp and sender the row has, it keeps.
    let mark = FerryMark(row[settings.fields.ferry])
    // Written before: what has become of it since is not undone.
    if mark?.edited == FerryMark.Edit(item.time, of: past.text) { return }
    try await pace.wait()
    try await api.update(
      id.rawValue, of: table,
      to: .object(try writer.changes(past, in: channel, at: item.time, stamp: mark?.stamp, exact: mark?.exactTime)),
      doing: "edit the message")
  }
}

extension ChatWriter {
  fileprivate func row(
    _ past: PastMessage, _ item: PastItem, in channel: ChannelID, at place: Int64
  ) throws(FerryError) -> JSONValue {
    let exact = place == item.time.milliseconds ? nil : item.time
    var row = try changes(past, in: channel, at: past.edited, stamp: item.stamp, exact: exact)
    row[fields.author[0]] = .string(past.author.name)
    row["objectId"] = .string(Self.objectID(item.key, in: channel))
    if let name = fields.channel { row[name] = .string(channel.rawValue) }
    row[fields.time] = .integer(place)
    return .object(row)
  }

  fileprivate func changes(
    _ past: PastMessage, in channel: ChannelID, at edited: Timestamp?, stamp: Stamp?, exact: Timestamp?
  ) throws(FerryError) -> [String: JSONValue] {
    var outgoing = OutgoingMessage(
      key: "", author: past.author, text: past.text, format: past.format, attachments: past.attachments, stamp: stamp)
    outgoing.replyTo = past.replyTo.map { $0.id ?? MessageID(Self.objectID($0.key, in: channel)) }
    var row = try changes(outgoing)
    var mark = mark(outgoing)
    // At zero where there was none: a row that is saved a second time, after an interruption, would pass for edited.
    mark.edited = FerryMark.Edit(edited ?? Timestamp(milliseconds: 0), of: past.text)
    mark.isAction = past.isAction
    mark.time = exact?.milliseconds
    mark.system = past.system
    if !mark.isEmpty { row[fields.ferry] = .string(mark.text) }
    return row
  }

  /// Somebody came or went, as a row: what is published of it is no row.
  fileprivate func notice(
    _ text: String, _ kind: FerryMark.Notice, _ member: Author, _ item: PastItem, in channel: ChannelID, at place: Int64
  ) -> JSONValue {
    var mark = FerryMark(stamp: item.stamp, by: member)
    mark.notice = kind
    if place != item.time.milliseconds { mark.time = item.time.milliseconds }
    var row: [String: JSONValue] = [
      "objectId": .string(Self.objectID(item.key, in: channel)), fields.author[0]: .string(member.name),
      fields.text[0]: .string(text), fields.time: .integer(place), fields.ferry: .string(mark.text),
    ]
    if let name = fields.channel { row[name] = .string(channel.rawValue) }
    return .object(row)
  }
}
