package import FerryCore
import FerryRuntime
import FoundationEssentials

/// How messages and events are written in JSON: in the event log, in the local server's API and by its adapter.
/// providers/local/openapi.yaml describes it.
package enum Wire {
  package struct Author: Codable, Hashable, Sendable {
    package var id: String
    package var name: String?
    package var avatar: String?

    package init(_ author: FerryCore.Author) {
      id = author.id.rawValue
      name = author.name
      avatar = author.avatar
    }

    /// A missing name is the id.
    package var author: FerryCore.Author { FerryCore.Author(id: UserID(id), name: name ?? id, avatar: avatar) }
  }

  package struct Attachment: Codable, Hashable, Sendable {
    /// The SHA-256 of a file uploaded before; or `url`.
    package var file: String?
    package var url: String?
    package var name: String?
    package var type: String?
    package var size: Int64?
    package var sha256: String?
    /// Pixels, of a picture that is stored here.
    package var width: Int?
    package var height: Int?

    package init(_ attachment: FerryCore.Attachment) {
      switch attachment.reference {
      case .provider(let sha256): file = sha256
      case .url(let url): self.url = url
      }
      name = attachment.name
      type = attachment.mediaType
      size = attachment.size
      sha256 = attachment.sha256
      width = attachment.pixels?.width
      height = attachment.pixels?.height
    }

    package func attachment() throws(FerryError) -> FerryCore.Attachment {
      let reference: AttachmentReference
      switch (file, url) {
      case (.some(let file), nil): reference = .provider(file)
      case (nil, .some(let url)): reference = .url(url)
      default: throw FerryError(.badRequest, "An attachment has either a file or a url.")
      }
      return FerryCore.Attachment(
        name: name ?? "file", mediaType: type ?? "application/octet-stream", size: size, sha256: sha256,
        reference: reference, pixels: pixels)
    }

    /// What is no size of a picture counts as not declared.
    private var pixels: FerryCore.Attachment.Pixels? {
      guard let width, let height, width > 0, height > 0 else { return nil }
      return .init(width: width, height: height)
    }
  }

  package struct Reaction: Codable, Hashable, Sendable {
    package var emoji: String
    package var users: [Author]
  }

  package struct Message: Codable, Hashable, Sendable {
    package var id: String
    package var room: String
    package var author: Author
    package var text: String
    package var format: TextFormat
    package var time: Time
    package var revision: Int
    package var edited: Time?
    package var deleted: Time?
    package var attachments: [Attachment]
    package var reply_to: String?
    package var mentions: [String]?
    package var client_id: String?
    package var reactions: [Reaction]?
    package var stamp: Stamp?
    package var attributes: JSONValue?

    package init(_ stored: ChatMessage) {
      let message = stored.message
      id = message.id.rawValue
      room = stored.room.rawValue
      author = Author(message.author)
      text = message.text
      format = message.format
      time = Time(message.time)
      revision = message.revision
      edited = message.edited.map(Time.init)
      deleted = stored.deleted.map(Time.init)
      attachments = message.attachments.map(Attachment.init)
      reply_to = message.replyTo?.rawValue
      mentions = message.mentions.isEmpty ? nil : message.mentions.map(\.rawValue)
      client_id = stored.clientID?.rawValue
      reactions =
        stored.reactions.isEmpty
        ? nil : stored.reactions.map { Reaction(emoji: $0.emoji, users: $0.users.map(Author.init)) }
      stamp = message.stamp
      attributes = message.attributes
    }

    package func message() throws(FerryError) -> FerryCore.Message {
      var files: [FerryCore.Attachment] = []
      for attachment in attachments { files.append(try attachment.attachment()) }
      return FerryCore.Message(
        id: MessageID(id), author: author.author, text: text, format: format, time: time.timestamp,
        revision: revision, edited: edited?.timestamp, attachments: files, replyTo: reply_to.map { MessageID($0) },
        mentions: (mentions ?? []).map { UserID($0) }, stamp: stamp, attributes: attributes)
    }
  }

  /// An event, flat: which members are there depends on `kind`.
  package struct Event: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, Sendable { case message, edit, delete, join, leave, read, reaction }

    package var kind: Kind
    package var room: String
    package var time: Time
    /// `message` and `edit`: the whole message as it now reads.
    package var message: Message?
    /// `delete`, `read` (everything up to it) and `reaction`: which message.
    package var id: String?
    /// Who did it.
    package var by: Author?
    package var state: ReadMark.State?
    package var emoji: String?
    package var added: Bool?
    package var stamp: Stamp?
  }

  package struct Typing: Codable, Hashable, Sendable {
    package var room: String
    package var by: Author?
    package var on: Bool
    package var stamp: Stamp?

    package init(_ typing: FerryCore.Typing) {
      room = typing.channel.rawValue
      by = Author(typing.by)
      on = typing.on
      stamp = typing.stamp
    }
  }

  /// Written `2026-11-30T08:00:00.123Z`; read with or without fractional seconds, or as milliseconds since 1970.
  package struct Time: Codable, Hashable, Sendable {
    package var timestamp: Timestamp

    package init(_ timestamp: Timestamp) { self.timestamp = timestamp }

    package init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        guard let parsed = Timestamp(iso8601: text) else {
          throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an ISO 8601 time in UTC")
        }
        timestamp = parsed
      } else {
        timestamp = Timestamp(milliseconds: try container.decode(Int64.self))
      }
      // The years 1600 to 9999: earlier, calendars disagree; later, the text has no room.
      guard (-11_676_096_000_000...253_402_300_799_999).contains(timestamp.milliseconds) else {
        throw DecodingError.dataCorruptedError(in: container, debugDescription: "the time is out of range")
      }
    }

    package func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(timestamp.iso8601)
    }
  }

  /// The JSON of `value` as text. Values of this file always have one.
  package static func json(_ value: some Encodable) throws(FerryError) -> String {
    do {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.withoutEscapingSlashes]
      return String(decoding: try encoder.encode(value), as: UTF8.self)
    } catch {
      throw FerryError(.internal, "A value could not be written as JSON.", cause: FerryError.wrap(error).cause)
    }
  }

  /// Throws `badData` that names the place in the JSON.
  package static func value<T: Decodable>(_ type: T.Type, from json: some Sequence<UInt8>) throws(FerryError) -> T {
    do { return try JSON.decode(type, from: json) } catch let error as DecodingError {
      throw FerryError(.badData, error.inWords)
    } catch {
      throw FerryError(.badData, "This is not JSON.")
    }
  }
}

extension DecodingError {
  fileprivate var inWords: String {
    switch self {
    case .keyNotFound(let key, let context): "\(context.place) lacks \"\(key.stringValue)\"."
    case .valueNotFound(_, let context): "\(context.place) must not be null."
    case .typeMismatch(let type, let context): "\(context.place) must be \(Self.name(type))."
    case .dataCorrupted(let context) where context.codingPath.isEmpty: "This is not JSON."
    case .dataCorrupted(let context): "\(context.place) is not valid: \(context.debugDescription)"
    @unknown default: "The JSON is not what was expected."
    }
  }

  private static func name(_ type: any Any.Type) -> String {
    switch type {
    case is String.Type: "text"
    case is Bool.Type: "true or false"
    case is any BinaryInteger.Type: "a whole number"
    default: "\(type)".hasPrefix("Array") ? "a list" : "an object"
    }
  }
}

extension DecodingError.Context {
  fileprivate var place: String {
    let path = codingPath.map { $0.intValue.map { "[\($0)]" } ?? ".\($0.stringValue)" }.joined()
    return path.isEmpty ? "The JSON" : "\"\(path.drop { $0 == "." })\""
  }
}
