package import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// What a transfer could not keep: every case as a line of a file, where one is wanted, and counted by reason.
package final class TransferReport: Sendable {
  package struct Loss: Hashable, Sendable {
    /// `message`, `edit`, `attachment`, `reaction`, ...
    package var what: String
    package var channel: ChannelID?
    package var id: String?
    /// A few words, the same for all cases of a kind.
    package var reason: String
    /// This case's own words.
    package var detail: String?
    /// How many cases this stands for, where the source tells of several at once.
    package var count = 1

    package init(
      what: String, channel: ChannelID? = nil, id: String? = nil, reason: String, detail: String? = nil, count: Int = 1
    ) {
      self.what = what
      self.channel = channel
      self.id = id
      self.reason = reason
      self.detail = detail
      self.count = count
    }
  }

  private struct State: Sendable {
    var counts: [String: Int] = [:]
    var failure: FerryError?
  }

  private let state = Locked(State())
  private let descriptor: Int32

  /// Begins the file anew. Throws `storage` when it cannot be written.
  package init(path: String? = nil) throws(FerryError) {
    guard let path else {
      descriptor = -1
      return
    }
    descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      throw FerryError(
        .storage, "The report \(path) cannot be written. Check that its folder exists and may be written.",
        cause: String(cString: strerror(errno)))
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  package func add(_ loss: Loss) {
    let line = descriptor >= 0 ? Self.line(loss) : nil
    state.withLock { state in
      state.counts["\(loss.what): \(loss.reason)", default: 0].add(loss.count)
      guard let line, state.failure == nil else { return }
      let written = line.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if written < line.count {
        state.failure = FerryError(.storage, "The report could not be written whole.")
      }
    }
  }

  /// How often what was not kept, and why; in alphabetical order.
  package var counts: [(reason: String, count: Int)] {
    state.withLock { $0.counts }.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  /// Whether something at the source could not be understood.
  package var hasUnreadable: Bool { state.withLock { $0.counts["record: skipped at the source"] != nil } }

  /// Why the file is not whole.
  package var failure: FerryError? { state.withLock { $0.failure } }

  private static func line(_ loss: Loss) -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    json.member("what", loss.what)
    json.member("channel", loss.channel?.rawValue)
    json.member("id", loss.id)
    json.member("reason", loss.reason)
    json.member("detail", loss.detail)
    if loss.count != 1 { json.member("count", JSONValue.integer(Int64(loss.count))) }
    json.end()
    return json.utf8 + [0x0a]
  }
}

extension Int {
  /// Counts come from files, which may claim anything: it ends at the largest number.
  mutating func add(_ count: Int) {
    let (sum, overflows) = addingReportingOverflow(count)
    self = overflows ? .max : sum
  }
}
