/// Takes out of an image what tells where and by whom it was made, while it streams through: EXIF, XMP, IPTC, comments
/// and texts. Pixels, colour profile and orientation stay.
///
/// An image that is not built as its kind should be is refused rather than let through.
struct ImageStripper: Sendable {
  private enum Kind: Sendable {
    case jpeg(JPEGStripper)
    case png(PNGStripper)
    case webp(WebPStripper)
    case other
  }

  private var kind: Kind

  /// `mediaType` is what the first bytes prove; nil for other files, which pass unchanged.
  init(_ mediaType: String?) {
    switch mediaType {
    case "image/jpeg": kind = .jpeg(JPEGStripper())
    case "image/png": kind = .png(PNGStripper())
    case "image/webp": kind = .webp(WebPStripper())
    default: kind = .other
    }
  }

  /// What is left of the next bytes; nil when this is not the image that it seemed to be.
  mutating func feed(_ bytes: [UInt8]) -> [UInt8]? {
    switch kind {
    case .jpeg(var stripper):
      kind = .other  // Moved out, so that its buffer is not copied.
      defer { kind = .jpeg(stripper) }
      return stripper.feed(bytes)
    case .png(var stripper):
      kind = .other
      defer { kind = .png(stripper) }
      return stripper.feed(bytes)
    case .webp(var stripper):
      kind = .other
      defer { kind = .webp(stripper) }
      return stripper.feed(bytes)
    case .other: return bytes
    }
  }

  /// What is left at the end; nil when the image ended too early.
  mutating func finish() -> [UInt8]? {
    switch kind {
    case .jpeg(let stripper): stripper.finish()
    case .png(let stripper): stripper.isWhole ? [] : nil
    case .webp(let stripper): stripper.isWhole ? [] : nil
    case .other: []
    }
  }
}

/// Bytes that have come and are not dealt with, read from the front.
struct ByteQueue: Sendable {
  private var bytes: [UInt8] = []
  private var head = 0

  var count: Int { bytes.count - head }

  mutating func append(_ more: [UInt8]) {
    if head > 0 {
      bytes.removeFirst(head)
      head = 0
    }
    bytes += more
  }

  /// Must be below `count`.
  subscript(index: Int) -> UInt8 { bytes[head + index] }

  mutating func take(_ number: Int) -> ArraySlice<UInt8> {
    let end = head + min(number, count)
    defer { head = end }
    return bytes[head..<end]
  }

  /// How many bytes come before the first of this value; nil when there is none.
  func distance(to byte: UInt8) -> Int? { bytes[head...].firstIndex(of: byte).map { $0 - head } }

  func bigEndian(at index: Int, bytes number: Int) -> Int {
    (0..<number).reduce(0) { $0 << 8 | Int(self[index + $1]) }
  }

  func littleEndian(at index: Int, bytes number: Int) -> Int {
    (0..<number).reversed().reduce(0) { $0 << 8 | Int(self[index + $1]) }
  }
}

/// Source: ISO/IEC 10918-1 annex B for the markers, CIPA DC-008 (Exif) 4.5 and 4.6 for the orientation.
struct JPEGStripper: Sendable {
  private enum State: Sendable {
    case start, marker, segment(length: Int), copy(Int), scan, done
  }

  private var state = State.start
  private var input = ByteQueue()

  mutating func feed(_ bytes: [UInt8]) -> [UInt8]? {
    input.append(bytes)
    var output: [UInt8] = []
    while true {
      switch state {
      case .start:
        guard input.count >= 2 else { return output }
        guard input.bigEndian(at: 0, bytes: 2) == 0xffd8 else { return nil }
        output += input.take(2)
        state = .marker
      case .marker:
        guard input.count >= 2 else { return output }
        guard input[0] == 0xff else { return nil }
        guard let next = marker(input[1], &output) else { return output }
        state = next
      case .segment(let length):
        guard input.count >= length else { return output }
        let segment = Array(input.take(length))
        if Self.isKept(segment) { output += segment } else { output += Self.orientation(of: segment) }
        state = .marker
      case .copy(let left):
        guard input.count > 0 else { return output }
        let piece = input.take(left)
        output += piece
        state = piece.count < left ? .copy(left - piece.count) : .scan
      case .scan:
        guard let distance = input.distance(to: 0xff) else {
          output += input.take(input.count)
          return output
        }
        output += input.take(distance)
        guard input.count >= 2 else { return output }
        switch input[1] {
        case 0x00, 0xd0...0xd7: output += input.take(2)
        case 0xff: output += input.take(1)
        default: state = .marker
        }
      // Whatever follows the image is not shown, and may be another one with its own place.
      case .done:
        _ = input.take(input.count)
        return output
      }
    }
  }

  /// Many cameras and programs leave out the end marker.
  func finish() -> [UInt8]? {
    switch state {
    case .done: []
    case .scan: Array(repeating: 0xff, count: input.count)
    case .start, .marker, .segment, .copy: nil
    }
  }

  /// Nil when more bytes are needed.
  private mutating func marker(_ marker: UInt8, _ output: inout [UInt8]) -> State? {
    switch marker {
    case 0xff:
      _ = input.take(1)
      return .marker
    case 0x01, 0xd0...0xd8:
      output += input.take(2)
      return .marker
    case 0xd9:
      output += input.take(2)
      return .done
    default:
      guard input.count >= 4 else { return nil }
      let length = input.bigEndian(at: 2, bytes: 2) + 2
      // A scan's header is followed by its data.
      return marker == 0xda ? .copy(length) : .segment(length: max(length, 4))
    }
  }

  private static func isKept(_ segment: [UInt8]) -> Bool {
    switch segment[1] {
    case 0xe0, 0xee: true
    case 0xe2: segment.dropFirst(4).starts(with: Array("ICC_PROFILE\0".utf8))
    case 0xe1, 0xe3...0xed, 0xef, 0xfe: false
    default: true
    }
  }

  /// A segment that says nothing but how the image is to be turned, when the one taken out did.
  private static func orientation(of segment: [UInt8]) -> [UInt8] {
    let exif = Array("Exif\0\0".utf8)
    guard segment[1] == 0xe1, segment.dropFirst(4).starts(with: exif) else { return [] }
    let tiff = Array(segment.dropFirst(4 + exif.count))
    func number(_ index: Int, _ count: Int) -> Int? {
      guard index >= 0, index <= tiff.count - count else { return nil }
      let bytes = tiff[index..<index + count]
      return (tiff[0] == 0x49 ? Array(bytes.reversed()) : Array(bytes)).reduce(0) { $0 << 8 | Int($1) }
    }
    guard tiff.count > 8, let directory = number(4, 4), let entries = number(directory, 2) else { return [] }
    for entry in 0..<entries {
      let place = directory + 2 + entry * 12
      guard let tag = number(place, 2), let value = number(place + 8, 2) else { return [] }
      guard tag == 0x0112, (2...8).contains(value) else { continue }
      let header: [UInt8] = [0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1]
      let field: [UInt8] = [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, UInt8(value), 0, 0, 0, 0, 0, 0]
      let payload = exif + header + field
      return [0xff, 0xe1, 0, UInt8(payload.count + 2)] + payload
    }
    return []
  }
}

/// Source: https://www.w3.org/TR/png-3/#5Chunk-layout
struct PNGStripper: Sendable {
  private static let texts: Set<[UInt8]> = Set(["eXIf", "iTXt", "tEXt", "zTXt"].map { Array($0.utf8) })

  private var input = ByteQueue()
  private var hasStarted = false
  private var left = 0
  private var isSkipping = false
  private var isLast = false
  private(set) var isWhole = false

  mutating func feed(_ bytes: [UInt8]) -> [UInt8]? {
    input.append(bytes)
    var output: [UInt8] = []
    while true {
      if isWhole {
        _ = input.take(input.count)
        return output
      }
      if left > 0 {
        guard input.count > 0 else { return output }
        let piece = input.take(left)
        left -= piece.count
        if !isSkipping { output += piece }
        isWhole = isLast && left == 0
        continue
      }
      guard input.count >= 8 else { return output }
      if !hasStarted {
        output += input.take(8)
        hasStarted = true
        continue
      }
      let length = input.bigEndian(at: 0, bytes: 4)
      let type = (4..<8).map { input[$0] }
      guard length < 1 << 31, type.allSatisfy({ (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) }) else {
        return nil
      }
      left = length + 12
      isSkipping = Self.texts.contains(type)
      isLast = type == Array("IEND".utf8)
    }
  }
}

/// The size of the whole stands at the front, so what is taken out is overwritten: its name and all its bytes.
///
/// Source: https://developers.google.com/speed/webp/docs/riff_container
struct WebPStripper: Sendable {
  private enum Treatment: Sendable { case copy, blank }

  private var input = ByteQueue()
  private var hasStarted = false
  /// Of the chunk, and of all.
  private var left = 0
  private var total = 0
  private var treatment = Treatment.copy

  var isWhole: Bool { hasStarted && total == 0 && left == 0 }

  mutating func feed(_ bytes: [UInt8]) -> [UInt8]? {
    input.append(bytes)
    var output: [UInt8] = []
    while true {
      if left > 0 {
        guard input.count > 0 else { return output }
        let piece = input.take(left)
        left -= piece.count
        if treatment == .copy { output += piece } else { output += [UInt8](repeating: 0, count: piece.count) }
        continue
      }
      if !hasStarted {
        guard input.count >= 12 else { return output }
        total = input.littleEndian(at: 4, bytes: 4) - 4
        guard total >= 0 else { return nil }
        output += input.take(12)
        hasStarted = true
        continue
      }
      guard total > 0 else {
        _ = input.take(input.count)
        return output
      }
      guard input.count >= 9 else { return input.count + 1 < total ? output : nil }
      guard let header = chunk() else { return nil }
      output += header
    }
  }

  /// The head of the next chunk as it is to be written; nil when it does not fit into the whole.
  private mutating func chunk() -> [UInt8]? {
    let size = input.littleEndian(at: 4, bytes: 4)
    let padded = size + size % 2
    guard 8 + size <= total else { return nil }
    total = max(total - 8 - padded, 0)
    left = padded
    treatment = .copy
    var header = Array(input.take(8))
    switch String(decoding: header.prefix(4), as: UTF8.self) {
    case "EXIF", "XMP ":
      treatment = .blank
      header.replaceSubrange(0..<4, with: Array("JUNK".utf8))
    case "VP8X" where size > 0:
      // Its flags no longer promise what was taken out.
      let flags = input.take(1)
      left -= 1
      header += flags.map { $0 & ~0x0c }
    default: break
    }
    return header
  }
}
