import FerryCore
import FerryRuntime

/// How far an open archive is certain: what lies behind it is cut off when the archive is opened again.
struct Checkpoint: Hashable, Sendable {
  /// Of the last line.
  var seq: Int64 = 0
  /// The last segment; 0 when there is none.
  var segment = 0
  /// Bytes and lines of the last segment.
  var offset: Int64 = 0
  var lines = 0
  var isSealed = true
  /// Where exports stand, by channel. Only they know what it means.
  var places: [String: String] = [:]

  func json() -> [UInt8] {
    var json = JSONWriter()
    json.begin()
    for (name, number) in [("seq", seq), ("segment", Int64(segment)), ("offset", offset), ("lines", Int64(lines))] {
      json.name(escaping: name)
      json.value(number)
    }
    json.name("sealed")
    json.value(isSealed)
    json.name("places")
    json.sorted(.object(places.mapValues { .string($0) }))
    json.end()
    return json.utf8 + [0x0a]
  }

  init() {}

  init(json: [UInt8]) throws(FerryError) {
    do throws(FerryError) {
      var fields = try Record.fields(line: json).reader
      seq = try fields.integer("seq") ?? 0
      segment = try fields.count("segment") ?? 0
      offset = try fields.integer("offset") ?? 0
      lines = try fields.count("lines") ?? 0
      isSealed = try fields.bool("sealed") ?? false
      places = (try fields.object("places")?.rest ?? [:]).compactMapValues(\.string)
    } catch {
      throw FerryError(.badData, "\(ArchiveLayout.checkpoint) cannot be read. \(error.message)")
    }
  }
}
