import FerryCore
import FerryRuntime

/// What two people say at the two ends of a bridge.
actor Conversation {
  struct Said: Sendable {
    let side: Int
    let number: Int
    let id: String
    var text: String
    let isLong: Bool
    let picture: String?
    var isDeleted = false
    /// When it was said, and when it was changed: from the first moment to the last.
    var times: [ClosedRange<Timestamp>]

    /// Stands in every word of it, and in nothing else.
    var token: String { Conversation.token(side, number) }
  }

  private(set) var said: [Said] = []
  private var isTyping = [false, false]

  static func token(_ side: Int, _ number: Int) -> String {
    "\(side == 0 ? "a" : "b")\(number < 10 ? "0" : "")\(number)"
  }

  /// The token in a text, wherever it was cut.
  static func token(in text: String, of side: Int) -> String? {
    let letter: Character = side == 0 ? "a" : "b"
    let words: [Substring] = text.split(separator: " ")
    let found = words.first { word in
      word.count == 3 && word.first == letter && word.dropFirst().allSatisfy { ("0"..."9").contains($0) }
    }
    return found.map { String($0) }
  }

  /// Somebody does something at one side.
  func act(_ side: Int, at place: any Place, _ clock: any FerryClock, with dice: Dice)
    async throws
  {
    let open = said.indices.filter { said[$0].side == side && !said[$0].isDeleted && said[$0].picture == nil }
    let index = open.isEmpty ? nil : open[dice.roll(open.count)]
    let start = clock.now()
    switch (dice.roll(10), index) {
    case (5...6, .some(let index)):
      let mark = " again\(dice.roll(1000))"
      // Long texts stay as long, so that they stay as many parts.
      let text = said[index].isLong ? Self.long(said[index].token, mark) : said[index].token + mark
      said[index].text = text
      try await place.change(said[index].id, to: text)
      said[index].times.append(start...max(start, clock.now()))
    case (7, .some(let index)):
      said[index].isDeleted = true
      try await place.remove(said[index].id)
      said[index].times.append(start...max(start, clock.now()))
    case (8, _):
      isTyping[side].toggle()
      try await place.type(isTyping[side])
    default: try await say(side, at: place, clock)
    }
  }

  func say(_ side: Int, at place: any Place, _ clock: any FerryClock) async throws {
    let number = said.count { $0.side == side }
    let token = Self.token(side, number)
    let isLong = number == 2
    let text = isLong ? Self.long(token, "") : "\(token) said"
    let head: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
    let picture = number == 1 ? head + Array(token.utf8) : nil
    let start = clock.now()
    let id = try await place.say(text, picture: picture)
    isTyping[side] = false
    said.append(
      Said(
        side: side, number: number, id: id, text: text, isLong: isLong,
        picture: picture.map { Crypto.hex(Crypto.digest(.sha256, of: $0)) }, times: [start...max(start, clock.now())]))
  }

  func stopTyping(_ side: Int, at place: any Place) async throws {
    guard isTyping[side] else { return }
    isTyping[side] = false
    try await place.type(false)
  }

  /// More than one Pusher event holds, and less than two.
  private static func long(_ token: String, _ mark: String) -> String {
    (0..<1100).map { "\(token) \($0)" }.joined(separator: " ") + mark
  }
}
