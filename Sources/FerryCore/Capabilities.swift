/// What an account can do and its limits. The relay and `ferry plan` ask this, never a provider's name.
package struct Capabilities: Hashable, Sendable, Codable {
  package var receives: Bool = true
  package var edits: Bool = false
  package var deletes: Bool = false
  package var typing: Bool = false
  package var members: Bool = false
  package var reads: Bool = false
  package var reactions: Bool = false
  /// What happens to an attachment's bytes.
  package var attachments: Attachments = .none
  package var history: History = .none
  /// What an import into this account can keep; nil where there is no import.
  package var importing: ImportPowers?
  package var certainty: Certainty = .none
  /// How long a send that was broken off may still take effect, in seconds: `find` is not asked before. Zero where a
  /// repeated key is refused by the provider itself.
  package var settleSeconds: Double = 0
  /// How many posts one request can carry; 1 where the provider has no batches.
  package var batch: Int = 1
  /// Longest body, in UTF-8 bytes and in characters (grapheme clusters); nil where there is no such limit.
  package var bodyBytes: Int?
  /// Whether `bodyBytes` counts the body as it stands in JSON, where quotes, backslashes and controls take more.
  package var bodyIsJSON = false
  package var bodyCharacters: Int?
  package var attachmentBytes: Int64?
  /// How many attachments one message can carry; nil where there is no limit. The rest follow in messages of their own.
  package var attachmentsPerMessage: Int?
  /// Whether a message with an attachment may carry text too, and the text be edited. Otherwise the text goes first, as a
  /// message of its own.
  package var captions = true
  /// Allowed media types, such as `image/*`; nil where everything is allowed.
  package var mediaTypes: [String]?
  /// How long after posting an edit is allowed; nil where there is no limit. Seconds.
  package var editWindow: Double?
  /// Whether a copy shows the original's author and time rather than Ferry's and now.
  package var keepsAuthor: Bool = true
  package var keepsTime: Bool = true
  /// Sends a second to one channel that the provider accepts; nil where it names no limit.
  package var sendsPerSecond: Double?
  /// Why an optional power is absent, in words for the user, by the power's name: `typing`, `history`, ...
  package var absent: [String: String] = [:]

  package init() {}

  package enum Attachments: String, Hashable, Sendable, Codable {
    case none
    /// The provider has no files: the message carries a link that Ferry serves.
    case link
    /// The provider stores the bytes.
    case stored
  }

  package enum History: String, Hashable, Sendable, Codable {
    case none
    /// Messages only: what was edited or deleted meanwhile shows by comparing.
    case messages
    /// Every event can be read again from a cursor.
    case events
  }

  /// How sure `find` is of its answer.
  package enum Certainty: Hashable, Sendable, Codable {
    case none
    /// Certain for this many seconds after the send.
    case window(seconds: Double)
    case always
  }
}
