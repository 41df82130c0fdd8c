package import FerryCore
import FerryRuntime

/// A Slack export, a zip or a folder, as records: people, then one channel after the other, its days in order.
///
/// What is broken or no message is skipped and counted with its place; nothing ends the reading but a file that cannot be
/// read at all. Memory holds one day. Runs on a thread of its own.
///
/// Source: Slack's "How to read Slack data exports", and the reports of other readers' users.
package actor SlackSource: RecordSource {
  private let tree: ExportTree
  private let loop: LoopExecutor
  private let counter: CheckIndex
  private let layout: SlackLayout
  private var context: SlackMessage.Context
  private var skipped: SkippedCounts
  private var channels: ArraySlice<SlackLayout.Channel>
  private var days: ArraySlice<String> = []
  private var current: SlackLayout.Channel?
  private var isComplete = true
  private var pending: [Record] = []
  private var notes: [CheckIndex.Note] = []
  private var described: Set<UserID> = []
  private var hasBegun = false
  private var hasEnded = false
  /// Names in the tree of files whose bytes it holds, by digest.
  private var blobNames: [String: String] = [:]

  /// A day larger than this, in bytes, is taken in the order of its file.
  private static let largestSortedDay: Int64 = 32 << 20

  package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// `only` names the channel that is wanted, by name or identifier; nil takes all.
  ///
  /// Throws `badData` for what is no export, `notFound` when it lacks that channel.
  package init(_ path: String, only: String? = nil) throws(FerryError) {
    let tree = try ExportTree(path)
    self.tree = tree
    let layout = try SlackLayout(tree)
    self.layout = layout
    skipped = layout.skipped
    let wanted = layout.channels.filter { only == nil || $0.name == only || $0.id.rawValue == only }
    if let only, wanted.isEmpty {
      let names = layout.channels.prefix(20).map(\.name).joined(separator: ", ")
      throw FerryError(.notFound, "The export has no channel \"\(only)\". It has: \(names).")
    }
    channels = wanted[...]
    let names = Dictionary(layout.channels.map { ($0.id.rawValue, $0.name) }) { $1 }
    context = SlackMessage.Context(channel: "", people: layout.people, channels: names)
    counter = try CheckIndex()
    loop = try LoopExecutor(name: "ferry-slack")
  }

  deinit { loop.stop() }

  package func next(limit: Int) async throws(FerryError) -> [Record] {
    while pending.count < limit, !hasEnded { try await step() }
    let records = Array(pending.prefix(limit))
    pending.removeFirst(records.count)
    return records
  }

  package func blob(_ sha256: String) throws(FerryError) -> ByteStream? {
    guard let name = blobNames[sha256], let file = try tree.open(name, alone: true) else { return nil }
    let reader = UploadReader(file)
    return ByteStream(size: file.size >= 0 ? file.size : nil) { [self] () async throws(FerryError) in
      try await read(reader)
    }
  }

  private func read(_ reader: UploadReader) throws(FerryError) -> [UInt8]? { try reader.file.read(128 << 10) }

  private func step() async throws(FerryError) {
    if !hasBegun {
      hasBegun = true
      try takeUploads()
      for person in layout.people.values.sorted(by: { $0.id < $1.id }) { describe(person) }
    } else if let day = days.popFirst() {
      try await take(day)
    } else {
      try await endChannel()
      if let channel = channels.popFirst() { begin(channel) } else { try await end() }
    }
  }

  private func begin(_ channel: SlackLayout.Channel) {
    current = channel
    isComplete = true
    days = channel.days[...]
    context.channel = channel.id
    context.sharers = [:]
    pending.append(
      .channel(
        ChannelRecord(
          id: channel.id, name: channel.name, type: channel.type, topic: channel.topic, members: channel.members,
          created: channel.created)))
  }

  private func endChannel() async throws(FerryError) {
    guard let channel = current else { return }
    current = nil
    try await counter.add(notes)
    notes = []
    pending += skipped.take(channel.id)
    let count = try await counter.messages(in: channel.id)
    pending.append(.end(EndRecord(channel: channel.id, isComplete: isComplete, messages: count)))
  }

  private func end() async throws(FerryError) {
    hasEnded = true
    let orphans = try await counter.orphans()
    if orphans.count > 0 {
      skipped.add(
        "the message that a reply answers is not in the export", in: nil, at: orphans.first, count: orphans.count)
    }
    pending += skipped.take(nil)
  }

  private func describe(_ person: PersonRecord) {
    if described.insert(person.id).inserted { pending.append(.person(person)) }
  }

  // MARK: Days

  private func take(_ day: String) async throws(FerryError) {
    guard let file = try tree.open(day) else { return }
    let sorts = file.size <= Self.largestSortedDay
    var records: [(time: String, record: Record)] = []
    let elements = JSONElements(file)
    while let element = try next(elements, of: day) {
      guard let record = read(element, of: day) else { continue }
      records.append(record)
      if !sorts, records.count >= 1000 {
        flush(records, of: day)
        records = []
      }
    }
    // Times of one length sort as text; a stable order keeps what has one time as the file has it.
    if sorts { records.sort { $0.time < $1.time } }
    flush(records, of: day)
    if notes.count >= 4000 {
      try await counter.add(notes)
      notes = []
    }
  }

  /// Nil at the end of the day, or where it is broken.
  private func next(_ elements: JSONElements, of day: String) throws(FerryError) -> JSONElements.Element? {
    do throws(FerryError) { return try elements.next() } catch {
      guard error.code == .badData else { throw error }
      skipped.add("a broken file: \(error.message)", in: context.channel, at: day)
      isComplete = false
      return nil
    }
  }

  private func read(_ element: JSONElements.Element, of day: String) -> (time: String, record: Record)? {
    let bytes = SlackSecrets.removed(from: element.bytes)
    let place = "\(day): byte \(element.offset)"
    let object: [String: JSONValue]
    let isLossy: Bool
    do throws(JSONReader.Fault) {
      let read = try JSONReader.read(bytes, lenient: true)
      guard let members = read.value.object else {
        skipped.add("no object", in: context.channel, at: place)
        return nil
      }
      (object, isLossy) = (members, read.lossy)
    } catch {
      skipped.add(
        "a broken record: \(error.reason)", in: context.channel,
        at: "\(day): byte \(element.offset + Int64(error.offset))")
      isComplete = false
      return nil
    }
    switch SlackMessage.read(object, &context, isLossy: isLossy) {
    case .record(let record): return (object["ts"]?.text ?? "", record)
    case .skipped(let reason):
      skipped.add(reason, in: context.channel, at: place)
      return nil
    }
  }

  private func flush(_ records: [(time: String, record: Record)], of day: String) {
    for (_, record) in records {
      switch record {
      case .message(let message), .edit(let message):
        if let person = context.people[message.message.author.id] { describe(person) }
        if case .message = record { notes.append(CheckIndex.note(of: message)) }
        if let reply = CheckIndex.replyNote(of: message, at: day) { notes.append(reply) }
      case .join(let membership), .leave(let membership):
        if let person = context.people[membership.member.id] { describe(person) }
      default: break
      }
      pending.append(record)
    }
  }

  /// Exports by other tools bring the files' bytes along.
  private func takeUploads() throws(FerryError) {
    for (id, name) in layout.uploads.sorted(by: { tree.order(of: $0.value) < tree.order(of: $1.value) }) {
      guard let file = try tree.open(name) else { continue }
      var digest = IncrementalDigest(.sha256)
      var size: Int64 = 0
      while let piece = try file.read(256 << 10) {
        digest.update(piece)
        size += Int64(piece.count)
      }
      let sha256 = Crypto.hex(digest.finish())
      context.blobs[id] = (sha256, size)
      blobNames[sha256] = name
    }
  }
}

/// A file of the export that is being streamed.
private final class UploadReader: @unchecked Sendable {
  // @unchecked because it is read by its actor only.
  let file: OpenFile
  init(_ file: OpenFile) { self.file = file }
}
