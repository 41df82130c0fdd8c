/// A dictionary that forgets the oldest entries beyond its capacity.
struct Remembered<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let capacity: Int
  private var values: [Key: (value: Value, number: UInt64)] = [:]
  private var order: [(key: Key, number: UInt64)] = []
  private var head = 0
  private var last: UInt64 = 0

  init(capacity: Int) { self.capacity = capacity }

  var count: Int { values.count }

  subscript(key: Key) -> Value? {
    get { values[key]?.value }
    set {
      guard let newValue else {
        values[key] = nil
        return
      }
      last += 1
      values[key] = (newValue, last)
      order.append((key, last))
      shrink()
    }
  }

  private mutating func shrink() {
    // Entries that were set again or removed leave their old places behind, which are passed over.
    while values.count > capacity || order.count - head > 4 * capacity, head < order.count {
      let oldest = order[head]
      head += 1
      guard let current = values[oldest.key], current.number == oldest.number else { continue }
      values[oldest.key] = nil
    }
    if head > capacity {
      order.removeFirst(head)
      head = 0
    }
  }
}
