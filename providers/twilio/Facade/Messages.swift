import FerryChat
import FerryCore

/// What a request sets of a message, checked.
struct MessageChange: Sendable {
  var author: String?
  var body: String?
  var attributes: String?
  var mediaSID: String?
  var contentSID: String?
  var created: Int64?
  var updated: Int64?

  init(_ form: Form) throws {
    author = form["Author"].flatMap { $0.isEmpty ? nil : $0 }
    body = form["Body"]
    attributes = try form.attributes()
    mediaSID = form["MediaSid"].flatMap { $0.isEmpty ? nil : $0 }
    contentSID = form["ContentSid"].flatMap { $0.isEmpty ? nil : $0 }
    _ = try form.name("Subject", code: 50504)
    (created, updated) = try form.dates()
    if let contentSID {
      guard SID.isOne(contentSID, of: .contentTemplate) else {
        throw TwilioError.invalid("ContentSid", "it is no SID of a content template")
      }
      // A template takes the place of what is written out.
      body = nil
      mediaSID = nil
    }
    try check()
  }

  private func check() throws(TwilioError) {
    if let author, author.count > Limits.name {
      throw TwilioError(400, 50310, "Author too long: it may have \(Limits.name) characters")
    }
    if let body, body.utf8.count > Limits.body {
      throw TwilioError(400, 50504, "Body too long: it may have \(Limits.body) bytes")
    }
  }

  /// What a pre-action webhook changes.
  mutating func apply(_ changes: [JSONValue]) throws(TwilioError) {
    for change in changes {
      if let text = change["body"]?.string { body = text }
      if let name = change["author"]?.string, !name.isEmpty { author = name }
      if let text = change["attributes"]?.string {
        var form = Form()
        form.add("Attributes", text)
        attributes = try form.attributes()
      }
    }
    try check()
  }
}

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
      attributes: extra.json)
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
        time: change.created.map(Timestamp.init(milliseconds:)), attributes: extra.json), by: .owner)
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

  // MARK: Phones

  private func checkPhoneBody(_ body: String?, in conversation: ConversationRecord) throws(TwilioError) {
    guard let body, conversation.phones > 0, body.count > Limits.phoneBody else { return }
    throw TwilioError(
      400, 50504, "Body too long: with a participant on a phone it may have \(Limits.phoneBody) characters")
  }

  /// The participant who writes as `author`: by identity, or by a phone's address.
  private func participantSID(ofAuthor author: String, in conversation: ConversationRecord) throws -> String? {
    if let sid = try participantSID(ofIdentity: author, in: conversation.sid) { return sid }
    return try phones(in: conversation).first { $0.binding?.address == author }?.sid
  }

  func phones(in conversation: ConversationRecord) throws -> [ParticipantRecord] {
    guard conversation.phones > 0 else { return [] }
    return try participants(of: conversation.sid).filter { $0.identity == nil }
  }

  /// Nothing is ever sent to a phone: the receipts say at once that it arrived. Carriers' events are always told.
  func deliver(_ stored: ChatMessage, to phones: [ParticipantRecord], of conversation: ConversationRecord) throws {
    let message = facade.sids.message(stored.message.id)
    for phone in phones {
      let receipt = ReceiptRecord(
        sid: SID.make(.deliveryReceipt), participant: phone.sid, channelMessage: SID.make(.channelMessage),
        status: "delivered", created: now, updated: now)
      try chat.put(receipt, as: receipt.sid, in: Self.receipts(message, conversation.sid))
      try announce("onDeliveryUpdated", Origin(), service: conversation.service, conversation: conversation.sid) {
        fields(receipt, of: message, in: conversation.sid)
      }
    }
  }

  static func receipts(_ message: String, _ conversation: String) -> String { "receipts/\(conversation)/\(message)" }

  func receipts(of sid: String, in key: String, _ call: Call) throws -> JSONValue {
    try withMessage(sid, of: key, call) { stored, conversation in
      let message = facade.sids.message(stored.message.id)
      let collection = Self.receipts(message, conversation.sid)
      return try call.list(collection, key: "delivery_receipts", maximum: 50, self) { document in
        json(try document.value(), of: message, in: conversation.sid, call)
      }
    }
  }

  func receipt(_ receipt: String, of sid: String, in key: String, _ call: Call) throws -> JSONValue {
    try withMessage(sid, of: key, call) { stored, conversation in
      let message = facade.sids.message(stored.message.id)
      let found: ReceiptRecord? = try chat.value(
        of: Self.sid(receipt), in: Self.receipts(message, conversation.sid))
      guard let found else { throw TwilioError.notFound(call.path) }
      return json(found, of: message, in: conversation.sid, call)
    }
  }
}

extension TwilioFacade {
  func post(to key: String, _ call: Call) async throws -> JSONValue {
    var change = try MessageChange(call.form)
    let wanted = change
    try change.apply(
      try await consent(to: "onMessageAdd", call) { ledger in
        let conversation = try ledger.open(key, call)
        var form: Form = [("ConversationSid", conversation.sid)]
        form.add("Body", optional: wanted.body)
        form.add("Author", wanted.author ?? "system")
        form.add(
          "ParticipantSid",
          optional: try ledger.participantSID(ofIdentity: wanted.author ?? "system", in: conversation.sid))
        form.add("Attributes", wanted.attributes ?? "{}")
        if let sid = wanted.mediaSID {
          let media = try ledger.unattachedMedia(sid, in: conversation.service)
          form.add("Media", JSONText.text([media.item.webhookJSON]))
        }
        return form
      })
    let agreed = change
    return try await write { ledger in
      let conversation = try ledger.open(key, call)
      return try ledger.json(try ledger.post(agreed, to: conversation, call), of: conversation, call)
    }
  }

  func update(message sid: String, of key: String, _ call: Call) async throws -> JSONValue {
    var change = try MessageChange(call.form)
    try change.apply(try await consent("onMessageUpdate", sid, key, call, change))
    let agreed = change
    return try await write { ledger in
      try ledger.withMessage(sid, of: key, call) { stored, conversation in
        try ledger.json(try ledger.update(stored, of: conversation, agreed, call), of: conversation, call)
      }
    }
  }

  func delete(message sid: String, of key: String, _ call: Call) async throws {
    _ = try await consent("onMessageRemove", sid, key, call, nil)
    try await write { ledger in
      try ledger.withMessage(sid, of: key, call) { try ledger.delete($0, of: $1, call) }
    }
  }

  private func consent(
    _ event: String, _ sid: String, _ key: String, _ call: Call, _ change: MessageChange?
  ) async throws -> [JSONValue] {
    try await consent(to: event, call) { ledger in
      try ledger.withMessage(sid, of: key, call) { stored, conversation in
        var stored = stored
        if let body = change?.body { stored.message.text = body }
        if let author = change?.author { stored.message.author = Author(id: UserID(author), name: author) }
        if let attributes = change?.attributes {
          var extra = MessageExtra(stored.message)
          extra.attributes = attributes
          stored.message.attributes = extra.json
        }
        return try ledger.fields(stored, of: conversation, in: event)
      }
    }
  }
}
