import FerryCore
import Glibc

/// libarchive, loaded when the first tar or zip is met: it brings ICU along, which every command would else start with.
///
/// The members are its functions, under their own names. Source: archive(3), archive_entry(3).
struct LibArchive: Sendable {
  typealias Pointer = OpaquePointer?
  typealias Action = @convention(c) (Pointer) -> Int32
  typealias Maker = @convention(c) () -> Pointer
  typealias Text = @convention(c) (Pointer) -> UnsafePointer<CChar>?
  typealias Number = @convention(c) (Pointer) -> Int64

  let archive_read_new: Maker
  let archive_read_free: Action
  let archive_read_support_format_tar: Action
  let archive_read_support_format_zip_seekable: Action
  let archive_read_open_fd: @convention(c) (Pointer, Int32, Int) -> Int32
  let archive_read_next_header: @convention(c) (Pointer, UnsafeMutablePointer<OpaquePointer?>) -> Int32
  let archive_read_data: @convention(c) (Pointer, UnsafeMutableRawPointer?, Int) -> Int
  let archive_read_header_position: Number
  let archive_error_string: Text
  let archive_errno: Action

  let archive_entry_new: Maker
  let archive_entry_free: @convention(c) (Pointer) -> Void
  let archive_entry_pathname: Text
  let archive_entry_pathname_utf8: Text
  let archive_entry_hardlink: Text
  let archive_entry_symlink: Text
  let archive_entry_is_encrypted: Action
  let archive_entry_filetype: @convention(c) (Pointer) -> UInt32
  let archive_entry_size_is_set: Action
  let archive_entry_size: Number
  let archive_entry_set_pathname: @convention(c) (Pointer, UnsafePointer<CChar>) -> Void
  let archive_entry_set_size: @convention(c) (Pointer, Int64) -> Void
  let archive_entry_set_filetype: @convention(c) (Pointer, UInt32) -> Void
  let archive_entry_set_perm: @convention(c) (Pointer, UInt32) -> Void
  let archive_entry_set_mtime: @convention(c) (Pointer, Int, Int) -> Void

  let archive_write_new: Maker
  let archive_write_free: Action
  let archive_write_set_format_pax_restricted: Action
  let archive_write_set_format_zip: Action
  let archive_write_open_fd: @convention(c) (Pointer, Int32) -> Int32
  let archive_write_header: @convention(c) (Pointer, Pointer) -> Int32
  let archive_write_data: @convention(c) (Pointer, UnsafeRawPointer?, Int) -> Int
  let archive_write_close: Action

  private static let shared: Result<LibArchive, FerryError> = {
    do throws(FerryError) { return .success(try LibArchive()) } catch { return .failure(error) }
  }()

  /// Throws `unsupported` where the library is not installed.
  static func loaded() throws(FerryError) -> LibArchive { try shared.get() }

  private init() throws(FerryError) {
    // The number is that of its binary interface, the same since 2011. It is never let go of.
    guard let library = dlopen("libarchive.so.13", RTLD_NOW | RTLD_LOCAL) else {
      throw FerryError(
        .unsupported, "Tar and zip files need libarchive. Install the package libarchive13, or name a folder.",
        cause: dlerror().map { String(cString: $0) })
    }
    func function<T>(_ name: String, _: T.Type = T.self) throws(FerryError) -> T {
      guard let symbol = dlsym(library, name) else {
        throw FerryError(.unsupported, "The libarchive of this system has no \(name). Install a newer one.")
      }
      return unsafeBitCast(symbol, to: T.self)
    }
    archive_read_new = try function("archive_read_new")
    archive_read_free = try function("archive_read_free")
    archive_read_support_format_tar = try function("archive_read_support_format_tar")
    archive_read_support_format_zip_seekable = try function("archive_read_support_format_zip_seekable")
    archive_read_open_fd = try function("archive_read_open_fd")
    archive_read_next_header = try function("archive_read_next_header")
    archive_read_data = try function("archive_read_data")
    archive_read_header_position = try function("archive_read_header_position")
    archive_error_string = try function("archive_error_string")
    archive_errno = try function("archive_errno")
    archive_entry_new = try function("archive_entry_new")
    archive_entry_free = try function("archive_entry_free")
    archive_entry_pathname = try function("archive_entry_pathname")
    archive_entry_pathname_utf8 = try function("archive_entry_pathname_utf8")
    archive_entry_hardlink = try function("archive_entry_hardlink")
    archive_entry_symlink = try function("archive_entry_symlink")
    archive_entry_is_encrypted = try function("archive_entry_is_encrypted")
    archive_entry_filetype = try function("archive_entry_filetype")
    archive_entry_size_is_set = try function("archive_entry_size_is_set")
    archive_entry_size = try function("archive_entry_size")
    archive_entry_set_pathname = try function("archive_entry_set_pathname")
    archive_entry_set_size = try function("archive_entry_set_size")
    archive_entry_set_filetype = try function("archive_entry_set_filetype")
    archive_entry_set_perm = try function("archive_entry_set_perm")
    archive_entry_set_mtime = try function("archive_entry_set_mtime")
    archive_write_new = try function("archive_write_new")
    archive_write_free = try function("archive_write_free")
    archive_write_set_format_pax_restricted = try function("archive_write_set_format_pax_restricted")
    archive_write_set_format_zip = try function("archive_write_set_format_zip")
    archive_write_open_fd = try function("archive_write_open_fd")
    archive_write_header = try function("archive_write_header")
    archive_write_data = try function("archive_write_data")
    archive_write_close = try function("archive_write_close")
  }
}
