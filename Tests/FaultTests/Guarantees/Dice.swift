import FerryRuntime
import FerryTestKit

/// The numbers of one run, the same for the same seed.
final class Dice: Sendable {
  private let generator: Locked<SeededGenerator>

  init(seed: UInt64) { generator = Locked(SeededGenerator(seed: seed)) }

  /// From zero to `count` - 1.
  func roll(_ count: Int) -> Int { Int(generator.withLock { $0.next() } % UInt64(count)) }
}
