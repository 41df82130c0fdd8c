/// How a message is laid out at a destination with these limits: which parts its text becomes, and where each
/// attachment goes. The relay and the importer write by it; `ferry verify` expects what they wrote.
package struct MessageLayout: Sendable {
  /// Where an attachment goes.
  package enum Place: String, Hashable, Sendable, Codable {
    /// With the last part of the text.
    case inline
    /// In a message of its own.
    case apart
    /// As a line of the text that names a link.
    case link
  }

  private let limits: Capabilities

  package init(_ limits: Capabilities) { self.limits = limits }

  /// Where the next attachment of a message goes, of which `inline` go with the text already. `size` is in bytes; nil
  /// where nobody knows it.
  package func place(ofSize size: Int64?, inline: Int) -> Place {
    if limits.attachments == .none { return .link }
    if let limit = limits.attachmentBytes, let size, size > limit, limits.attachments == .stored { return .link }
    return inline < (limits.captions ? limits.attachmentsPerMessage ?? .max : 0) ? .inline : .apart
  }

  /// The bodies a text becomes. None where it is empty and everything else of the message travels apart.
  package func texts(of text: String, inline: Int, apart: Int) -> [String] {
    text.isEmpty && apart > 0 && inline == 0 ? [] : TextSplitter(limits).parts(of: text)
  }

  /// The text with the lines for those attachments that go as links.
  package static func text(_ text: String, notes: [String]) -> String {
    ([text] + notes).filter { !$0.isEmpty }.joined(separator: "\n")
  }
}
