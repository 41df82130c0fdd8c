import FerryChat
import FerryCore

extension Ledger {
  func withMessage<T>(
    _ sid: String, of key: String, _ call: Call, _ body: (ChatMessage, ConversationRecord) throws -> T
  ) throws -> T {
    let conversation = try existing(key, call)
    guard let id = facade.sids.messageID(sid), let message = try chat.message(id, in: ChannelID(conversation.room)),
      message.deleted == nil
    else { throw TwilioError.noMessage }
    return try body(message, conversation)
  }

  func messages(of key: String, _ call: Call) throws -> JSONValue {
    let conversation = try existing(key, call)
    let isDescending: Bool
    switch call.query["Order"]?.lowercased() {
    case nil, "", "asc": isDescending = false
    case "desc": isDescending = true
    default: throw TwilioError.invalid("Order", "it must be asc or desc")
    }
    let request = try PageRequest(call.query, maximum: 100)
    let page = try request.page(edge: { Int64($0.message.id.rawValue) ?? 0 }) { edge, isBackwards, limit in
      let isNewestFirst = isBackwards != isDescending
      let edge = edge.map { MessageID(String($0)) }
      return try chat.liveMessages(
        in: ChannelID(conversation.room), order: isNewestFirst ? .newestFirst : .oldestFirst,
        after: isNewestFirst ? nil : edge, before: isNewestFirst ? edge : nil, limit: limit)
    }
    let rows = try page.rows.map { try json($0, of: conversation, call) }
    return call.answer(rows, request, previous: page.previous, next: page.next, key: "messages")
  }

  /// Posts a message with everything that hangs on it.
  func post(_ change: MessageChange, to conversation: ConversationRecord, _ call: Call) throws -> ChatMessage {
    guard change.body?.isEmpty == false || change.mediaSID != nil || change.contentSID != nil else {
      throw TwilioError(400, 50503, "The message has neither body nor media")
    }
    try checkPhoneBody(change.body, in: conversation)
    let media = try change.mediaSID.map { try unattachedMedia($0, in: conversation.service) }
    let author = change.author ?? "system"
    var extra = MessageExtra()
    extra.attributes = change.attributes ?? "{}"
    extra.updated = change.updated ?? change.created
    extra.participant = try participantSID(ofAuthor: author, in: conversation)
    extra.media = media.map { [$0.item] } ?? []
    extra.contentSID = change.contentSID
    let receivers = try phones(in: conversation).filter { $0.sid != extra.participant }
    extra.receipts = receivers.count
    let room = ChannelID(conversation.room)
    let draft = Draft(
      author: Author(id: UserID(author), name: author), text: change.body ?? "",
      time: change.created.map(Timestamp.init(milliseconds:)), attachments: media.map { [$0.attachment] } ?? [],
      attributes: extra.kept)
    let stored = try chat.post(draft, to: room, by: .owner).message
    if let media { try attach(media, to: stored, of: conversation) }
    let active = try touched(conversation, call.isAnnounced ? .api : nil)
    if call.isAnnounced {
      try announce("onMessageAdded", .api, service: active.service, conversation: active.sid) {
        try fields(stored, of: active, in: "onMessageAdded")
      }
    }
    try deliver(stored, to: receivers, of: active)
    return stored
  }

  func update(
    _ stored: ChatMessage, of conversation: ConversationRecord, _ change: MessageChange, _ call: Call
  ) throws -> ChatMessage {
    guard conversation.state != .closed else { throw TwilioError.closed }
    let message = stored.message
    if let body = change.body {
      guard message.attachments.isEmpty else {
        throw TwilioError(400, 50509, "The body of a message with media cannot be edited")
      }
      guard !body.isEmpty else { throw TwilioError(400, 50503, "The message has no body") }
      try checkPhoneBody(body, in: conversation)
    }
    var extra = MessageExtra(message)
    if !extra.isOurs { extra.participant = try participantSID(ofAuthor: message.author.id.rawValue, in: conversation) }
    if let attributes = change.attributes { extra.attributes = attributes }
    if let author = change.author { extra.participant = try participantSID(ofAuthor: author, in: conversation) }
    extra.updated = change.updated ?? now
    extra.revision = message.revision + 1
    let edited = try chat.edit(
      message.id, in: ChannelID(conversation.room),
      to: Change(
        text: change.body, author: change.author.map { Author(id: UserID($0), name: $0) },
        time: change.created.map(Timestamp.init(milliseconds:)), attributes: extra.kept), by: .owner)
    let active = try touched(conversation, call.isAnnounced ? .api : nil)
    if call.isAnnounced {
      try announce("onMessageUpdated", .api, service: active.service, conversation: active.sid) {
        try fields(edited, of: active, in: "onMessageUpdated")
      }
    }
    return edited
  }

  func delete(_ stored: ChatMessage, of conversation: ConversationRecord, _ call: Call) throws {
    if call.isAnnounced {
      try announce("onMessageRemoved", .api, service: conversation.service, conversation: conversation.sid) {
        try fields(stored, of: conversation, in: "onMessageRemoved")
      }
    }
    try chat.delete(stored.message.id, in: ChannelID(conversation.room), by: .owner)
    try forget(stored, of: conversation)
  }

  /// What hangs on a message that was deleted.
  func forget(_ stored: ChatMessage, of conversation: ConversationRecord) throws {
    for media in MessageExtra(stored.message).media {
      try chat.remove(media.sid, from: "media")
      try chat.remove(media.sid, from: "attached/\(conversation.sid)")
    }
    try chat.removeAll(from: Self.receipts(facade.sids.message(stored.message.id), conversation.sid))
  }
}
