import FerryCore

/// One file of a message, as REST and webhooks show it, each with names of its own.
struct MediaItem: Sendable {
  var sid: String
  var size: Int64
  var contentType: String
  var filename: String?

  init(sid: String, size: Int64, contentType: String, filename: String?) {
    self.sid = sid
    self.size = size
    self.contentType = contentType
    self.filename = filename
  }

  /// From its own JSON.
  init?(_ json: JSONValue) {
    guard let sid = json["sid"]?.string else { return nil }
    self.init(
      sid: sid, size: json["size"]?.integer ?? 0,
      contentType: json["content_type"]?.string ?? "application/octet-stream", filename: json["filename"]?.string)
  }

  var json: JSONValue {
    [
      "sid": .string(sid), "size": .integer(size), "content_type": .string(contentType),
      "filename": JSONValue(filename),
    ]
  }

  var webhookJSON: JSONValue {
    [
      "Sid": .string(sid), "Size": .integer(size), "ContentType": .string(contentType),
      "Filename": JSONValue(filename),
    ]
  }
}

extension MediaRecord {
  var item: MediaItem { MediaItem(sid: sid, size: size, contentType: contentType, filename: filename) }

  var attachment: Attachment {
    Attachment(
      name: filename ?? "file", mediaType: contentType, size: size, sha256: sha256, reference: .provider(sha256))
  }

  /// Media that no message has taken in time is gone, collected or not.
  func isGone(at now: Int64) -> Bool { message == nil && created + Int64(Limits.mediaWaits) * 1000 <= now }
}
