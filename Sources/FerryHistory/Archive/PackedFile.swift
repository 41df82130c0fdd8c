import CArchive
import FerryCore
import FerryRuntime
import Glibc

/// A tar or zip being written through libarchive. Not safe to share.
final class PackedFile {
  private let path: String
  private let library: LibArchive
  private let handle: OpaquePointer
  private let descriptor: Int32

  /// Writes a file that is there and empty.
  init(_ path: String, _ kind: Container.Kind) throws(FerryError) {
    self.path = path
    library = try LibArchive.loaded()
    descriptor = open(path, O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0, let handle = library.archive_write_new() else { throw DiskFile.failure(path) }
    self.handle = handle
    switch kind {
    // Old headers, and the modern ones only where a name or size needs them.
    case .tar: _ = library.archive_write_set_format_pax_restricted(handle)
    case .zip: _ = library.archive_write_set_format_zip(handle)
    }
    guard library.archive_write_open_fd(handle, descriptor) == ARCHIVE_OK else { throw failure() }
  }

  deinit {
    _ = library.archive_write_free(handle)
    close(descriptor)
  }

  func add(_ name: String, _ source: OpenFile, time: Timestamp) throws(FerryError) {
    guard let entry = library.archive_entry_new() else { throw failure() }
    defer { library.archive_entry_free(entry) }
    ContainerHandle.withUTF8Names { library.archive_entry_set_pathname(entry, name) }
    library.archive_entry_set_size(entry, source.size)
    library.archive_entry_set_filetype(entry, UInt32(Glibc.S_IFREG))
    library.archive_entry_set_perm(entry, 0o644)
    library.archive_entry_set_mtime(entry, time_t(time.milliseconds / 1000), 0)
    let status = ContainerHandle.withUTF8Names { library.archive_write_header(handle, entry) }
    guard status == ARCHIVE_OK else { throw failure() }
    var size: Int64 = 0
    while let piece = try source.read(256 << 10) {
      guard library.archive_write_data(handle, piece, piece.count) == piece.count else { throw failure() }
      size += Int64(piece.count)
    }
    guard size == source.size else { throw FerryError(.conflict, "\(name) was changed while it was packed.") }
  }

  func finish() throws(FerryError) {
    guard library.archive_write_close(handle) == ARCHIVE_OK else { throw failure() }
  }

  private func failure() -> FerryError {
    let cause = library.archive_error_string(handle).map { String(cString: $0) }
    let isFull = library.archive_errno(handle) == ENOSPC
    return FerryError(
      .storage, isFull ? "The disk is full: \(path) cannot be written." : "\(path) cannot be written.", retry: .now,
      cause: cause)
  }
}
