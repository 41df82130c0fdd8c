package import FerryCore
import FerryRuntime
import Glibc

/// Checks an archive: that it is what was written, and whole.
///
/// Source: the page "The archive format" in this target's catalog.
package struct ArchiveCheck: Sendable {
  /// What was found.
  package struct Report: Hashable, Sendable {
    package var header: ArchiveHeader
    /// Lines of each kind.
    package var records: [String: Int] = [:]
    /// Different messages.
    package var messages = 0
    package var segments = 0
    package var blobs = 0
    package var blobBytes: Int64 = 0
    /// The digest of the last sealed segment. Kept elsewhere it shows that nothing was cut off.
    package var chainHead: String?
    /// It was not finished: more may be added, and there are no manifests to check.
    package var isOpen = false
    /// Every channel was taken to its end.
    package var isComplete = false
    /// Fields and kinds that this version does not know, and kept.
    package var unknown = 0
    /// What is not wrong and yet worth knowing.
    package var notes: [String] = []
    /// What is wrong, with its place, the first first; nil when all is well.
    package var fault: String?

    /// 0 when all is well and complete, else 65 (bad data).
    package var exitCode: Int32 { fault == nil && isComplete ? 0 : 65 }
  }

  /// Reads everything once. Throws only for what is no archive or cannot be read at all; what is wrong in one is in the
  /// report. Takes its time, on a thread of its own.
  package static func run(_ path: String) async throws(FerryError) -> Report {
    let files = try ArchiveFiles(path)
    var report = Report(header: try files.header())
    report.isOpen = files.contains(ArchiveLayout.checkpoint)
    let worker = try CheckWorker(files)
    do throws(FerryError) {
      try await worker.log(&report)
      if report.isOpen {
        report.notes.append("The archive is open: its manifests are written when it is finished.")
      } else {
        try await worker.manifests(&report)
      }
      try await worker.references(&report)
    } catch {
      guard error.code == .badData || error.code == .notFound else { throw error }
      report.fault = error.message
      report.isComplete = false
    }
    return report
  }
}

/// The steps of a check.
private actor CheckWorker {
  private let files: ArchiveFiles
  private let index: CheckIndex
  private let loop: LoopExecutor
  private var channels: [ChannelID: EndRecord?] = [:]

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(_ files: ArchiveFiles) throws(FerryError) {
    self.files = files
    index = try CheckIndex()
    loop = try LoopExecutor(name: "ferry-check")
  }

  deinit { loop.stop() }

  /// Step 1: lines, numbers, seals and the chain. On the way the rest is noted.
  func log(_ report: inout ArchiveCheck.Report) async throws(FerryError) {
    let scanner = try LogScanner(files)
    var group: [CheckIndex.Note] = []
    while let line = try scanner.next() {
      guard let record = line.record else {
        if line.place.line == 1 { report.segments += 1 }
        continue
      }
      report.records[record.kind, default: 0] += 1
      report.unknown += Self.unknownFields(record)
      if let channel = record.channel {
        if case .end(let end) = record {
          channels[channel] = end
        } else if channels[channel] == nil {
          channels[channel] = .some(nil)
        }
      }
      group += CheckIndex.notes(record, at: line)
      if group.count >= 4000 {
        try await index.add(group)
        group = []
      }
    }
    try await index.add(group)
    report.chainHead = scanner.chainHead
  }

  private static func unknownFields(_ record: Record) -> Int {
    switch record {
    case .unknown: 1
    case .message(let record), .edit(let record):
      record.extra.count + record.files.reduce(0) { $0 + $1.extra.count }
        + record.reactions.reduce(0) { $0 + $1.extra.count }
    case .channel(let record): record.extra.count
    case .person(let record): record.extra.count
    case .delete(let record): record.extra.count
    case .reaction(let record): record.extra.count
    case .join(let record), .leave(let record): record.extra.count
    case .read(let record): record.extra.count
    case .gap(let record): record.extra.count
    case .skipped(let record): record.extra.count
    case .end(let record): record.extra.count
    }
  }

  /// Step 2: the digests of all files, and that there is no other file.
  func manifests(_ report: inout ArchiveCheck.Report) throws(FerryError) {
    var listed: Set<String> = []
    try check(ArchiveLayout.tagManifest) { name throws(FerryError) in
      guard !name.hasPrefix("data/") else { throw FerryError(.badData, "\(name) is no tag file.") }
    }
    try check(ArchiveLayout.manifest) { name throws(FerryError) in
      guard name.hasPrefix("data/"), listed.insert(name).inserted else {
        throw FerryError(.badData, "\(name) is listed twice or lies outside data/.")
      }
    }
    for name in try files.names() where name.hasPrefix("data/") && !listed.contains(name) {
      throw FerryError(.badData, "\(name): The file is not in \(ArchiveLayout.manifest).")
    }
    let info = String(decoding: try files.contents(of: ArchiveLayout.bagInfo, limit: 1 << 20) ?? [], as: UTF8.self)
    let head = info.split(separator: "\n").first { $0.hasPrefix("Ferry-Chain-Head: ") }?.dropFirst(18)
    guard head.map(String.init) == report.chainHead ?? "none" else {
      throw FerryError(
        .badData,
        "\(ArchiveLayout.bagInfo): Ferry-Chain-Head is not the digest of the last segment: the end is missing.")
    }
  }

  private func check(_ manifest: String, _ accept: (String) throws(FerryError) -> Void) throws(FerryError) {
    guard let file = try files.open(manifest) else { throw FerryError(.badData, "\(manifest): The file is missing.") }
    let reader = LineReader(file)
    while let line = try reader.next() {
      let text = String(decoding: line.bytes, as: UTF8.self)
      let sha256 = String(text.prefix(64))
      let name = String(text.dropFirst(64).drop { $0 == " " })
      do throws(FerryError) {
        guard ArchiveLayout.isDigest(sha256), !name.isEmpty, !name.hasPrefix("/"), !name.contains("..") else {
          throw FerryError(.badData, "This is no line of a manifest.")
        }
        try accept(name)
      } catch { throw FerryError(.badData, "\(manifest), line \(reader.count): \(error.message)") }
      guard let digest = try digest(of: name) else { throw FerryError(.badData, "\(name): The file is missing.") }
      guard digest == sha256 else {
        throw FerryError(.badData, "\(name): The file was changed: \(manifest) has another digest.")
      }
    }
  }

  private func digest(of name: String) throws(FerryError) -> String? {
    guard let file = try files.open(name) else { return nil }
    var digest = IncrementalDigest(.sha256)
    while let piece = try file.read(1 << 20) { digest.update(piece) }
    return Crypto.hex(digest.finish())
  }

  /// Steps 3 and 4: what records refer to, and what they count.
  func references(_ report: inout ArchiveCheck.Report) async throws(FerryError) {
    let blobs = try await index.blobs()
    for blob in blobs {
      let name = ArchiveLayout.blob(blob.sha256)
      guard let file = try files.open(name) else { throw FerryError(.badData, "\(blob.place): \(name) is missing.") }
      guard blob.size < 0 || blob.size == file.size else {
        throw FerryError(.badData, "\(blob.place): \(name) has \(file.size) bytes and not \(blob.size).")
      }
      // A finished archive's digests were compared with the manifest already.
      if report.isOpen, try digest(of: name) != blob.sha256 {
        throw FerryError(.badData, "\(name): The file was changed: its name is not its digest.")
      }
      report.blobs += 1
      report.blobBytes += file.size
    }
    let orphans = try await index.orphans()
    if orphans.count > 0 {
      report.notes.append(
        "\(orphans.count) messages that are answered are not in the archive; the first answer is at \(orphans.first).")
    }
    let strangers = try await index.strangers()
    if strangers.count > 0 {
      report.notes.append("\(strangers.count) authors are not described, the first at \(strangers.first).")
    }
    report.messages = try await index.messages()
    report.isComplete = !channels.isEmpty
    for (channel, end) in channels.sorted(by: { $0.key < $1.key }) {
      guard let end else {
        report.notes.append("The channel \(channel) was not taken to its end.")
        report.isComplete = false
        continue
      }
      let count = try await index.messages(in: channel)
      guard count == end.messages else {
        throw FerryError(
          .badData, "The channel \(channel) has \(count) messages; its end says \(end.messages).")
      }
      if !end.isComplete {
        report.notes.append("The source has more of the channel \(channel).")
        report.isComplete = false
      }
    }
    if report.unknown > 0 {
      report.notes.append("\(report.unknown) fields or records are of a newer version, and were kept.")
    }
  }
}
