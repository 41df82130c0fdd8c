/// What came of runs: everything from `lost` on should be zero.
struct Tally: Sendable {
  var runs = 0
  var faults = 0
  var messages = 0
  /// By guarantee, G1 first: lost, doubled, out of order, not as last edited, echoed, typing not ended, pictures that
  /// differ, strangers let in, limits broken, failures not told.
  var broken = [Int](repeating: 0, count: Self.guarantees.count)

  static let guarantees = [
    "G1 lost", "G2 doubled", "G3 out of order", "G4 not converged", "G5 echoed", "G6 typing kept on",
    "G7 pictures wrong", "G8 strangers let in", "G9 limits broken", "G10 not told",
  ]

  static func += (left: inout Tally, right: Tally) {
    left.runs += right.runs
    left.faults += right.faults
    left.messages += right.messages
    for index in left.broken.indices { left.broken[index] += right.broken[index] }
  }

  /// How often a guarantee, counted from 1, was broken.
  subscript(_ guarantee: Int) -> Int {
    get { broken[guarantee - 1] }
    set { broken[guarantee - 1] = newValue }
  }
}
