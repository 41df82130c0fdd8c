import FerryCore
import FoundationEssentials

/// Where an export of a channel stands; kept with what it has written.
struct ExportPlace: Codable, Hashable, Sendable {
  /// After the last page that was written.
  var cursor: Cursor?
  /// Different messages written.
  var messages = 0
  /// The channel was read to its end once.
  var isComplete = false

  init() {}

  /// Anything that is no place begins anew.
  init(text: String?) {
    let data = text.map { Data($0.utf8) }
    self = data.flatMap { try? JSONDecoder().decode(ExportPlace.self, from: $0) } ?? ExportPlace()
  }

  var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}
