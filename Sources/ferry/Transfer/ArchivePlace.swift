import FerryCore
import FerryHistory

/// Where an archive is written: a folder, or one file that is made from a folder among the work files: a tar, or another
/// service's format. That folder stays, so that the next export can add to it.
struct ArchivePlace: Sendable {
  private let path: String
  private let work: String?
  private let isSlack: Bool

  init(_ path: String, in folder: WorkFolder, _ arguments: Arguments) throws {
    self.path = path
    let format = arguments["format"] ?? "archive"
    guard ["archive", "slack"].contains(format) else { throw arguments.fail("--format is archive or slack") }
    isSlack = format == "slack"
    if !isSlack, path.lowercased().hasSuffix(".zip") {
      throw arguments.fail("an archive is a folder or a .tar; for Slack's export as a zip say --format slack")
    }
    work = isSlack || path.lowercased().hasSuffix(".tar") ? folder.path + "/archive" : nil
  }

  func open(_ header: ArchiveHeader) throws(FerryError) -> ArchiveWriter {
    let writer = try ArchiveWriter(folder: work ?? path, header: header)
    guard writer.header.since == header.since, writer.header.until == header.until else {
      throw FerryError(
        .badRequest,
        "\(path) was begun with another --since or --until. Use the same ones to add to it, or write a new archive.")
    }
    return writer
  }

  /// Once the archive is finished.
  func close() async throws(FerryError) {
    guard let work else { return }
    if isSlack {
      _ = try await SlackExport.write(try await FoldedRecords(work), to: path)
    } else {
      try await ArchiveTar.pack(work, into: path)
    }
  }
}
