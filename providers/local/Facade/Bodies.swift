import FerryChat
import FerryCore
import FerryTransport

/// What requests carry, as JSON. Most members are optional here so that a missing one is refused in our words.
enum Bodies {
  /// One message, or several under `messages`.
  struct Post: Codable, Sendable {
    var client_id: String?
    var author: Wire.Author?
    var text: String?
    var format: TextFormat?
    var time: Wire.Time?
    var attachments: [Wire.Attachment]?
    var reply_to: String?
    var mentions: [String]?
    var stamp: Stamp?
    var attributes: JSONValue?
    var messages: [Post]?

    func draft() throws(FerryError) -> Draft {
      guard messages == nil else { throw FerryError(.badRequest, "A message has no \"messages\".") }
      guard text != nil || attachments != nil else {
        throw FerryError(.badRequest, "A message needs a \"text\", which may be empty, or \"attachments\".")
      }
      var files: [Attachment] = []
      for attachment in attachments ?? [] { files.append(try attachment.attachment()) }
      return Draft(
        clientID: client_id.map { SendKey($0) }, author: author?.author, text: text ?? "", format: format ?? .plain,
        time: time?.timestamp, attachments: files, replyTo: reply_to.map { MessageID($0) },
        mentions: (mentions ?? []).map { UserID($0) }, stamp: stamp, attributes: attributes)
    }
  }

  struct Edit: Codable, Sendable {
    var text: String?
    var format: TextFormat?
    var attachments: [Wire.Attachment]?
    var revision: Int?
    var stamp: Stamp?

    func change() throws(FerryError) -> Change {
      var change = Change(text: text, format: format, revision: revision, stamp: stamp)
      if let attachments {
        var files: [Attachment] = []
        for attachment in attachments { files.append(try attachment.attachment()) }
        change.attachments = files
      }
      guard text != nil || format != nil || attachments != nil else {
        throw FerryError(.badRequest, "Say what to change: text, format or attachments.")
      }
      return change
    }
  }

  /// Who does something; may be left out by a token that is bound to a user.
  struct Act: Codable, Sendable {
    var by: Wire.Author?
    var stamp: Stamp?
  }

  struct Typing: Codable, Sendable {
    var by: Wire.Author?
    var on: Bool?
    var stamp: Stamp?
  }

  struct Member: Codable, Sendable {
    var name: String?
    var avatar: String?
    var stamp: Stamp?
  }

  struct Read: Codable, Sendable {
    var id: String?
    var state: ReadMark.State?
    var name: String?
    var avatar: String?
    var stamp: Stamp?
  }

  struct Room: Codable, Sendable {
    var title: String?
  }
}

/// What answers carry.
enum Answers {
  struct Room: Codable, Sendable {
    var id: String
    var title: String
    var created: Wire.Time
    var members: Int
    var last: Wire.Message?
    /// Of the user who was asked about.
    var unread: Int?
    var read: String?

    init(_ room: FerryChat.Room, standing: Standing? = nil) {
      id = room.id.rawValue
      title = room.title
      created = Wire.Time(room.created)
      members = room.members
      last = room.last.map(Wire.Message.init)
      unread = standing?.unread
      read = standing?.read?.rawValue
    }
  }

  struct Rooms: Codable, Sendable {
    var rooms: [Room]
    /// The name after which the next page begins.
    var next: String?
    /// Every event up to it is in this answer.
    var sequence: Int64?
    /// Whom the token is bound to.
    var user: String?
  }

  struct Messages: Codable, Sendable {
    var messages: [Wire.Message]
    var next: String?
  }

  /// What a poster needs of the messages in an answer: decoding the rest costs more than sending it.
  struct Posted: Decodable, Sendable {
    var id: String
    var client_id: String?
  }

  struct PostedMessages: Decodable, Sendable { var messages: [Posted] }

  struct Members: Codable, Sendable { var members: [Wire.Author] }

  struct Reads: Codable, Sendable {
    struct Mark: Codable, Sendable {
      var by: Wire.Author?
      var id: String
      var state: ReadMark.State
    }
    var reads: [Mark]
  }

  struct File: Codable, Sendable {
    var sha256: String
    var name: String
    var type: String
    var size: Int64
    var width: Int?
    var height: Int?
    /// Relative to the server.
    var url: String
  }
}

extension HTTPRequest {
  /// A JSON body; an empty one counts as an empty object.
  func json<T: Decodable>(_ type: T.Type, upTo limit: Int = 1 << 20) async throws(FerryError) -> T {
    if let given = headers["Content-Type"]?.prefix(while: { $0 != ";" }).lowercased(),
      given != "application/json", !given.hasSuffix("+json")
    {
      throw FerryError(.unsupported, "Send JSON, with \"Content-Type: application/json\".")
    }
    let bytes = try await body.collect(upTo: limit)
    return try Wire.value(type, from: bytes.isEmpty ? Array("{}".utf8) : bytes)
  }

  /// A whole number in the query, or nil when it is not there.
  func number(_ name: String) throws(FerryError) -> Int64? {
    guard let text = query(name) else { return nil }
    guard let number = Int64(text), number >= 0 else {
      throw FerryError(.badRequest, "\"\(name)\" must be a whole number.")
    }
    return number
  }

  /// How many items a page may have.
  func limit(_ usual: Int) throws(FerryError) -> Int {
    guard let limit = try number("limit") else { return usual }
    guard (1...500).contains(limit) else { throw FerryError(.badRequest, "\"limit\" must be from 1 to 500.") }
    return Int(limit)
  }
}
