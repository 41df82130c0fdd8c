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
    try ArchiveWriter(folder: work ?? path, header: header)
  }

  /// Once the archive is finished.
  func close() async throws(FerryError) {
    if let work { try await ArchiveTar.pack(work, into: path) }
  }
}
