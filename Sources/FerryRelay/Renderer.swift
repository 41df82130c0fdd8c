import FerryCore
import FerryRuntime
import FerryStorage

/// Turns an event into what is written at one destination: author, parts, attachments, reply.
struct Renderer: Sendable {
  let lane: LaneID
  let bridge: Bridge
  let destination: any ChatProvider
  let sources: [AccountName: any ChatProvider]
  let journal: Journal
  let spool: Spool
  /// Where the relay's listener is reached, without a slash at the end.
  let publicURL: String
  let logger: Logger

  private var limits: Capabilities { destination.capabilities }

  /// The parts of a message, each ready to send. Their keys are the same whenever this is called.
  ///
  /// `patient` lets a failed attachment throw while a retry may mend it; otherwise the text goes without it (G7).
  func parts(
    of message: Message, from source: Address, patient: Bool = false
  ) async throws(FerryError) -> [OutgoingMessage] {
    let (attachments, notes) = try await attachments(of: message, from: source, patient: patient)
    let text = ([message.text] + notes).filter { !$0.isEmpty }.joined(separator: "\n")
    var replyTo: MessageID?
    if let original = message.replyTo {
      replyTo = try await journal.translate(original, at: source, to: lane.destination)
    }
    let texts = TextSplitter(limits).parts(of: text)
    return texts.enumerated().map { index, text in
      let stamp = stamp(of: message.id, from: source, revision: message.revision, part: index)
      return OutgoingMessage(
        key: stamp.key, author: author(message.author, at: source), text: text, format: message.format,
        time: message.time, attachments: index == texts.count - 1 ? attachments : [],
        replyTo: index == 0 ? replyTo : nil, stamp: stamp)
    }
  }

  /// A message that needs no network and no second part, as most do; nil for all others. May share a batch.
  func plain(_ message: Message, from source: Address) -> OutgoingMessage? {
    guard message.attachments.isEmpty, message.replyTo == nil else { return nil }
    let texts = TextSplitter(limits).parts(of: message.text)
    guard texts.count == 1 else { return nil }
    let stamp = stamp(of: message.id, from: source, revision: message.revision, part: 0)
    return OutgoingMessage(
      key: stamp.key, author: author(message.author, at: source), text: message.text, format: message.format,
      time: message.time, stamp: stamp)
  }

  /// What is posted where an edit or delete cannot be made (fallback `note`).
  func note(_ text: String, by author: Author, about event: Event, from source: Address) -> OutgoingMessage {
    let stamp = Stamp(
      bridge: lane.bridge, origin: source, id: MessageID("note/\(event.key)"), revision: 0, part: 0)
    let text = TextSplitter(limits).parts(of: text)[0]
    return OutgoingMessage(
      key: stamp.key, author: self.author(author, at: source), text: text, time: event.time, stamp: stamp)
  }

  func author(_ author: Author, at source: Address) -> Author {
    bridge.author.author(for: author, at: source, in: bridge.name)
  }

  func stamp(of message: MessageID, from source: Address, revision: Int = 0, part: Int = 0) -> Stamp {
    Stamp(bridge: lane.bridge, origin: source, id: message, revision: revision, part: part)
  }

  // MARK: Attachments

  /// The attachments as the destination names them, and a line of text for each that could not be carried.
  private func attachments(
    of message: Message, from source: Address, patient: Bool
  ) async throws(FerryError) -> ([OutgoingAttachment], [String]) {
    guard bridge.mirror.contains(.images) else {
      return ([], message.attachments.map { "[\($0.name)]" })
    }
    var carried: [OutgoingAttachment] = []
    var notes: [String] = []
    for attachment in message.attachments {
      do throws(FerryError) {
        let (outgoing, note) = try await carry(attachment, from: source)
        if let outgoing { carried.append(outgoing) }
        if let note { notes.append(note) }
      } catch {
        if error.code == .storage || error.code == .cancelled { throw error }
        if patient, error.retry != .never { throw error }
        logger.warning("\(lane): attachment of \(message.id) not carried: \(error)")
        notes.append("[\(attachment.name) could not be copied: \(error.message)]")
      }
    }
    return (carried, notes)
  }

  private func carry(
    _ attachment: Attachment, from source: Address
  ) async throws(FerryError) -> (OutgoingAttachment?, note: String?) {
    guard let provider = sources[source.account] else {
      throw FerryError(.internal, "The account \(source.account) is no longer configured.")
    }
    let bytes = try await provider.attachment(attachment.reference)
    let file = try await spool.store(bytes, declaredType: attachment.mediaType)
    if let limit = limits.attachmentBytes, file.size > limit, limits.attachments == .stored {
      return (nil, "\(attachment.name) (\(file.size) bytes): \(try await link(attachment.name, file))")
    }
    switch limits.attachments {
    case .stored:
      guard let uploading = destination as? any UploadingProvider else {
        throw FerryError(.internal, "The provider stores attachments but has no way to upload them.")
      }
      let reference = try await uploading.upload(
        try spool.read(file), name: attachment.name, mediaType: file.mediaType, to: lane.destination.channel)
      return (outgoing(attachment.name, file, reference), nil)
    case .link:
      return (outgoing(attachment.name, file, .url(try await link(attachment.name, file))), nil)
    case .none:
      return (nil, "\(attachment.name): \(try await link(attachment.name, file))")
    }
  }

  private func outgoing(
    _ name: String, _ file: Spool.File, _ reference: AttachmentReference
  ) -> OutgoingAttachment {
    OutgoingAttachment(
      name: name, mediaType: file.mediaType, size: file.size, sha256: file.sha256, reference: reference)
  }

  private func link(_ name: String, _ file: Spool.File) async throws(FerryError) -> String {
    let served = try await journal.serve(
      sha256: file.sha256, name: name, mediaType: file.mediaType, size: file.size)
    return "\(publicURL)/files/\(served.token)/\(Self.pathSafe(name))"
  }

  /// Letters, digits, dot, dash and underscore of a file name; the name in a link is only for people.
  private static func pathSafe(_ name: String) -> String {
    let safe = name.unicodeScalars.map { scalar -> Character in
      let isPlain = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
      return isPlain || scalar == "." || scalar == "-" || scalar == "_" ? Character(scalar) : "_"
    }
    let text = String(safe.suffix(80))
    return text.isEmpty || text.hasPrefix(".") ? "file" + text : text
  }
}
