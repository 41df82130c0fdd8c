/// A name compared byte by byte, as the database does. Swift's own comparison takes two spellings of one accented
/// letter as equal, which would mix up two rooms.
struct ExactName: Hashable, Sendable {
  let text: String

  init(_ text: String) { self.text = text }

  static func == (left: ExactName, right: ExactName) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

  func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }
}
