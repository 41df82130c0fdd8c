import FerryCore
import FerryRuntime
import Glibc

/// Makes a finished archive a bag: the files around its data by which it is checked without Ferry.
///
/// Source: RFC 8493, 2.
struct BagWriter {
  let folder: String
  let header: ArchiveHeader
  /// Digests, the first segment's first.
  let segments: [String]
  let places: [String: String]

  /// Everything is there or was there before, whenever it is broken off: the checkpoint still stands.
  func write() throws(FerryError) {
    var bytes: Int64 = 0
    var files = 0
    let manifest = try ManifestFile("\(folder)/\(ArchiveLayout.manifest)")
    // The digests of segments are known, and a blob's is its name.
    var payload = try PayloadFiles(folder: folder, segments: segments)
    while let entry = try payload.next() {
      bytes += try DiskFile("\(folder)/\(entry.path)").size()
      files += 1
      try manifest.add(entry.sha256, entry.path)
    }
    var digests = [(ArchiveLayout.manifest, try manifest.finish())]
    var checkpoint = Checkpoint()
    checkpoint.places = places
    let info = [
      ("Bagging-Date", String(header.created.iso8601.prefix(10))),
      ("External-Identifier", header.id),
      ("Payload-Oxum", "\(bytes).\(files)"),
      ("Ferry-Archive-Version", header.version),
      ("Ferry-Chain-Head", segments.last ?? "none"),
    ]
    let tags = [
      (ArchiveLayout.bag, Array("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n".utf8)),
      (ArchiveLayout.bagInfo, Array(info.map { "\($0): \($1)\n" }.joined().utf8)),
      (ArchiveLayout.places, checkpoint.json()),
    ]
    for (name, contents) in tags {
      try DiskFile.replace("\(folder)/\(name)", with: contents)
      digests.append((name, Crypto.hex(Crypto.digest(.sha256, of: contents))))
    }
    let lines = digests.sorted { $0.0 < $1.0 }.map { "\($1)  \($0)\n" }.joined()
    try DiskFile.replace("\(folder)/\(ArchiveLayout.tagManifest)", with: Array(lines.utf8))
  }
}

/// The files under `data/`, one after the other: there may be very many.
struct PayloadFiles {
  private let blobFolders: [String]
  private let folder: String
  private var entries: [(path: String, sha256: String)] = []
  private var nextFolder = 0

  init(folder: String, segments: [String]) throws(FerryError) {
    self.folder = folder
    let blobs = "\(folder)/\(ArchiveLayout.blobs)"
    blobFolders = try DiskFile.names(in: blobs).filter { $0.isFolder == true }.map(\.name)
    let header = try LogScanner.digest(of: "\(folder)/\(ArchiveLayout.header)")
    entries = segments.enumerated().map { (ArchiveLayout.segment($0 + 1), $1) }.reversed()
    entries.append((ArchiveLayout.header, header))
  }

  mutating func next() throws(FerryError) -> (path: String, sha256: String)? {
    while entries.isEmpty, nextFolder < blobFolders.count {
      let names = try DiskFile.names(in: "\(folder)/\(ArchiveLayout.blobs)/\(blobFolders[nextFolder])")
      nextFolder += 1
      entries = names.filter { $0.isFolder == false && ArchiveLayout.isDigest($0.name) }.reversed().map {
        (ArchiveLayout.blob($0.name), $0.name)
      }
    }
    return entries.popLast()
  }
}

/// A manifest on its way to the disk.
final class ManifestFile {
  private let path: String
  private let file: DiskFile
  private var digest = IncrementalDigest(.sha256)
  private var buffer: [UInt8] = []

  init(_ path: String) throws(FerryError) {
    self.path = path
    file = try DiskFile(path + ".new", flags: O_WRONLY | O_CREAT | O_TRUNC)
  }

  func add(_ sha256: String, _ path: String) throws(FerryError) {
    buffer += Array("\(sha256)  \(path)\n".utf8)
    if buffer.count >= 64 << 10 { try flush() }
  }

  /// Its digest.
  func finish() throws(FerryError) -> String {
    try flush()
    try file.sync()
    guard rename(path + ".new", path) == 0 else { throw DiskFile.failure(path) }
    return Crypto.hex(digest.finish())
  }

  private func flush() throws(FerryError) {
    try file.write(buffer)
    digest.update(buffer)
    buffer.removeAll(keepingCapacity: true)
  }
}
