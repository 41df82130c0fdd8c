import FerryCore
import FerryHistory
import FerryRuntime

/// Takes a channel's past into an archive: all of `ferry export`, and of `ferry migrate` the part that keeps what was read.
struct ArchiveExport: Sendable {
  let history: any ChannelHistory
  let address: Address
  /// Where the history is, as given but without credentials.
  let name: String
  let settings: Exporter.Settings
  let folder: WorkFolder
  let place: ArchivePlace

  /// `members` are asked for once the account has answered. Returns the head of the chain.
  @discardableResult
  func run(
    _ report: TransferReport, _ progress: TransferProgress, _ patience: Patience,
    members: () async -> [Author]? = { nil }
  ) async throws(FerryError) -> String? {
    let history = history
    let beginning = try await Exporter.begin(history, at: place.place(of: history.channel), patience)
    let book = history.goesOn ? nil : try await folder.book("export", name, orEarlier: place.earlierBook)
    defer { book?.close() }
    if let book { try await beginning.check(book, of: history.channel) }
    let scope = history.scope
    let header = ArchiveHeader(
      created: SystemClock().now(), tool: "ferry \(Version.current)", source: address.description, since: scope.since,
      until: scope.until, include: (scope.reads ? ["reads"] : []) + (scope.avatars ? ["avatars"] : []))
    var exporter = Exporter(
      settings, of: history, into: try place.open(header), book: book, report: report, progress: progress,
      patience: patience)
    let head = try await exporter.run(from: beginning, members: await members())
    try await place.close(report)
    return head
  }
}
