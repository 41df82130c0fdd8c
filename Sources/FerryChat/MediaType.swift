/// Images by their first bytes: what a browser may be told to show, whatever the uploader called it.
enum ImageType {
  /// How many bytes `of` and `ImageSize.of` want to see: the size of a JPEG comes after its thumbnails and profiles.
  static let headLength = 256 * 1024

  /// Nil for everything that is not a PNG, JPEG, GIF or WebP.
  /// Source: https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern
  static func of(_ head: [UInt8]) -> String? {
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return "image/png" }
    if head.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
    if head.starts(with: Array("GIF87a".utf8)) || head.starts(with: Array("GIF89a".utf8)) { return "image/gif" }
    if head.starts(with: Array("RIFF".utf8)), head.dropFirst(8).starts(with: Array("WEBPVP".utf8)) {
      return "image/webp"
    }
    return nil
  }
}

enum MediaType {
  static let unknown = "application/octet-stream"

  /// A declared type in lower case without parameters; `unknown` for what is no type, and for an image that its
  /// bytes have not confirmed.
  static func declared(_ text: String) -> String {
    let type = text.prefix { $0 != ";" }.lowercased().filter { $0 != " " }
    let parts = type.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy(isTokenByte) }) else {
      return unknown
    }
    return ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(type) ? unknown : type
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
    case UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
    default: false
    }
  }
}

enum FileName {
  /// The last component of what may be a path of either kind of system, without control characters; never empty.
  static func plain(_ name: String) -> String {
    let last = name.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last ?? ""
    let plain = String(String.UnicodeScalarView(last.unicodeScalars.filter { $0.value >= 0x20 && $0.value != 0x7f }))
    return plain.isEmpty || plain == "." || plain == ".." ? "file" : plain
  }
}
