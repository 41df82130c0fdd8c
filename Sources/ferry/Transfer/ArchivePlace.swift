import FerryCore
import FerryHistory

/// Where an archive is written: a folder, or one file that is packed from a folder among the work files. That folder stays,
/// so that the next export can add to it.
struct ArchivePlace: Sendable {
  private let path: String
  private let work: String?

  init(_ path: String, in folder: WorkFolder) {
    self.path = path
    work = path.lowercased().hasSuffix(".tar") ? folder.path + "/archive" : nil
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
    if let work { try await ArchiveTar.pack(work, into: path) }
  }
}
