package import FerryCore
import FerryRuntime

/// How far a transfer has come, for whoever is watching. Any task may look at any time.
package final class TransferProgress: Sendable {
  package struct Counts: Hashable, Sendable {
    /// Records of the channel read.
    package var read = 0
    package var messages = 0
    package var edits = 0
    package var deletes = 0
    package var others = 0
    package var attachments = 0
    package var attachmentBytes: Int64 = 0
    /// Were there already.
    package var unchanged = 0
    /// Could not be kept; the report says each.
    package var lost = 0
    /// The time of the last record.
    package var place: Timestamp?
    /// How many of them there are, where that is known.
    package var expected: Int?
    /// Why nothing is happening now.
    package var waiting: String?

    package init() {}

    package var written: Int { messages + edits + deletes + others }
  }

  private let counts = Locked(Counts())

  package init() {}

  package var now: Counts { counts.withLock { $0 } }

  package func update(_ change: (inout Counts) -> Void) {
    counts.withLock { counts in
      counts.waiting = nil
      change(&counts)
    }
  }

  package func waits(_ error: FerryError, _ wait: Duration) {
    counts.withLock { $0.waiting = "\(error.code.label), again in \(max(wait.milliseconds / 1000, 1)) s" }
  }
}
