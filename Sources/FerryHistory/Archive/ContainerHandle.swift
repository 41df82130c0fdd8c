import CArchive
import FerryCore
import FerryRuntime
import Glibc

/// One pass over a tar or zip file. Not safe to share.
final class ContainerHandle {
  struct Header {
    /// As it stands in the file.
    let name: [UInt8]
    let size: Int64
    let position: Int64
    let isFile: Bool
    let isFolder: Bool
  }

  private let path: String
  private let library: LibArchive
  private let handle: OpaquePointer
  private let descriptor: Int32
  /// Of the entry whose bytes come next; -1 before the first.
  private(set) var ordinal = -1

  /// `position` is where an entry of a tar begins: the pass starts there.
  init(_ path: String, _ kind: Container.Kind, position: Int64 = 0) throws(FerryError) {
    self.path = path
    library = try LibArchive.loaded()
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw DiskFile.failure(path) }
    guard lseek(descriptor, off_t(position), SEEK_SET) >= 0, let handle = library.archive_read_new() else {
      close(descriptor)
      throw FerryError(.unsupported, "\(path) cannot be read at any place: name a file, not a pipe.")
    }
    self.handle = handle
    let status = Self.withUTF8Names { [library] in
      switch kind {
      case .tar: _ = library.archive_read_support_format_tar(handle)
      case .zip: _ = library.archive_read_support_format_zip_seekable(handle)
      }
      return library.archive_read_open_fd(handle, descriptor, 64 << 10)
    }
    guard status == ARCHIVE_OK else { throw failure() }
  }

  deinit {
    _ = library.archive_read_free(handle)
    close(descriptor)
  }

  /// The next entry, whatever it is; nil at the end.
  func next() throws(FerryError) -> Header? {
    var entry: OpaquePointer?
    let status = Self.withUTF8Names { library.archive_read_next_header(handle, &entry) }
    if status == ARCHIVE_EOF { return nil }
    guard status == ARCHIVE_OK || status == ARCHIVE_WARN, let entry else { throw failure() }
    ordinal += 1
    let name = Self.withUTF8Names {
      library.archive_entry_pathname(entry) ?? library.archive_entry_pathname_utf8(entry)
    }
    guard let name else { throw FerryError(.badData, "\(path) is refused: an entry in it has no name.") }
    guard library.archive_entry_is_encrypted(entry) == 0 else {
      throw FerryError(.unsupported, "\(path) is encrypted. Unpack it and name the folder.")
    }
    let kind = library.archive_entry_filetype(entry) & S_IFMT
    let isLink = library.archive_entry_hardlink(entry) != nil || library.archive_entry_symlink(entry) != nil
    return Header(
      name: Array(UnsafeRawBufferPointer(start: name, count: strlen(name))),
      size: library.archive_entry_size_is_set(entry) != 0 ? library.archive_entry_size(entry) : -1,
      position: library.archive_read_header_position(handle), isFile: kind == S_IFREG && !isLink,
      isFolder: kind == S_IFDIR && !isLink)
  }

  /// The next bytes of the entry; nil at its end.
  func read(upTo limit: Int) throws(FerryError) -> [UInt8]? {
    var count = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, initialized in
      count = library.archive_read_data(handle, buffer.baseAddress, limit)
      initialized = max(count, 0)
    }
    guard count >= 0 else { throw failure() }
    return count == 0 ? nil : bytes
  }

  private func failure() -> FerryError {
    let cause = library.archive_error_string(handle).map { String(cString: $0) }
    return FerryError(.badData, "\(path) is damaged or was cut off: it cannot be read to its end.", cause: cause)
  }

  private struct Locale: @unchecked Sendable {
    // @unchecked because it is made once, and nobody changes or frees it.
    let handle = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)
  }

  private static let utf8Locale = Locale()

  /// libarchive converts names to the thread's character set. With UTF-8 it leaves them as they are.
  static func withUTF8Names<T>(_ body: () -> T) -> T {
    let before = uselocale(utf8Locale.handle)
    defer { uselocale(before) }
    return body()
  }
}
