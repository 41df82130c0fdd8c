import Glibc

/// A named place between two durable steps, where a fault test ends the process as `kill -9` would.
///
/// Set by the environment variable `FERRY_FAILPOINT=NAME` or `NAME:N` (the Nth time it is passed). Without the
/// variable passing one costs a comparison.
package enum Failpoint: String, CaseIterable, Sendable {
  /// An adapter's events are at the inbox, and the journal has not been asked yet.
  case beforeAccept = "before-accept"
  /// The journal has the events; the source has not been told.
  case afterAccept = "after-accept"
  /// The statements of a group of transactions have run; it is not committed.
  case beforeCommit = "before-commit"
  /// It is committed; nobody has been told.
  case afterCommit = "after-commit"
  /// A lane has read what is open; nothing is marked.
  case beforeMark = "before-mark"
  /// A send is marked as under way; nothing was sent.
  case beforeSend = "before-send"
  /// A message was sent; it is not settled.
  case afterSend = "after-send"
  /// One part of several was sent; its link is not stored.
  case afterPart = "after-part"
  /// One part's link is stored; the next part was not sent.
  case betweenParts = "between-parts"
  case beforeEdit = "before-edit"
  /// An edit was made; the link's revision is not stored.
  case afterEdit = "after-edit"
  case beforeDelete = "before-delete"
  /// A delete was made; it is not settled.
  case afterDelete = "after-delete"
  /// A change other than an edit or delete (member, read, reaction, note) was made; it is not settled.
  case afterChange = "after-change"
  /// An attachment is in the spool; it has not been uploaded or given a link.
  case afterFetch = "after-fetch"
  /// An attachment was uploaded or given a link; its message was not sent.
  case afterUpload = "after-upload"
  /// The destination was asked about an unknown send; the answer is not stored.
  case afterFind = "after-find"
  /// An archive's lines are handed to the system, and more are to come.
  case betweenWrites = "between-writes"
  /// An archive's segment is written; it is not on the disk for certain.
  case beforeSync = "before-sync"
  /// A blob is on the disk under a temporary name.
  case beforeBlobRename = "before-blob-rename"
  /// An archive's lines are on the disk; its checkpoint does not know of them.
  case beforeCheckpoint = "before-checkpoint"
  case afterCheckpoint = "after-checkpoint"
  /// An archive's manifests are written; its checkpoint is still there.
  case beforeClosing = "before-closing"

  /// Those that are passed while an archive is written; the others are the relay's.
  package static let ofArchives: [Failpoint] = [
    .betweenWrites, .beforeSync, .beforeBlobRename, .beforeCheckpoint, .afterCheckpoint, .beforeClosing,
  ]

  private static let armed: (point: Failpoint, count: Int)? = {
    guard let text = getenv("FERRY_FAILPOINT").map({ String(cString: $0) }) else { return nil }
    let words = text.split(separator: ":", maxSplits: 1).map(String.init)
    guard let point = words.first.flatMap(Failpoint.init(rawValue:)) else { return nil }
    return (point, words.count > 1 ? Int(words[1]) ?? 1 : 1)
  }()
  private static let passed = Locked(0)

  /// Ends the process here if a test says so.
  @inline(__always)
  package func pass() {
    if let armed = Self.armed, armed.point == self { Self.fire(armed.count) }
  }

  private static func fire(_ count: Int) {
    let number = passed.withLock { passed in
      passed += 1
      return passed
    }
    // Not an orderly exit: buffers, locks and connections are left as they are.
    if number == count { kill(getpid(), SIGKILL) }
  }
}
