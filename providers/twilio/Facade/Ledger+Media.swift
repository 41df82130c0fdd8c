import FerryChat
import FerryCore

/// The media service's records.
extension Ledger {
  /// A record that is not gone. What others attached in the chat has a record that is worked out.
  func media(_ sid: String, in service: String) throws -> MediaRecord {
    if let record: MediaRecord = try chat.value(of: Self.sid(sid), in: "media") {
      guard record.service == service, !record.isGone(at: now) else { throw TwilioError.noMedia }
      return record
    }
    guard let record = try foreignMedia(sid), record.service == service else { throw TwilioError.noMedia }
    return record
  }

  private func foreignMedia(_ sid: String) throws -> MediaRecord? {
    guard let (id, index) = facade.sids.mediaPlace(sid), let room = try chat.room(ofMessage: id),
      let stored = try chat.message(id, in: room), let conversation = try conversation(ofRoom: room),
      stored.message.attachments.indices.contains(index)
    else { return nil }
    let attachment = stored.message.attachments[index]
    guard case .provider(let sha256) = attachment.reference else { return nil }
    let created = stored.message.time.milliseconds
    return MediaRecord(
      sid: facade.sids.media(id, index), service: conversation.service, sha256: sha256, size: attachment.size ?? 0,
      contentType: attachment.mediaType, filename: attachment.name, author: stored.message.author.id.rawValue,
      category: "media", created: created, updated: created, conversation: conversation.sid,
      message: facade.sids.message(id))
  }

  func unattachedMedia(_ sid: String, in service: String) throws -> MediaRecord {
    let record = try media(sid, in: service)
    guard record.message == nil else { throw TwilioError(409, 50508, "Media is attached to another message already") }
    return record
  }

  func attach(_ media: MediaRecord, to stored: ChatMessage, of conversation: ConversationRecord) throws {
    var media = media
    media.message = facade.sids.message(stored.message.id)
    media.conversation = conversation.sid
    media.updated = now
    try chat.put(media, as: media.sid, in: "media")
    try chat.put(media.message, as: media.sid, in: "attached/\(conversation.sid)")
    try chat.remove(media.sid, from: "unattached")
  }

  func media(_ sid: String, _ call: Call) throws -> JSONValue {
    json(try media(sid, in: call.service), call)
  }

  /// Paths are relative here and dates have microseconds, unlike everywhere else.
  func json(_ record: MediaRecord, _ call: Call, isNew: Bool = false) -> JSONValue {
    let path = "/v1/Services/\(record.service)/Media/\(record.sid)"
    let created = JSONValue.string(TwilioDate.microseconds(Timestamp(milliseconds: record.created)))
    let updated = JSONValue.string(TwilioDate.microseconds(Timestamp(milliseconds: record.updated)))
    var links: [String: JSONValue] = ["content": .string("\(path)/Content")]
    if !isNew {
      links["content_direct_temporary"] = .string(facade.link(to: record.sid, base: call.base, at: now))
    }
    return [
      "sid": .string(record.sid), "service_sid": .string(record.service), "date_created": created,
      "date_upload_updated": created, "date_updated": updated, "size": .integer(record.size),
      "content_type": .string(record.contentType), "filename": JSONValue(record.filename),
      "author": .string(record.author), "category": .string(record.category), "message_sid": JSONValue(record.message),
      "channel_sid": JSONValue(record.conversation), "url": .string(path), "links": .object(links),
      "is_multipart_upstream": false,
    ]
  }
}
