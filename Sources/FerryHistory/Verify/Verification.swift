package import FerryCore
import FerryStorage

/// Reads both sides to their end and accounts for every record of both.
///
/// Memory is bounded but for some 20 bytes a record: everything else is in a scratch database.
/// Source: the page "How two histories are compared" in this target's catalog.
package struct Verification: Sendable {
  let from: VerifySide
  let to: VerifySide
  let projection: Projection

  /// `through` is what lay between, when TO is an archive of an account that could not hold everything.
  package init(from: VerifySide, to: VerifySide, through: Capabilities? = nil) {
    self.from = from
    self.to = to
    projection = Projection(capabilities: through ?? to.capabilities)
  }

  /// `line` gets every record's account: FROM's in FROM's order, then what is in TO only.
  package func run(
    phase: (String) -> Void = { _ in }, line: (VerifyLine) throws -> Void = { _ in }
  ) async throws(FerryError) -> VerifyReport {
    do { return try await compare(phase, line) } catch { throw .wrap(error) }
  }

  /// Bytes of the database that are kept in memory.
  private static let cache = 8 << 20

  private func compare(
    _ phase: (String) -> Void, _ line: (VerifyLine) throws -> Void
  ) async throws -> VerifyReport {
    let connection = try Connection.scratch(cache: Self.cache)
    let left = try SideTable(from, "a", in: connection)
    let right = try SideTable(to, "b", in: connection)
    phase("reading \(from.name)")
    try await left.fill()
    phase("reading \(to.name)")
    try await right.fill()
    phase("comparing")
    var matcher = try Matcher(left, right, projection, in: connection)
    try matcher.run()
    try matcher.markReordered()
    var account = Account(matcher)
    try account.write(line)
    return account.report
  }
}

extension Matcher {
  /// Those that keep the order of FROM are the longest run of TO's ordinals that does not decrease; the others moved.
  mutating func markReordered() throws {
    var ordinals: [Int32] = []
    var ranks: [Int64] = []
    func settle(_ pairs: inout PairBook) {
      for position in OrderRun.off(ranks) { pairs.fromMarks[Int(ordinals[position])].insert(.reordered) }
      ordinals = []
      ranks = []
    }
    let isPlain = !separatesChannels && from.tallies.isMessagesOnly
    if isPlain {
      for ordinal in pairs.from.indices.dropFirst() {
        let partner = pairs.partner(ofFrom: ordinal)
        guard partner > 0, !pairs.fromMarks[ordinal].contains(.mergedInto) else { continue }
        ordinals.append(Int32(ordinal))
        ranks.append(Int64(partner))
      }
      return settle(&pairs)
    }
    let order = separatesChannels ? "channel, n" : "n"
    let cursor = try connection.cursor("SELECT n, channel FROM a WHERE kind = 0 ORDER BY \(order)")
    var channel: Int64?
    while let row = try cursor.next() {
      let ordinal = Int(row.integer(0))
      if separatesChannels, channel != row.integer(1) {
        settle(&pairs)
        channel = row.integer(1)
      }
      let partner = pairs.partner(ofFrom: ordinal)
      guard partner > 0, !pairs.fromMarks[ordinal].contains(.mergedInto) else { continue }
      ordinals.append(Int32(ordinal))
      ranks.append(Int64(partner))
    }
    settle(&pairs)
  }
}
