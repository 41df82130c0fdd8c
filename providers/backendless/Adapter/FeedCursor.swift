import FerryCore
import FerryRuntime

/// Where a channel's table was last read to, as text that the journal keeps.
struct FeedCursor: Hashable, Sendable {
  /// The newest `created` and `updated` that were accepted.
  var created: Int64
  var updated: Int64
  /// Nothing older is ever read: where listening began.
  var floor: Floor?

  /// The rows of the second in which listening began that had been there already.
  struct Floor: Hashable, Sendable {
    var created: Int64
    var updated: Int64
    var ids: Set<String>

    func admits(_ created: Int64, _ id: String) -> Bool {
      created > self.created || (created == self.created && !ids.contains(id))
    }
  }

  /// How late a row may be seen that is dated earlier than another: read again each time.
  static let margin: Int64 = 10_000

  init(created: Int64, updated: Int64, floor: Floor?) {
    self.created = created
    self.updated = updated
    self.floor = floor
  }

  /// Nil for what no adapter of this kind wrote.
  init?(_ cursor: Cursor) {
    guard let value = JSONText.value(cursor.rawValue), let created = value["c"]?.integer else { return nil }
    self.created = created
    updated = value["u"]?.integer ?? 0
    if let floor = value["f"] {
      self.floor = Floor(
        created: floor["c"]?.integer ?? 0, updated: floor["u"]?.integer ?? 0,
        ids: Set((floor["i"]?.array ?? []).compactMap(\.string)))
    }
  }

  var cursor: Cursor {
    var value: [String: JSONValue] = ["c": .integer(created), "u": .integer(updated)]
    if let floor {
      value["f"] = [
        "c": .integer(floor.created), "u": .integer(floor.updated),
        "i": .array(floor.ids.sorted().map(JSONValue.string)),
      ]
    }
    return Cursor(JSON.text(of: .object(value)))
  }

  var createdSince: Int64 { max(Self.less(created, Self.margin), floor?.created ?? .min) }
  var updatedSince: Int64 { max(Self.less(updated, Self.margin), floor?.updated ?? .min) }

  private static func less(_ time: Int64, _ margin: Int64) -> Int64 { max(time, 0) - margin }

  /// Moves on with what the service itself dated; what anybody may publish could be dated into the future.
  mutating func advance(created: Int64?, updated: Int64?) {
    self.created = max(self.created, created ?? 0)
    self.updated = max(self.updated, updated ?? 0)
    // No question reaches back to that second any more.
    if let floor, Self.less(self.created, Self.margin) > floor.created { self.floor?.ids = [] }
  }
}
