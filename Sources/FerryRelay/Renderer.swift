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
  let identities: Identities
  let names: AuthorNames
  let logger: Logger
  let patience = Patience()

  var limits: Capabilities { destination.capabilities }

  /// One message of those that a message becomes.
  struct Part {
    /// The same however the text around it changes: texts count from zero, attachments that travel apart are named by
    /// their content.
    let number: Int
    /// Nil when it is an attachment that the destination has already: there is nothing to send.
    let message: OutgoingMessage?
  }

  /// The parts of a message, each ready to send. Their keys are the same whenever this is called.
  ///
  /// `known` are the parts that the destination has: what travels apart is not uploaded again. A failed attachment
  /// throws while a retry may mend it; after long waiting the text goes without it, and it is told of (G7): in the text,
  /// or, where that is sent or has company, in a part of its own. An edit (`isEdit`) rewrites the text.
  func parts(
    of message: Message, from source: Address, known: Set<Int>, isEdit: Bool
  ) async throws(FerryError) -> [Part] {
    let cargo = try await cargo(of: message, from: source, known: known)
    // What cannot be had any more may be there from before, and stays.
    let kept = cargo.failures.isEmpty ? [] : cargo.unmatched(in: known)
    let failures = cargo.failures.count > kept.count ? cargo.failures : []
    let body = body(message, from: source)
    var text = MessageLayout.text(body, notes: cargo.notes + failures)
    let isOne = known.isEmpty && cargo.apart.isEmpty && TextSplitter(limits).parts(of: text).count == 1
    let isToldApart = !failures.isEmpty && (isEdit ? known.contains(Self.failurePart) : !isOne)
    if isToldApart { text = MessageLayout.text(body, notes: cargo.notes) }
    var replyTo: MessageID?
    if let original = message.replyTo {
      replyTo = try await journal.translate(original, at: source, to: lane.destination)
    }
    let texts = MessageLayout(limits).texts(
      of: text, inline: cargo.inline.count, apart: cargo.apart.count + kept.count + (isToldApart ? 1 : 0))
    let author = try await author(message.author, at: source)
    var parts: [Part] = []
    func add(_ number: Int, _ text: String, _ attachments: [OutgoingAttachment]) {
      let stamp = stamp(of: message.id, from: source, revision: message.revision, part: number)
      parts.append(
        Part(
          number: number,
          message: OutgoingMessage(
            key: stamp.key, author: author, text: text, format: message.format,
            time: message.time, attachments: attachments, replyTo: parts.isEmpty ? replyTo : nil, stamp: stamp)))
    }
    for (index, text) in texts.enumerated() { add(index, text, index == texts.count - 1 ? cargo.inline : []) }
    for (number, attachment) in cargo.apart {
      if let attachment { add(number, "", [attachment]) } else { parts.append(Part(number: number, message: nil)) }
    }
    for number in kept { parts.append(Part(number: number, message: nil)) }
    if isToldApart { add(Self.failurePart, TextSplitter(limits).parts(of: failures.joined(separator: "\n"))[0], []) }
    return parts
  }

  /// A message that needs no network and no second part, as most do; nil for all others. May share a batch.
  func plain(_ message: Message, from source: Address) async throws(FerryError) -> OutgoingMessage? {
    guard message.attachments.isEmpty, message.replyTo == nil else { return nil }
    let text = body(message, from: source)
    guard TextSplitter(limits).parts(of: text).count == 1 else { return nil }
    let stamp = stamp(of: message.id, from: source, revision: message.revision, part: 0)
    return OutgoingMessage(
      key: stamp.key, author: try await author(message.author, at: source), text: text, format: message.format,
      time: message.time, stamp: stamp)
  }

  /// What is posted where an edit or delete cannot be made (fallback `note`).
  func note(
    _ text: String, by author: Author, about event: Event, from source: Address
  ) async throws(FerryError) -> OutgoingMessage {
    let stamp = Stamp(
      bridge: lane.bridge, origin: source, id: MessageID("note/\(event.key)"), revision: 0, part: 0)
    let text = TextSplitter(limits).parts(of: ShownText.body(text))[0]
    return OutgoingMessage(
      key: stamp.key, author: try await self.author(author, at: source), text: text, time: event.time, stamp: stamp)
  }

  /// The text as the destination is to show it: people by their names there, and nothing that turns what stands beside.
  func body(_ message: Message, from source: Address) -> String {
    ShownText.body(identities.rewrite(message.text, from: source.account, to: lane.destination.account))
  }

  func author(_ author: Author, at source: Address) async throws(FerryError) -> Author {
    var copy = bridge.author.author(for: author, at: source, in: bridge.name, identities: identities)
    if bridge.distinguish {
      copy.name = try await names.shown(copy.name, of: author.id, from: source.account, at: lane.destination)
    }
    return copy
  }

  func stamp(of message: MessageID, from source: Address, revision: Int = 0, part: Int = 0) -> Stamp {
    Stamp(bridge: lane.bridge, origin: source, id: message, revision: revision, part: part)
  }
}
