import FerryChat
import FerryCore

/// Participants on phones, to whom nothing is ever sent: what their carriers would report is made up.
extension Ledger {
  func checkPhoneBody(_ body: String?, in conversation: ConversationRecord) throws(TwilioError) {
    guard let body, conversation.phones > 0, body.count > Limits.phoneBody else { return }
    throw TwilioError(
      400, 50504, "Body too long: with a participant on a phone it may have \(Limits.phoneBody) characters")
  }

  /// The participant who writes as `author`: by identity, or by a phone's address.
  func participantSID(ofAuthor author: String, in conversation: ConversationRecord) throws -> String? {
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
