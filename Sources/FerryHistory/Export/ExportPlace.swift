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

  /// All of it was taken, and what is new is found by reading it again.
  func rereads(_ history: any ChannelHistory) -> Bool { isComplete && !history.goesOn }

  /// Throws `badRequest` when the book does not know what was taken.
  func check(_ book: WorkBook, of channel: ChannelID) async throws(FerryError) {
    guard messages > 0, try await book.messageCount() == 0 else { return }
    throw FerryError(
      .badRequest,
      "\(messages) messages of \(channel) have been exported to there already, and the notes on which they are have been "
        + "lost. Name the folder that they are in with --state, or export to a new archive.")
  }

  var text: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? "{}"
  }
}
