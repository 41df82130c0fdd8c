/// A zip file without compression, written byte by byte so that its flags can be wrong.
///
/// Source: APPNOTE.TXT (PKWARE), 4.3.
enum ZipFixture {
  struct Entry {
    var name: [UInt8]
    var bytes: [UInt8]
    /// Bit 11: the name is UTF-8.
    var isFlagged: Bool

    init(_ name: String, _ text: String, isFlagged: Bool = false) {
      self.name = Array(name.utf8)
      bytes = Array(text.utf8)
      self.isFlagged = isFlagged
    }
  }

  static func zip(_ entries: [Entry]) -> [UInt8] {
    var file: [UInt8] = []
    var directory: [UInt8] = []
    for entry in entries {
      let offset = file.count
      let common =
        little(entry.isFlagged ? 0x800 : 0, 2) + little(0, 2) + little(0, 4) + little(Int(crc32(entry.bytes)), 4)
        + little(entry.bytes.count, 4) + little(entry.bytes.count, 4) + little(entry.name.count, 2)
      file += [0x50, 0x4b, 3, 4] + little(20, 2) + common + little(0, 2) + entry.name + entry.bytes
      directory += [0x50, 0x4b, 1, 2] + little(20, 2) + little(20, 2) + common + little(0, 2) + little(0, 2)
      directory += little(0, 2) + little(0, 2) + little(0, 4) + little(offset, 4) + entry.name
    }
    let end =
      little(0, 2) + little(0, 2) + little(entries.count, 2) + little(entries.count, 2) + little(directory.count, 4)
    return file + directory + [0x50, 0x4b, 5, 6] + end + little(file.count, 4) + little(0, 2)
  }

  private static func little(_ number: Int, _ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
  }

  private static func crc32(_ bytes: [UInt8]) -> UInt32 {
    var crc: UInt32 = 0xffff_ffff
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
    }
    return ~crc
  }
}
