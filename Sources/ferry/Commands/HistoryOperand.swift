import FerryConfig
import FerryCore
import FerryHistory
import FerryRuntime
import Glibc

/// Something with a history in it, as the command line names it: an address, an archive, a file of another format.
struct HistoryOperand: Sendable {
  static let options: [Command.Option] = [
    .init("format", "NAME", "what files are: archive, jsonl, slack (found out by itself)"),
    .init("fields", "MAP", "which members of JSON Lines mean what: time=ts,author=user,..."),
  ]

  /// As given, without credentials.
  let name: String
  /// Where it is, or was taken from.
  let address: Address?
  /// Nil for archives and files.
  let provider: (any ChatProvider)?
  private let file: HistoryFile?

  init(_ text: String, _ arguments: Arguments) async throws {
    name = Ends.plain(text)
    if !text.contains("://"), DiskFile.exists(text) {
      let file = try HistoryFile(text, arguments)
      self.file = file
      provider = nil
      address = file.source
    } else {
      guard text.contains("://") || Address(text) != nil else {
        throw arguments.fail("there is no file \"\(text)\", and it is no address: write account:channel or a URL")
      }
      let (provider, address, _) = try Session.open(text, arguments)
      file = nil
      self.provider = provider
      self.address = address
    }
  }

  /// What it can hold; nil where it can hold everything.
  var capabilities: Capabilities? { provider?.capabilities }

  func records(
    _ scope: HistoryScope, readsFiles: Bool, patience: Patience = Patience()
  ) async throws -> any RecordSource {
    if let file { return try file.open() }
    guard let provider, let address else { throw FerryError(.internal, "\(name) is neither a file nor an address.") }
    return ChannelRecords(
      try AccountHistory(provider, address, scope), patience: patience, readsFiles: readsFiles)
  }

  func side(_ arguments: Arguments, _ people: People) async throws -> VerifySide {
    let records = try await records(
      HistoryScope(reads: arguments.has("reads")), readsFiles: !arguments.has("no-attachments"))
    let account = address?.account
    var side = VerifySide(name, records, address: address, capabilities: capabilities) { author in
      people.name(of: author, at: account)
    }
    side.hasLastingIDs = file.map { $0.format == .archive } ?? true
    return side
  }
}

/// Lines written one after the other to a new file.
final class LineFile {
  private let file: DiskFile
  private var buffer: [UInt8] = []

  init(_ path: String) throws(FerryError) {
    file = try DiskFile(path, flags: O_WRONLY | O_CREAT | O_TRUNC, followsLinks: true) { path in
      FerryError(.storage, "\(path) cannot be written: \(String(cString: strerror(errno))).")
    }
    buffer.reserveCapacity(1 << 16)
  }

  func write(_ line: String) throws(FerryError) {
    buffer.append(contentsOf: line.utf8)
    buffer.append(0x0a)
    if buffer.count >= 1 << 16 { try flush() }
  }

  func close() throws(FerryError) { try flush() }

  private func flush() throws(FerryError) {
    try file.write(buffer)
    buffer.removeAll(keepingCapacity: true)
  }
}
