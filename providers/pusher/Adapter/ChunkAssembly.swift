import FerryCore
import FerryRuntime

/// One slice of an event that was too long.
///
/// The convention: an event `chunked-NAME` whose data is `{"id","index","chunk","final"}`; the slices joined in the
/// order of their indices are the data of an event `NAME`.
/// Source: https://github.com/pusher/pusher-channels-chunking-example
struct Chunk: Hashable, Sendable {
  static let prefix = "chunked-"

  var id: String
  var index: Int
  var text: String
  var isFinal: Bool

  init(id: String, index: Int, text: String, isFinal: Bool) {
    self.id = id
    self.index = index
    self.text = text
    self.isFinal = isFinal
  }

  /// Nil for data that is no slice.
  init?(_ data: JSONValue) {
    guard let id = data["id"]?.text, id.utf8.count <= 256, let text = data["chunk"]?.string,
      let index = data["index"]?.integer ?? data["index"]?.string.flatMap({ Int64($0) }),
      (0..<Int64(ChunkAssembly.longestSet)).contains(index)
    else { return nil }
    self.init(id: id, index: Int(index), text: text, isFinal: data["final"]?.flag ?? false)
  }

  /// As it is sent.
  var data: String {
    #"{"id":\#(JSONText.quoted(id)),"index":\#(index),"chunk":\#(JSONText.quoted(text)),"final":\#(isFinal)}"#
  }

  /// Cuts data into slices whose events are no longer than `limit` bytes, between Unicode scalars. The same data and
  /// id give the same slices, so that sending again what was lost on the way completes what did arrive.
  static func slices(of data: String, id: String, limit: Int) -> [Chunk] {
    let frame = Chunk(id: id, index: ChunkAssembly.longestSet, text: "", isFinal: false).data.utf8.count
    let room = max(limit - frame, 8)
    var chunks: [Chunk] = []
    var text = String.UnicodeScalarView()
    var size = 0
    for scalar in data.unicodeScalars {
      // As long as it will be: a slice is a string within JSON.
      let width = JSONText.width(of: scalar)
      if size + width > room {
        chunks.append(Chunk(id: id, index: chunks.count, text: String(text), isFinal: false))
        text = String.UnicodeScalarView()
        size = 0
      }
      text.append(scalar)
      size += width
    }
    chunks.append(Chunk(id: id, index: chunks.count, text: String(text), isFinal: true))
    return chunks
  }
}

/// Slices that wait for one another: any number of sets at once, in any order, each at most once.
///
/// Anybody may publish, so all of it is limited: sets, slices and bytes of one, bytes of all, and age.
struct ChunkAssembly: Sendable {
  static let longestSet = 2048
  private static let sets = 64
  private static let bytesOfSet = 1 << 20
  private static let bytesOfAll = 4 << 20
  private static let age = Duration.seconds(60)
  /// What a slice takes besides its text.
  private static let overhead = 128
  private static let remembered = 256

  private struct Key: Hashable {
    let channel: ChannelID
    let event: String
    let id: String
  }

  private struct Parts: Sendable {
    var started: Timestamp
    var chunks: [Int: String] = [:]
    var last: Int?
    var bytes = 0
  }

  private var open: [Key: Parts] = [:]
  private var bytes = 0
  /// Sets that are done: what still comes of them is a repetition.
  private var done: [Key] = []
  private var nextDone = 0

  enum Result: Hashable, Sendable {
    case waiting
    /// The data of the event.
    case complete(String)
  }

  /// Takes one in, and says how many incomplete sets were given up meanwhile.
  mutating func add(
    _ chunk: Chunk, of event: String, in channel: ChannelID, now: Timestamp
  ) -> (result: Result, dropped: Int) {
    var dropped = expire(now)
    let key = Key(channel: channel, event: event, id: chunk.id)
    guard !done.contains(key) else { return (.waiting, dropped) }
    var set = open[key] ?? Parts(started: now)
    // A slice that came before stays as it was, and none can lie behind the last.
    let isBehind = set.last.map { chunk.index > $0 || (chunk.isFinal && chunk.index != $0) } ?? false
    guard set.chunks[chunk.index] == nil, !isBehind else { return (.waiting, dropped) }
    let size = chunk.text.utf8.count + Self.overhead
    guard set.bytes + size <= Self.bytesOfSet else {
      drop(key)
      finish(key)
      return (.waiting, dropped + 1)
    }
    if open[key] == nil {
      while open.count >= Self.sets { dropped += dropOldest() }
    }
    while bytes + size > Self.bytesOfAll, open.contains(where: { $0.key != key }) { dropped += dropOldest(but: key) }
    set.chunks[chunk.index] = chunk.text
    set.bytes += size
    bytes += size
    if chunk.isFinal { set.last = chunk.index }
    open[key] = set
    guard let last = set.last, set.chunks.count == last + 1 else { return (.waiting, dropped) }
    drop(key)
    finish(key)
    return (.complete((0...last).compactMap { set.chunks[$0] }.joined()), dropped)
  }

  private mutating func expire(_ now: Timestamp) -> Int {
    let old = open.filter { $0.value.started.advanced(by: Self.age) <= now }.map(\.key)
    for key in old { drop(key) }
    return old.count
  }

  private mutating func dropOldest(but spared: Key? = nil) -> Int {
    guard let oldest = open.filter({ $0.key != spared }).min(by: { $0.value.started < $1.value.started }) else {
      return 0
    }
    drop(oldest.key)
    return 1
  }

  private mutating func drop(_ key: Key) {
    if let set = open.removeValue(forKey: key) { bytes -= set.bytes }
  }

  private mutating func finish(_ key: Key) {
    if done.count < Self.remembered {
      done.append(key)
    } else {
      done[nextDone] = key
      nextDone = (nextDone + 1) % Self.remembered
    }
  }
}
