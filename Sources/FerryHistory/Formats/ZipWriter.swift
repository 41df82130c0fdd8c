import CArchive
import FerryCore
import FerryRuntime
import Glibc

/// Packs a folder into a zip file through libarchive, with the names in order.
enum ZipWriter {
  /// `path` appears when it is whole.
  static func pack(_ folder: String, into path: String) throws(FerryError) {
    let temporary = path + ".zip-part"
    var isWhole = false
    defer { if !isWhole { unlink(temporary) } }
    let file = try DiskFile(temporary, flags: O_RDWR | O_CREAT | O_TRUNC)
    let writer = try PackedFile(temporary, .zip)
    let tree = try ExportTree(folder)
    for name in tree.names {
      guard let source = try tree.open(name) else { continue }
      try writer.add(name, source, time: Timestamp(milliseconds: 315_532_800_000))
    }
    try writer.finish()
    try file.sync()
    guard rename(temporary, path) == 0 else { throw DiskFile.failure(path) }
    isWhole = true
  }
}
