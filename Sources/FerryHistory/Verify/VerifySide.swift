package import FerryCore

/// One of the two things that are compared.
package struct VerifySide: Sendable {
  /// As the user named it.
  package var name: String
  package var records: any RecordSource
  /// Where the records are, or were taken from: what the stamps of their copies name. Nil when nobody knows.
  package var address: Address?
  /// What this side can hold. Nil for an archive, which holds everything.
  package var capabilities: Capabilities?
  /// Whether a record has the same identifier whenever it is read. Numbers of lines are none.
  package var hasLastingIDs = true
  /// The same name for one person on both sides.
  package var person: @Sendable (Author) -> String

  package init(
    _ name: String, _ records: any RecordSource, address: Address? = nil, capabilities: Capabilities? = nil,
    person: @escaping @Sendable (Author) -> String = VerifySide.name(of:)
  ) {
    self.name = name
    self.records = records
    self.address = address
    self.capabilities = capabilities
    self.person = person
  }

  /// The display name, or the identifier of somebody without one.
  package static func name(of author: Author) -> String {
    if author.isNobody { return Author.unknown.name }
    return author.name.isEmpty ? author.id.rawValue : author.name
  }
}

/// What FROM becomes at TO by TO's capabilities.
struct Projection {
  /// Nil where everything is kept as it is.
  let capabilities: Capabilities?

  var isExact: Bool { capabilities == nil }
  var keepsAuthor: Bool { capabilities?.keepsAuthor ?? true }
  var keepsTime: Bool { capabilities?.keepsTime ?? true }
  var keepsEdited: Bool { capabilities?.edits ?? true }
  var keepsRevisions: Bool { capabilities.map { $0.importing?.revisions ?? false } ?? true }
  var keepsJoins: Bool { capabilities.map { $0.importing?.joins ?? false } ?? true }
  var keepsReads: Bool { capabilities.map { $0.importing?.reads ?? false } ?? true }
  var keepsReactions: Bool { capabilities.map { $0.importing?.reactions ?? $0.reactions } ?? true }
  /// How TO puts messages by their times; nil where they stand as they were written.
  var order: PastOrder? {
    guard keepsTime, let importing = capabilities?.importing, importing.sortsByTime else { return nil }
    return PastOrder(importing)
  }
  /// Whether what was deleted leaves its place behind.
  var keepsSkeletons: Bool { capabilities == nil }

  /// How many messages a text becomes; 1 where it fits.
  func parts(of text: String) -> Int {
    guard let capabilities else { return 1 }
    return TextSplitter(capabilities).parts(of: text).count
  }

  /// Whether an attachment becomes a link in the text.
  func isLink(_ size: Int64?) -> Bool {
    guard let capabilities else { return false }
    return capabilities.attachments == .link || MessageLayout(capabilities).place(ofSize: size, inline: 0) == .link
  }

  /// Whether attachments travel in messages of their own when there are several, or beside a text.
  var sendsApart: Bool { capabilities.map { !$0.captions || $0.attachmentsPerMessage != nil } ?? false }
}
