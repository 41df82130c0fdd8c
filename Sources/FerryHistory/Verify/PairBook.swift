/// Who belongs to whom, by the ordinals of both sides, from 1. A few bytes a message: the only thing that is kept in
/// memory for all of them.
struct PairBook {
  /// What a pair is besides a pair.
  struct Mark: OptionSet {
    let rawValue: UInt8
    /// Several messages of TO are one of FROM; those after the first are in the table `part`.
    static let split = Mark(rawValue: 1)
    /// Several messages of FROM are one of TO; this is the first, the others are in the table `joined`.
    static let merged = Mark(rawValue: 2)
    /// One of the others.
    static let mergedInto = Mark(rawValue: 4)
    /// Off the run of those that kept their order.
    static let reordered = Mark(rawValue: 8)
    /// A second copy, of TO.
    static let duplicate = Mark(rawValue: 16)
    /// Off that run, and where TO puts it by its time.
    static let sorted = Mark(rawValue: 32)
  }

  private(set) var from: [UInt32]
  private(set) var to: [UInt32]
  var fromMarks: [Mark]
  var toMarks: [Mark]

  init(from: Int, to: Int) {
    self.from = Array(repeating: 0, count: from + 1)
    self.to = Array(repeating: 0, count: to + 1)
    fromMarks = Array(repeating: [], count: from + 1)
    toMarks = Array(repeating: [], count: to + 1)
  }

  /// The counterpart in TO, 0 for none.
  func partner(ofFrom ordinal: Int) -> Int { Int(from[ordinal]) }
  func partner(ofTo ordinal: Int) -> Int { Int(to[ordinal]) }

  func isFree(from ordinal: Int) -> Bool { from[ordinal] == 0 }
  func isFree(to ordinal: Int) -> Bool { to[ordinal] == 0 && !toMarks[ordinal].contains(.duplicate) }

  mutating func pair(_ fromOrdinal: Int, _ toOrdinal: Int) {
    from[fromOrdinal] = UInt32(toOrdinal)
    to[toOrdinal] = UInt32(fromOrdinal)
  }

  /// Another message of TO belongs to one of FROM that is paired.
  mutating func addPart(_ toOrdinal: Int, of fromOrdinal: Int) {
    to[toOrdinal] = UInt32(fromOrdinal)
    fromMarks[fromOrdinal].insert(.split)
  }

  /// Another message of FROM went into one of TO that is paired.
  mutating func merge(_ fromOrdinal: Int, into toOrdinal: Int) {
    from[fromOrdinal] = UInt32(toOrdinal)
    fromMarks[fromOrdinal].insert(.mergedInto)
    fromMarks[Int(to[toOrdinal])].insert(.merged)
  }
}

/// The longest run that does not decrease, found in one pass.
struct OrderRun {
  /// Positions of values that are not on the run.
  static func off(_ ranks: [Int64]) -> [Int] {
    // Patience sorting: `tops[k]` is the position of the smallest value that ends a run of k + 1.
    var tops: [Int32] = []
    var previous: [Int32] = Array(repeating: -1, count: ranks.count)
    for (position, rank) in ranks.enumerated() {
      var low = 0
      var high = tops.count
      if let last = tops.last, ranks[Int(last)] <= rank { low = high }
      while low < high {
        let middle = (low + high) / 2
        if ranks[Int(tops[middle])] <= rank { low = middle + 1 } else { high = middle }
      }
      if low > 0 { previous[position] = tops[low - 1] }
      if low == tops.count { tops.append(Int32(position)) } else { tops[low] = Int32(position) }
    }
    var off: [Int] = []
    off.reserveCapacity(ranks.count - tops.count)
    var next = tops.last ?? -1
    for position in ranks.indices.reversed() {
      if position == Int(next) { next = previous[position] } else { off.append(position) }
    }
    return off.reversed()
  }
}
