package import FerryCore
import FerryRuntime
import Glibc

extension Spool {
  struct Entry {
    let name: String
    let size: Int64
    /// Seconds since 1970, when it was last written or wanted.
    let used: Int
    /// False for what is still being written.
    var isWhole: Bool { name.utf8.count == 64 }
  }

  /// A lane may be about to send what was just stored.
  private static let grace = 60

  /// Removes files until the budget is kept, those first that were not wanted for the longest time. `isNeeded` tells of
  /// files that must stay whatever the budget, because links to them were given out.
  ///
  /// What a lane still wants is fetched again from its source.
  package func trim(isNeeded: (String) async throws(FerryError) -> Bool) async throws(FerryError) {
    let now = time(nil)
    guard isOverBudget, isTimeToTrim(now) else { return }
    for file in try files().filter(\.isWhole).sorted(by: { ($0.used, $0.name) < ($1.used, $1.name) }) {
      guard isOverBudget, file.used < now - Self.grace else { break }
      if try await isNeeded(file.name) { continue }
      remove(file)
    }
    // All that is left is needed: looking through it for every file that comes would be of no use.
    if isOverBudget { waitWithTrimming(until: now + Self.grace) }
  }

  func files() throws(FerryError) -> [Entry] {
    try DiskFile.names(in: folder, failure: Self.failure).filter { $0.isFolder == false && !$0.name.hasPrefix(".") }
      .compactMap { entry($0.name) }
  }

  /// A file as it is now; nil when it is gone.
  func entry(_ name: String) -> Entry? {
    var status = stat()
    guard stat("\(folder)/\(name)", &status) == 0 else { return nil }
    return Entry(name: name, size: Int64(status.st_size), used: status.st_mtim.tv_sec)
  }
}
