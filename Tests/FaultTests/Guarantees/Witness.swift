import FerryCore
import FerryRelay
import FerryRuntime
import FerryTestKit
import FerryTransport

/// An account through which every call and event passes: it notes what the relay must not do, and treats events badly
/// on demand.
struct Witness: BatchingProvider, PreparingProvider, EditingProvider, DeletingProvider, TypingProvider,
  UploadingProvider, MembershipProvider, ReadingProvider, ReactingProvider, WebhookReceiver
{
  /// What may be done to the events on their way to the relay.
  enum Mischief: Sendable { case none, repeats, delays, scrambles }

  struct Notes: Sendable {
    var mischief = Mischief.none
    /// Batches of events to be treated so, and how many have been.
    var left = 0
    var done = 0
    /// A limit that was exceeded, or a request to wait that was not heeded.
    var breaches = 0
    /// Typing that was begun or renewed too often, by person. Each message of theirs allows for one: who goes on typing
    /// after a message is told of at once, which may be before the message.
    var hasty: [UserID: Int] = [:]
    /// Who is shown as typing, and since when.
    var typing: [UserID: ContinuousClock.Instant] = [:]
    var notBefore: ContinuousClock.Instant?
  }

  let inner: any ChatProvider
  let place: any Place
  let notes: Locked<Notes>
  /// By how much the relay's clock is faster.
  let haste: Int

  var capabilities: Capabilities { inner.capabilities }

  private static func missing(_ what: String) -> FerryError {
    FerryError(.internal, "\(what) was asked of a provider that has no such power.")
  }

  // MARK: Events

  var webhookPath: String? { (inner as? any WebhookReceiver)?.webhookPath }

  func webhook(_ request: HTTPRequest) async -> HTTPResponse {
    await (inner as? any WebhookReceiver)?.webhook(request) ?? HTTPResponse(status: 404)
  }

  func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    try await inner.run(subscriptions, into: WitnessInbox(inner: inbox, notes: notes))
  }

  // MARK: Messages

  /// Notes what is wrong with a write, and what the service says to it.
  private func watched<Result>(
    _ messages: [OutgoingMessage] = [], _ body: () async throws(FerryError) -> Result
  ) async throws(FerryError) -> Result {
    let tooLong = messages.count { message in
      TextSplitter(capabilities).parts(of: message.text).count > 1
        || message.attachments.count > (capabilities.attachmentsPerMessage ?? .max)
        || (!capabilities.captions && !message.text.isEmpty && !message.attachments.isEmpty)
    }
    let now = ContinuousClock.now
    notes.withLock { notes in
      notes.breaches += tooLong
      if let until = notes.notBefore, now < until { notes.breaches += 1 }
      notes.notBefore = nil
      for message in messages {
        notes.typing[message.author.id] = nil
        if let count = notes.hasty[message.author.id] { notes.hasty[message.author.id] = max(0, count - 1) }
      }
    }
    do throws(FerryError) {
      return try await body()
    } catch {
      if case .after(let wait) = error.retry {
        let until = ContinuousClock.now.advanced(by: wait / haste - .milliseconds(20))
        notes.withLock { $0.notBefore = until }
      }
      throw error
    }
  }

  func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    try await watched([message]) { () async throws(FerryError) in try await inner.post(message, to: channel) }
  }

  func post(_ messages: [OutgoingMessage], to channel: ChannelID) async throws(FerryError) -> [MessageID] {
    guard let provider = inner as? any BatchingProvider else { throw Self.missing("a batch") }
    return try await watched(messages) { () async throws(FerryError) in try await provider.post(messages, to: channel) }
  }

  /// On a hurried clock a send is asked after too soon: the service of a busy machine may be about to act.
  private func waitUntilSettled() async {
    while place.writesUnderWay > 0, (try? await SystemClock().sleep(for: .milliseconds(5))) != nil {}
  }

  func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    await waitUntilSettled()
    return try await inner.find(key, in: channel)
  }

  func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding] {
    await waitUntilSettled()
    if let provider = inner as? any BatchingProvider { return try await provider.find(keys, in: channel) }
    var findings: [Finding] = []
    for key in keys { findings.append(try await inner.find(key, in: channel)) }
    return findings
  }

  func prepare(_ key: SendKey, in channel: ChannelID) async throws(FerryError) {
    if let provider = inner as? any PreparingProvider { try await provider.prepare(key, in: channel) }
  }

  func edit(_ id: MessageID, in channel: ChannelID, to message: OutgoingMessage) async throws(FerryError) {
    guard let provider = inner as? any EditingProvider else { throw Self.missing("an edit") }
    try await watched([message]) { () async throws(FerryError) in try await provider.edit(id, in: channel, to: message)
    }
  }

  func delete(_ id: MessageID, in channel: ChannelID, as author: Author?, stamp: Stamp?) async throws(FerryError) {
    guard let provider = inner as? any DeletingProvider else { throw Self.missing("a delete") }
    try await provider.delete(id, in: channel, as: author, stamp: stamp)
  }

  // MARK: Everything else

  func setTyping(_ typing: Typing) async throws(FerryError) {
    guard let provider = inner as? any TypingProvider else { throw Self.missing("typing") }
    let now = ContinuousClock.now
    notes.withLock { notes in
      // A busy machine may have held the one before back: what is not throttled at all comes at once.
      if typing.on, let last = notes.typing[typing.by.id], now - last < .milliseconds(400) / haste {
        notes.hasty[typing.by.id, default: 0] += 1
      }
      notes.typing[typing.by.id] = typing.on ? now : nil
    }
    try await provider.setTyping(typing)
  }

  func upload(
    _ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID
  ) async throws(FerryError) -> AttachmentReference {
    guard let provider = inner as? any UploadingProvider else { throw Self.missing("an upload") }
    return try await provider.upload(bytes, name: name, mediaType: mediaType, to: channel)
  }

  func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    try await inner.attachment(reference)
  }

  func channels() async throws(FerryError) -> [ChannelSummary] { try await inner.channels() }

  func members(of channel: ChannelID) async throws(FerryError) -> [Author] {
    guard let provider = inner as? any MembershipProvider else { throw Self.missing("members") }
    return try await provider.members(of: channel)
  }

  func setMember(_ membership: Membership, of channel: ChannelID, present: Bool) async throws(FerryError) {
    guard let provider = inner as? any MembershipProvider else { throw Self.missing("a member") }
    try await provider.setMember(membership, of: channel, present: present)
  }

  func mark(_ mark: ReadMark, in channel: ChannelID) async throws(FerryError) {
    guard let provider = inner as? any ReadingProvider else { throw Self.missing("a mark") }
    try await provider.mark(mark, in: channel)
  }

  func react(_ reaction: Reaction, in channel: ChannelID) async throws(FerryError) {
    guard let provider = inner as? any ReactingProvider else { throw Self.missing("a reaction") }
    try await provider.react(reaction, in: channel)
  }
}
