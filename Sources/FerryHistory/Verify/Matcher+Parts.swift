import FerryCore
import FerryStorage

/// Long messages that one side holds in several pieces, and attachments in messages of their own.
extension Matcher {
  /// A message that is alone, with its text.
  struct Loose {
    var ordinal: Int
    var time: Int64
    var body: String
  }

  /// How many messages after another the parts of one may be looked for.
  private static let reach = 64
  /// Later parts may have been written a minute later.
  private static let spread: Int64 = 60_000
  /// A piece this long, in bytes, says where it belongs even when its neighbours are lost.
  private static let telling = 64

  mutating func joinParts() throws {
    try eachLoose(of: "a") { matcher, whole, author, channel in
      let pieces = try matcher.candidates("b", author, channel, whole.time &+ matcher.zoneOffset, whole.ordinal)
      guard let chain = Self.chain(of: whole.body, pieces) else { return }
      for (place, piece) in chain.pieces.enumerated() {
        if place == 0 {
          matcher.pairs.pair(whole.ordinal, piece)
        } else {
          try matcher.connection.execute(
            "INSERT INTO part(n, place, m) VALUES (?, ?, ?)", SQLValue(whole.ordinal), SQLValue(place), SQLValue(piece))
          matcher.pairs.addPart(piece, of: whole.ordinal)
        }
      }
    }
    try eachLoose(of: "b") { matcher, whole, author, channel in
      let pieces = try matcher.candidates("a", author, channel, whole.time &- matcher.zoneOffset, whole.ordinal)
      guard let chain = Self.chain(of: whole.body, pieces), chain.pieces.count > 1 else { return }
      for (place, piece) in chain.pieces.enumerated() {
        if place == 0 {
          matcher.pairs.pair(piece, whole.ordinal)
        } else {
          try matcher.merge(piece, into: whole.ordinal)
        }
      }
    }
    try joinFilesApart()
  }

  private mutating func merge(_ piece: Int, into whole: Int) throws {
    let place = try connection.first("SELECT count(*) FROM joined WHERE m = ?", SQLValue(whole), map: { $0.integer(0) })
    try connection.execute(
      "INSERT INTO joined(m, place, n) VALUES (?, ?, ?)", SQLValue(whole), .integer((place ?? 0) + 1), SQLValue(piece))
    pairs.merge(piece, into: whole)
  }

  func isFree(_ letter: String, _ ordinal: Int) -> Bool {
    letter == "a" ? pairs.isFree(from: ordinal) : pairs.isFree(to: ordinal)
  }

  /// Every message with a text that is alone, by author and in order. `body` also gets author and channel.
  mutating func eachLoose(
    of letter: String, _ body: (inout Matcher, Loose, Int64, Int64) throws -> Void
  ) throws {
    let cursor = try connection.cursor(
      "SELECT n, time, body, author, channel FROM loose_\(letter) WHERE kind = 0 AND body <> '' "
        + "ORDER BY author, channel, n")
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(0))
      guard isFree(letter, ordinal) else { continue }
      try body(
        &self, Loose(ordinal: ordinal, time: row.integer(1), body: row.text(2)), row.integer(3), row.integer(4))
    }
  }

  /// Those of one author that are alone at about a time, in order; where times say nothing, anywhere.
  func candidates(
    _ letter: String, _ author: Int64, _ channel: Int64, _ time: Int64, _ ordinal: Int, spread: Int64 = spread
  ) throws -> [Loose] {
    let cursor: RowCursor
    if projection.keepsTime {
      cursor = try connection.cursor(
        "SELECT n, time, body FROM loose_\(letter) INDEXED BY loose_\(letter)_time "
          + "WHERE author = ? AND channel = ? AND time BETWEEN ? AND ? AND kind = 0 AND body <> '' ORDER BY time, n",
        .integer(author), .integer(channel), .integer(time &- tolerance), .integer(time &+ tolerance &+ spread))
    } else {
      cursor = try connection.cursor(
        "SELECT n, time, body FROM loose_\(letter) INDEXED BY loose_\(letter)_author "
          + "WHERE author = ? AND channel = ? AND kind = 0 AND body <> '' ORDER BY n", .integer(author),
        .integer(channel))
    }
    var found: [Loose] = []
    while found.count < Self.reach, let row = try cursor.next() {
      let candidate = Int(row.integer(0))
      guard isFree(letter, candidate) else { continue }
      found.append(Loose(ordinal: candidate, time: row.integer(1), body: row.text(2)))
    }
    return found
  }

  /// Pieces of a text, in order.
  struct Chain {
    var pieces: [Int] = []
    /// Together they are all of it.
    var isWhole = false
  }

  /// The pieces that together are the text; nil where none begins it. Not whole when a piece is lost.
  static func chain(of whole: String, _ pieces: [Loose]) -> Chain? {
    let bytes = Array(whole.utf8)
    var best: Chain?
    var bestLength = telling
    for start in pieces.indices {
      var offset = 0
      var length = 0
      var hasGap = false
      var chain = Chain()
      for piece in pieces[start...] {
        var end = continuation(of: bytes, from: offset, with: piece.body)
        if end == nil, chain.pieces.isEmpty { break }
        if end == nil {
          end = later(in: bytes, from: offset, piece.body)
          if end != nil { hasGap = true }
        }
        guard let end else { continue }
        chain.pieces.append(piece.ordinal)
        length += piece.body.utf8.count
        offset = end
        if isSpace(bytes[end...]) {
          chain.isWhole = !hasGap
          break
        }
      }
      if chain.isWhole { return chain }
      if length > bestLength {
        bestLength = length
        best = chain
      }
    }
    return best
  }

  /// Where a piece ends that comes later in the text, after one that is lost.
  private static func later(in bytes: [UInt8], from offset: Int, _ piece: String) -> Int? {
    let piece = trimmed(Array(TextForm.withoutPartMark(piece).utf8)[...])
    guard piece.count >= telling, let first = piece.first, bytes.count - offset >= piece.count else { return nil }
    for start in offset...(bytes.count - piece.count) where bytes[start] == first {
      if bytes[start...].starts(with: piece) { return start + piece.count }
    }
    return nil
  }

  /// Where the text goes on after a piece that continues it.
  private static func continuation(of bytes: [UInt8], from offset: Int, with piece: String) -> Int? {
    for form in [piece, TextForm.withoutPartMark(piece)] {
      let form = Array(form.utf8)
      let inner = trimmed(form[...])
      guard !inner.isEmpty else { continue }
      for (start, part) in [(offset, form[...]), (skipSpace(bytes, offset), inner)] {
        if bytes[start...].starts(with: part) { return start + part.count }
      }
      // The end of the text, with lines behind it that name attachments.
      let rest = trimmed(bytes[offset...])
      if !rest.isEmpty, inner.starts(with: rest), inner.dropFirst(rest.count).first == 0x0a { return bytes.count }
    }
    return nil
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0d) }
  private static func isSpace(_ bytes: ArraySlice<UInt8>) -> Bool { bytes.allSatisfy { isSpace($0) } }

  private static func skipSpace(_ bytes: [UInt8], _ offset: Int) -> Int {
    bytes[offset...].firstIndex { !isSpace($0) } ?? bytes.count
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop { isSpace($0) }
    while let last = bytes.last, isSpace(last) { bytes.removeLast() }
    return bytes
  }

  // MARK: Attachments apart

  /// A message without text whose attachments belong to the one before it by the same author.
  private mutating func joinFilesApart() throws {
    for letter in ["a", "b"] {
      let cursor = try connection.cursor(
        "SELECT l.n, l.author, l.time, t.files FROM loose_\(letter) AS l JOIN \(letter) AS t ON t.n = l.n "
          + "WHERE l.kind = 0 AND l.body = '' AND t.files <> '' ORDER BY l.n")
      while let row = try cursor.next() {
        let ordinal = Int(row.integer(0))
        guard isFree(letter, ordinal) else { continue }
        try joinFiles(SideFile.read(row.text(3)), letter, ordinal, row.integer(1), row.integer(2))
      }
    }
  }

  private mutating func joinFiles(
    _ files: [SideFile], _ letter: String, _ ordinal: Int, _ author: Int64, _ time: Int64
  ) throws {
    var before = ordinal - 1
    while before > 0, before > ordinal - 32 {
      defer { before -= 1 }
      let neighbour = try connection.first(
        "SELECT author, time FROM \(letter) WHERE n = ?", SQLValue(before), map: { ($0.integer(0), $0.integer(1)) })
      guard let neighbour, neighbour.0 == author else { continue }
      if projection.keepsTime, (time &- neighbour.1).magnitude > UInt64(tolerance + Self.spread) { return }
      let partner = letter == "a" ? pairs.partner(ofFrom: before) : pairs.partner(ofTo: before)
      guard partner > 0 else { continue }
      let whole = try connection.first(
        "SELECT files FROM \(letter == "a" ? "b" : "a") WHERE n = ?", SQLValue(partner),
        map: { SideFile.read($0.text(0)) })
      guard let whole, files.allSatisfy({ file in whole.contains { $0.isLike(file) } }) else { continue }
      if letter == "a" {
        try merge(ordinal, into: partner)
      } else {
        let place = try connection.first(
          "SELECT count(*) FROM part WHERE n = ?", SQLValue(partner), map: { $0.integer(0) })
        try connection.execute(
          "INSERT INTO part(n, place, m) VALUES (?, ?, ?)", SQLValue(partner), .integer((place ?? 0) + 1),
          SQLValue(ordinal))
        pairs.addPart(ordinal, of: partner)
      }
      return
    }
  }
}

extension SideFile {
  /// Whether two may be the same file: by their bytes where both are known, else by name and size.
  func isLike(_ other: SideFile) -> Bool {
    if let sha256, let theirs = other.sha256 { return sha256 == theirs }
    return name == other.name && (size == nil || other.size == nil || size == other.size)
  }
}
