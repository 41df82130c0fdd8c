import FerryCore
import FerryRuntime

/// A message as the destination's limits make it.
extension Importer {
  /// An attachment of the source that goes with a part.
  struct File: Hashable, Sendable {
    let attachment: Attachment
    let state: FileState
  }

  struct FittedPart: Sendable {
    /// Texts count from zero; attachments that travel apart are named by their content, as the relay does.
    let number: Int
    var message: PastMessage
    var files: [File]

    var isText: Bool { number < Importer.firstApart }
  }

  static let firstApart = 1 << 20
  static let noReply = "the message replied to is not there"

  /// `known` are the parts that the destination has: a file that travels apart is not uploaded again.
  func fit(_ record: MessageRecord, known: Set<Int>) async throws(FerryError) -> [FittedPart] {
    let message = record.message
    var inline: [(File, OutgoingAttachment)] = []
    var apart: [(number: Int, file: File, sent: OutgoingAttachment?)] = []
    let layout = MessageLayout(provider.capabilities)
    for (index, attachment) in message.attachments.enumerated() {
      let file = File(attachment: attachment, state: record.file(at: index))
      guard let number = await number(of: file, message.id, index) else { continue }
      let place = layout.place(ofSize: attachment.size, inline: inline.count)
      if place == .apart, known.contains(number) {
        apart.append((number, file, nil))
        continue
      }
      guard let sent = try await carry(file, of: message.id, place) else { continue }
      if place == .inline { inline.append((file, sent)) } else { apart.append((number, file, sent)) }
    }
    var text = message.text
    if text.isEmpty, !message.attachments.isEmpty, inline.isEmpty, apart.isEmpty {
      // Nothing would be left of it.
      text = message.attachments.map { "[\($0.name)]" }.joined(separator: " ")
    }
    var past = PastMessage(
      author: author(message.author), text: "", format: message.format, edited: message.edited,
      revision: message.revision, mentions: message.mentions.map { settings.authors[$0] ?? $0 },
      isAction: record.isAction, system: record.system)
    if let reply = message.replyTo {
      past.replyTo = reference(to: reply)
      if past.replyTo == nil { lose("reply", message.id.rawValue, Self.noReply) }
    }
    var parts: [FittedPart] = []
    let texts = layout.texts(of: text, inline: inline.count, apart: apart.count)
    for (index, text) in texts.enumerated() {
      var part = past
      part.text = text
      let isLast = index == texts.count - 1
      part.attachments = isLast ? inline.map(\.1) : []
      parts.append(FittedPart(number: index, message: part, files: isLast ? inline.map(\.0) : []))
      past.replyTo = nil
    }
    for (number, file, sent) in apart {
      var part = past
      part.attachments = sent.map { [$0] } ?? []
      var number = number
      while parts.contains(where: { $0.number == number }) { number += 1 }
      parts.append(FittedPart(number: number, message: part, files: [file]))
      past.replyTo = nil
    }
    return parts
  }

  /// From the content where it is known, as the relay's numbers are; nil when the file is not to be carried.
  private func number(of file: File, _ message: MessageID, _ index: Int) async -> Int? {
    if let sha256 = file.attachment.sha256, let number = Int(sha256.prefix(8), radix: 16) {
      return Self.firstApart + number
    }
    let name = "\(message)/\(index)/\(file.attachment.name)"
    return Self.firstApart + (Int(Crypto.hex(Crypto.digest(.sha256, of: name.utf8).prefix(4)), radix: 16) ?? index)
  }

  /// Nil, and reported, when the destination does not get the file.
  private func carry(
    _ file: File, of message: MessageID, _ place: MessageLayout.Place
  ) async throws(FerryError) -> OutgoingAttachment? {
    func lost(_ reason: String, _ detail: String? = nil) -> OutgoingAttachment? {
      lose("attachment", message.rawValue, reason, "\(file.attachment.name)\(detail.map { ": \($0)" } ?? "")")
      return nil
    }
    guard settings.attachments else { return lost("left out, as asked") }
    guard place != .link, provider.capabilities.attachments == .stored else {
      return lost(provider.capabilities.attachments == .stored ? "too large there" : "the destination stores no files")
    }
    if settings.isPlan {
      return OutgoingAttachment(
        name: file.attachment.name, mediaType: file.attachment.mediaType, size: file.attachment.size ?? 0,
        sha256: file.attachment.sha256 ?? "", reference: file.attachment.reference)
    }
    switch await Patience.outcome({ () async throws(FerryError) in try await upload(file) }) {
    case .success(.some(let sent)):
      progress.update { counts in
        counts.attachments += 1
        counts.attachmentBytes += sent.size
      }
      return sent
    case .success(nil):
      return lost(file.state.status.map { "not in the source: \($0.rawValue)" } ?? "not in the source")
    case .failure(let error):
      if [.cancelled, .storage, .badCredentials].contains(error.code) { throw error }
      return lost("could not be carried: \(error.code.label)", error.message)
    }
  }

  /// Nil where the source lacks the bytes.
  func upload(_ file: File) async throws(FerryError) -> OutgoingAttachment? {
    guard let uploading = provider as? any UploadingProvider else { return nil }
    let (source, channel) = (source, channel)
    let attachment = file.attachment
    return try await patience.repeating { () async throws(FerryError) -> OutgoingAttachment? in
      guard let bytes = try await source.bytes(of: attachment, file.state) else { return nil }
      let meter = Meter(bytes)
      let sized = ByteStream(size: bytes.size ?? attachment.size, mediaType: attachment.mediaType) {
        () async throws(FerryError) in try await meter.next()
      }
      let reference = try await uploading.upload(
        sized, name: attachment.name, mediaType: attachment.mediaType, to: channel)
      let (sha256, size) = meter.sum
      return OutgoingAttachment(
        name: attachment.name, mediaType: attachment.mediaType, size: size, sha256: sha256, reference: reference)
    }
  }

  /// Measures bytes on their way.
  ///
  /// `@unchecked Sendable` because a stream is read by one task at a time, and the sum is asked for after its end.
  private final class Meter: @unchecked Sendable {
    private let bytes: ByteStream
    private var digest: IncrementalDigest? = IncrementalDigest(.sha256)
    private var size: Int64 = 0

    init(_ bytes: ByteStream) { self.bytes = bytes }

    func next() async throws(FerryError) -> [UInt8]? {
      guard let piece = try await bytes.next() else { return nil }
      digest?.update(piece)
      size += Int64(piece.count)
      return piece
    }

    var sum: (sha256: String, size: Int64) {
      guard var digest = digest.take() else { return ("", size) }
      return (Crypto.hex(digest.finish()), size)
    }
  }
}
