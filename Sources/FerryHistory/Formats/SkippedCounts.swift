import FerryCore

/// What a source held that did not become a record, counted by channel and reason, each with its first place.
struct SkippedCounts {
  private struct Key: Hashable {
    let channel: ChannelID?
    let reason: String
  }

  private var counts: [Key: SkippedRecord] = [:]
  private var order: [Key] = []

  mutating func add(_ reason: String, in channel: ChannelID?, at place: String?, count: Int = 1) {
    let key = Key(channel: channel, reason: reason)
    if counts[key] == nil { order.append(key) }
    counts[key, default: SkippedRecord(channel: channel, reason: reason, count: 0, place: place)].count += count
  }

  /// Those of a channel, or of none, which are then forgotten.
  mutating func take(_ channel: ChannelID?) -> [Record] {
    let keys = order.filter { $0.channel == channel }
    order.removeAll { $0.channel == channel }
    return keys.compactMap { counts.removeValue(forKey: $0) }.map { .skipped($0) }
  }
}
