package import FerryCore
import FerryRuntime

extension TwilioAdapter {
  /// How long after a send `find` is certain of its answer.
  static let findWindow = Duration.seconds(7 * 86_400)
  /// By how much the service's clock and this one may differ.
  private static let clockSkew = Duration.seconds(300)
  /// What is older than this is dated back, so that it shows when it was said.
  private static let recent = Duration.seconds(60)

  package func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    let now = clock.now()
    let form = try Self.form(of: message, now: now)
    written.tried(message.key, at: now)
    let url = messagesURL(channel.rawValue)
    let answer = try await creating(channel) { () async throws(FerryError) in
      try await self.api.post(url, form, doing: "post the message")
    }
    guard let sid = answer else {
      throw FerryError(
        .outcomeUnknown, "Could not read Twilio's answer to the message.", retry: .now, didNotAct: false)
    }
    written.posted(sid, message.stamp)
    return MessageID(sid)
  }

  /// Makes a write at the conversation's pace; creates a conversation that is missing, where that is wanted.
  func creating<Result: Sendable>(
    _ channel: ChannelID, _ write: @Sendable () async throws(FerryError) -> Result
  ) async throws(FerryError) -> Result {
    try await pace.wait(for: channel)
    do throws(FerryError) { return try await write() } catch {
      // Of the conversation, that is: a file that is missing may be sent again.
      guard error.code == .notFound, error.retry == .never else { throw error }
      guard settings.create, !Self.isSID(channel) else {
        var missing = missing(channel)
        missing.cause = error.cause
        throw missing
      }
    }
    do throws(FerryError) { try await createConversation(channel) } catch {
      // The write itself has not been made, whatever became of this.
      var error = error
      error.didNotAct = true
      throw error
    }
    try await pace.wait(for: channel)
    return try await write()
  }

  /// With `past` the dates are the message's own, however recent.
  static func form(
    of message: OutgoingMessage, now: Timestamp, as past: PastMessage? = nil
  ) throws(FerryError) -> Form {
    guard message.attachments.count <= 1 else {
      throw FerryError(.badRequest, "A Twilio message holds one file at most, not \(message.attachments.count).")
    }
    var attributes = FerryAttributes()
    attributes.stamp = message.stamp
    attributes.key = message.key.rawValue
    attributes.author = message.author.id.rawValue
    attributes.time = message.time
    attributes.replyTo = message.replyTo?.rawValue
    attributes.format = message.format == .plain ? nil : message.format
    var form: Form = [("Author", author(message.author))]
    if let attachment = message.attachments.first {
      guard case .provider(let media) = attachment.reference else {
        throw FerryError(.badRequest, "A file has to be uploaded to Twilio before a message can hold it.")
      }
      form.add("MediaSid", media)
      attributes.sha256 = attachment.sha256
    }
    if !message.text.isEmpty || message.attachments.isEmpty {
      form.add("Body", ListedMessage.body(ofText: message.text))
    }
    if let time = message.time, past != nil || time < now.advanced(by: .zero - recent) {
      attributes.sent = now
      form.add("DateCreated", TwilioDate.seconds(time))
      // An edit within the second of the post would not be seen as one.
      let shown = past?.edited.map { max($0, time.advanced(by: .seconds(1))) } ?? time
      form.add("DateUpdated", TwilioDate.seconds(shown))
      attributes.edited = past?.edited
      attributes.isAction = past?.isAction ?? false
      attributes.system = past?.system
    }
    form.add("Attributes", attributes.text())
    return form
  }

  /// The name that people see. Twilio puts `system` where there is none.
  private static func author(_ author: Author) -> String {
    let name = author.name.isEmpty ? author.id.rawValue : author.name
    return name.isEmpty ? "unknown" : shortened(name, to: AdapterLimits.authorBytes)
  }

  static func shortened(_ text: String, to bytes: Int) -> String {
    guard text.utf8.count > bytes else { return text }
    var short = ""
    var size = 0
    for scalar in text.unicodeScalars {
      size += UTF8.width(scalar)
      if size > bytes { break }
      short.unicodeScalars.append(scalar)
    }
    return short
  }

  // MARK: Settling

  /// Reads the list backwards from the newest message, by the order of writing, until what is listed is older than the
  /// send can be.
  ///
  /// When the send was tried by another process, the time is not known. A week is looked through, and at least up to a
  /// message that the same bridge wrote: an interrupted send was that bridge's last one.
  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    let wanted = FerryAttributes.fitted(key.rawValue)
    let tried = written.firstTry(of: key)
    let oldest = (tried ?? started.advanced(by: .zero - Self.findWindow)).advanced(by: .zero - Self.clockSkew)
    let bridge = Self.bridge(of: key)
    var isDecided = tried != nil || bridge == nil
    var next: String? = messagesURL(
      channel.rawValue, [("Order", "desc"), ("PageSize", String(AdapterLimits.pageSize))])
    var pages = 0
    while let url = next {
      guard pages < TwilioAPI.mostPages else {
        return .unknown(reason: "The last \(pages * AdapterLimits.pageSize) messages do not tell.")
      }
      let page: TwilioAPI.Page
      do throws(FerryError) { page = try await api.page(url, doing: "look for the message") } catch {
        // Nothing can have been written to what does not exist.
        guard error.code == .notFound, pages == 0 else { throw error }
        return .absent
      }
      let messages = page.records.compactMap { ListedMessage(json: $0) }
      for message in messages {
        guard let ferry = message.ferry else { continue }
        if ferry.key == wanted { return .found(MessageID(message.sid)) }
        if let bridge, ferry.stamp?.bridge.rawValue == bridge { isDecided = true }
      }
      // A whole page, because others may date messages back as well.
      if isDecided, !messages.isEmpty, messages.allSatisfy({ $0.inserted < oldest }) { return .absent }
      next = page.next
      pages += 1
    }
    return .absent
  }

  /// The keys of a bridge begin with its name.
  private static func bridge(of key: SendKey) -> String? {
    guard let divider = key.rawValue.firstIndex(of: "|") else { return nil }
    return FerryAttributes.fitted(String(key.rawValue[..<divider]))
  }
}

extension TwilioAdapter: EditingProvider, DeletingProvider {
  /// Keeps what others have put into the message's attributes, and the key under which it was posted.
  package func edit(
    _ id: MessageID, in channel: ChannelID, to message: OutgoingMessage
  ) async throws(FerryError) {
    try await change(id, in: channel, to: message.text, hasFiles: !message.attachments.isEmpty) { current, form in
      form.add("Attributes", optional: Self.attributes(current["attributes"]?.string ?? "{}", editedTo: message))
    }
    if let stamp = message.stamp { written.posted(id.rawValue, stamp) }
  }

  /// Changes the text of a message without a file. `adding`: what else changes, given the message as it is.
  func change(
    _ id: MessageID, in channel: ChannelID, to text: String, hasFiles: Bool,
    _ adding: (_ current: JSONValue, _ form: inout Form) -> Void
  ) async throws(FerryError) {
    let url = messageURL(channel.rawValue, id.rawValue)
    let current = try await api.get(url, doing: "edit the message")
    guard !hasFiles else { throw FerryError(.unsupported, "Twilio cannot change the file of a message.") }
    if let media = current["media"]?.array, !media.isEmpty {
      throw FerryError(.unsupported, "Twilio cannot change the text of a message with a file.")
    }
    var form: Form = [("Body", ListedMessage.body(ofText: text))]
    adding(current, &form)
    try await pace.wait(for: channel)
    try await api.post(url, form, doing: "edit the message")
  }

  /// Nil to leave them alone: a person's edit marks nothing, and what others wrote may leave no room.
  private static func attributes(_ current: String, editedTo message: OutgoingMessage) -> String? {
    guard let stamp = message.stamp else { return nil }
    var others: [String: JSONValue] = [:]
    switch JSONText.value(current) {
    case .object(let members): others = members
    case nil where current.isEmpty: break
    default: return nil
    }
    var ferry = FerryAttributes(.object(others)) ?? FerryAttributes()
    ferry.stamp = stamp
    ferry.author = message.author.id.rawValue
    if ferry.key == nil { ferry.key = message.key.rawValue }
    others[FerryAttributes.name] = nil
    let text = ferry.text(beside: others)
    return text.utf8.count <= AdapterLimits.attributesBytes ? text : nil
  }

  package func delete(
    _ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?
  ) async throws(FerryError) {
    written.deleting(id.rawValue, stamp)
    try await pace.wait(for: channel)
    do throws(FerryError) {
      try await api.delete(messageURL(channel.rawValue, id.rawValue), doing: "delete the message")
    } catch {
      guard error.code == .notFound else { throw error }
    }
  }
}
