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
  /// Where TO sorts by time, those of them that are on the longest run in the order of the times are where they belong.
  mutating func markReordered() throws {
    var row = OrderedRow()
    let isPlain = !separatesChannels && from.tallies.isMessagesOnly && projection.order == nil
    if isPlain {
      for ordinal in pairs.from.indices.dropFirst() { row.add(ordinal, at: nil, pairs) }
      return row.settle(&pairs, unit: unit)
    }
    row.order = projection.order
    let order = separatesChannels ? "channel, n" : "n"
    let cursor = try connection.cursor("SELECT n, channel, time FROM a WHERE kind = 0 ORDER BY \(order)")
    var channel: Int64?
    while let found = try cursor.next() {
      if separatesChannels, channel != found.integer(1) {
        row.settle(&pairs, unit: unit)
        row = OrderedRow()
        row.order = projection.order
        channel = found.integer(1)
      }
      row.add(Int(found.integer(0)), at: Timestamp(milliseconds: found.integer(2)), pairs)
    }
    row.settle(&pairs, unit: unit)
  }
}

/// The pairs of one channel, in FROM's order.
private struct OrderedRow {
  var order: PastOrder?
  private var ordinals: [Int32] = []
  private var ranks: [Int64] = []
  /// Where TO sorts by time.
  private var places: [Int64] = []

  init() {}

  mutating func add(_ ordinal: Int, at time: Timestamp?, _ pairs: PairBook) {
    let partner = pairs.partner(ofFrom: ordinal)
    guard partner > 0, !pairs.fromMarks[ordinal].contains(.mergedInto) else { return }
    ordinals.append(Int32(ordinal))
    ranks.append(Int64(partner))
    if let time, let place = order?.place(time) { places.append(place) }
  }

  func settle(_ pairs: inout PairBook, unit: Int64) {
    let off = OrderRun.off(ranks)
    if off.isEmpty { return }
    let strangers = places.isEmpty ? nil : offByTime(unit)
    for position in off {
      let isStranger = strangers.map { $0[position] } ?? true
      pairs.fromMarks[Int(ordinals[position])].insert(isStranger ? .reordered : .sorted)
    }
  }

  /// Which are not where their time puts them. TO may have any order within one tick.
  private func offByTime(_ unit: Int64) -> [Bool] {
    let sorted = ranks.indices.sorted { left, right in
      let (first, second) = (floorDivide(places[left], unit), floorDivide(places[right], unit))
      return first == second ? ranks[left] < ranks[right] : first < second
    }
    var isOff = Array(repeating: false, count: ranks.count)
    for position in OrderRun.off(sorted.map { ranks[$0] }) { isOff[sorted[position]] = true }
    return isOff
  }
}
