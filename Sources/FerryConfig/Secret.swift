/// A password, token or key. Nothing but `reveal()` gives it away: printed, logged or dumped it reads `<secret>`.
package struct Secret: Sendable, Hashable {
  private let value: String

  package init(_ value: String) { self.value = value }

  /// The value itself, for the one place that sends or compares it.
  package func reveal() -> String { value }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<secret>" }
  package var debugDescription: String { "<secret>" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
