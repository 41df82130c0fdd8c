/// Who wrote a message or did something, as the source knows them.
package struct Author: Hashable, Sendable, Codable {
  package var id: UserID
  package var name: String
  /// An absolute URL, or nil.
  package var avatar: String?

  package init(id: UserID, name: String, avatar: String? = nil) {
    self.id = id
    self.name = name
    self.avatar = avatar
  }

  /// Where somebody has to be named and nobody was.
  package static let unknown = Author(id: "unknown", name: "unknown")

  /// Neither the id nor the name says who it is.
  package var isNobody: Bool { id.rawValue.isEmpty && name.isEmpty }
}

/// How a body is written.
package enum TextFormat: String, Sendable, Codable {
  case plain
  case markdown
}

/// Where an attachment's bytes are to be had.
package enum AttachmentReference: Hashable, Sendable, Codable {
  /// An absolute URL that needs no credentials of ours. Fetched under the address guard.
  case url(String)
  /// A name that only the source's adapter can turn into bytes.
  case provider(String)
}

/// A file with a message, described; its bytes come from `ChatProvider.attachment(_:)`.
package struct Attachment: Hashable, Sendable, Codable {
  /// How large a picture is, in pixels as stored.
  package struct Pixels: Hashable, Sendable, Codable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) {
      self.width = width
      self.height = height
    }
  }

  package var name: String
  /// As the source declares it, such as `image/png`. Not to be trusted.
  package var mediaType: String
  /// Bytes, when the source declares it.
  package var size: Int64?
  /// Lower-case hexadecimal, when the source declares it.
  package var sha256: String?
  package var reference: AttachmentReference
  /// Of a picture, when the source declares it.
  package var pixels: Pixels?

  package init(
    name: String, mediaType: String, size: Int64? = nil, sha256: String? = nil, reference: AttachmentReference,
    pixels: Pixels? = nil
  ) {
    self.name = name
    self.mediaType = mediaType
    self.size = size
    self.sha256 = sha256
    self.reference = reference
    self.pixels = pixels
  }
}

/// A message with all that its source knew, even where a destination cannot show it.
package struct Message: Hashable, Sendable, Codable {
  package var id: MessageID
  package var author: Author
  package var text: String
  package var format: TextFormat
  package var time: Timestamp
  /// Zero until the first edit, then counting up.
  package var revision: Int
  package var edited: Timestamp?
  package var attachments: [Attachment]
  package var replyTo: MessageID?
  package var mentions: [UserID]
  /// What Ferry wrote on it, when Ferry wrote it.
  package var stamp: Stamp?
  /// The provider's own fields, verbatim.
  package var attributes: JSONValue?

  package init(
    id: MessageID, author: Author, text: String, format: TextFormat = .plain, time: Timestamp, revision: Int = 0,
    edited: Timestamp? = nil, attachments: [Attachment] = [], replyTo: MessageID? = nil, mentions: [UserID] = [],
    stamp: Stamp? = nil, attributes: JSONValue? = nil
  ) {
    self.id = id
    self.author = author
    self.text = text
    self.format = format
    self.time = time
    self.revision = revision
    self.edited = edited
    self.attachments = attachments
    self.replyTo = replyTo
    self.mentions = mentions
    self.stamp = stamp
    self.attributes = attributes
  }
}

/// The mark on everything Ferry writes, from which it knows its own writing again (G5).
///
/// Where it is kept differs: Twilio attributes, the `ferry` key of a Pusher event, Backendless headers and row, a
/// native field of the local server. `origin` is absent on what a person posted from the command line, which is
/// therefore mirrored like anybody's message.
package struct Stamp: Hashable, Sendable, Codable {
  package var bridge: BridgeName
  package var origin: Address
  package var id: MessageID
  package var revision: Int
  /// Which part of a split message, counted from zero.
  package var part: Int

  package init(bridge: BridgeName, origin: Address, id: MessageID, revision: Int = 0, part: Int = 0) {
    self.bridge = bridge
    self.origin = origin
    self.id = id
    self.revision = revision
    self.part = part
  }

  /// The key of the send that this stamp marks: the same on every retry, another for every part and edit.
  package var key: SendKey {
    // A channel may hold the divider; the other parts cannot, or cannot be taken for two parts.
    SendKey("\(bridge)|\(Self.escaped(origin.description))|\(id)|\(revision)|\(part)")
  }

  /// The stamp whose key this is; nil for a key that no stamp made.
  package init?(key: SendKey) {
    let text = key.rawValue
    guard let bridgeEnd = text.firstIndex(of: "|") else { return nil }
    var origin = ""
    var rest = text[text.index(after: bridgeEnd)...]
    while let scalar = rest.unicodeScalars.popFirst(), scalar != "|" {
      guard scalar == "\\" else {
        origin.unicodeScalars.append(scalar)
        continue
      }
      guard let escaped = rest.unicodeScalars.popFirst() else { return nil }
      origin.unicodeScalars.append(escaped)
    }
    guard let address = Address(origin), let partStart = rest.lastIndex(of: "|"),
      let part = Int(rest[rest.index(after: partStart)...]), let revisionStart = rest[..<partStart].lastIndex(of: "|"),
      let revision = Int(rest[rest.index(after: revisionStart)..<partStart])
    else { return nil }
    self.init(
      bridge: BridgeName(String(text[..<bridgeEnd])), origin: address, id: MessageID(String(rest[..<revisionStart])),
      revision: revision, part: part)
    guard self.key == key else { return nil }
  }

  private static func escaped(_ text: String) -> String {
    guard text.utf8.contains(where: { $0 == UInt8(ascii: "|") || $0 == UInt8(ascii: "\\") }) else { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      if scalar == "|" || scalar == "\\" { escaped += "\\" }
      escaped.unicodeScalars.append(scalar)
    }
    return escaped
  }
}
