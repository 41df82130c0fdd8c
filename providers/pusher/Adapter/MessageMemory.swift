import FerryCore

/// What was said lately, as far as later events can only be understood by it: kept in this process, for the last
/// few hundred messages.
struct MessageMemory: Sendable {
  private var lastEdit = 0

  /// A number for an edit that bears none: its time, unless that of an edit before it was as late. Two within a
  /// millisecond, or after the clock was put back, are two edits all the same, of which the later counts.
  mutating func nextEdit(at milliseconds: Int) -> Int {
    lastEdit = max(lastEdit == .max ? lastEdit : lastEdit + 1, milliseconds)
    return lastEdit
  }

  private struct Key: Hashable {
    let channel: ChannelID
    let id: MessageID
  }

  struct Row: Sendable {
    /// A hash of text and attachments.
    var content: Int
    var seen: Set<String>
    /// As the app wrote it, where reads are told by writing it again.
    var data: JSONValue?
  }

  private static let capacity = 256

  private var rows: [Key: Row] = [:]
  /// The keys in a ring, and where the next goes.
  private var keys: [Key] = []
  private var next = 0
  private var newest: [ChannelID: MessageID] = [:]

  /// The last message of a channel.
  func newest(in channel: ChannelID) -> MessageID? { newest[channel] }

  func row(_ id: MessageID, in channel: ChannelID) -> Row? { rows[Key(channel: channel, id: id)] }

  mutating func note(_ id: MessageID, in channel: ChannelID, _ row: Row, isNew: Bool) {
    if isNew { newest[channel] = id }
    let key = Key(channel: channel, id: id)
    if rows.updateValue(row, forKey: key) != nil { return }
    if keys.count < Self.capacity {
      keys.append(key)
    } else {
      rows[keys[next]] = nil
      keys[next] = key
      next = (next + 1) % Self.capacity
    }
  }

  mutating func forget(_ id: MessageID, in channel: ChannelID) {
    if newest[channel] == id { newest[channel] = nil }
    let key = Key(channel: channel, id: id)
    // Its place in the ring stays taken until its turn comes.
    rows[key] = nil
  }
}
