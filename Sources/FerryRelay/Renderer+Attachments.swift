import FerryCore
import FerryRuntime
import FerryStorage

/// Attachments: fetched to the spool, then uploaded, served under a link, or named in a note.
extension Renderer {
  /// What becomes of a message's attachments.
  struct Cargo {
    /// Carried by the last part of the text.
    var inline: [OutgoingAttachment] = []
    /// Messages of their own, where the destination takes no more in one; nil for those it has already.
    var apart: [(number: Int, attachment: OutgoingAttachment?)] = []
    /// A line of text for each that goes as a link, or is not mirrored.
    var notes: [String] = []
    /// A line of text for each that could not be had.
    var failures: [String] = []

    /// Parts that are attachments and none of these.
    func unmatched(in known: Set<Int>) -> [Int] {
      known.filter { number in number >= firstApart && !apart.contains { $0.number == number } }.sorted()
    }
  }

  /// Numbers of parts that are attachments lie above all numbers of texts.
  static let firstApart = 1 << 20
  /// The number of the part that tells of attachments that could not be had, where the text was sent before.
  static let failurePart = firstApart - 1

  /// After so much waiting a message goes without an attachment that cannot be had: its text is worth more by then.
  private static let fetching = Duration.seconds(120)
  /// The same for one that its destination does not take: it is mostly the whole service that is away, and then
  /// nothing is gained by a note.
  private static let uploading = Duration.seconds(20 * 60)

  func cargo(of message: Message, from source: Address, known: Set<Int>) async throws(FerryError) -> Cargo {
    guard bridge.mirror.contains(.images) else {
      return Cargo(notes: message.attachments.map { "[\($0.name)]" })
    }
    var cargo = Cargo()
    for (index, attachment) in message.attachments.enumerated() {
      var limit = Self.fetching
      do throws(FerryError) {
        let origin = Spool.Origin(source: source, message: message.id, revision: message.revision, index: index)
        let file = try await fetch(attachment, from: origin)
        Failpoint.afterFetch.pass()
        limit = Self.uploading
        try await load(attachment, file, known: known, into: &cargo)
      } catch {
        if error.code == .storage || error.code == .cancelled { throw error }
        if error.retry != .never, !patience.isOver(after: limit, index, of: message.id) { throw error }
        logger.warning("\(lane): attachment of \(message.id) not carried: \(error)")
        cargo.failures.append("[\(attachment.name) could not be copied: \(error.message)]")
      }
    }
    return cargo
  }

  private func fetch(_ attachment: Attachment, from origin: Spool.Origin) async throws(FerryError) -> Spool.File {
    if let file = spool.file(from: origin) { return file }
    guard let provider = sources[origin.source.account] else {
      throw FerryError(.internal, "The account \(origin.source.account) is no longer configured.")
    }
    let bytes = try await provider.attachment(attachment.reference)
    let file = try await spool.store(bytes, declaredType: attachment.mediaType)
    spool.remember(file, from: origin)
    try await spool.trim { sha256 async throws(FerryError) in try await journal.isServed(sha256: sha256) }
    return file
  }

  private func load(
    _ attachment: Attachment, _ file: Spool.File, known: Set<Int>, into cargo: inout Cargo
  ) async throws(FerryError) {
    switch MessageLayout(limits).place(ofSize: file.size, inline: cargo.inline.count) {
    case .link:
      let size = limits.attachments == .none ? "" : " (\(file.size) bytes)"
      cargo.notes.append("\(attachment.name)\(size): \(try await link(attachment.name, file))")
    case .inline: cargo.inline.append(try await deliver(attachment, file))
    case .apart:
      var number = Self.number(of: file)
      while cargo.apart.contains(where: { $0.number == number }) { number += 1 }
      cargo.apart.append((number, known.contains(number) ? nil : try await deliver(attachment, file)))
    }
  }

  /// From the content, so that an edit finds the attachments that stayed.
  private static func number(of file: Spool.File) -> Int {
    firstApart + (Int(file.sha256.prefix(8), radix: 16) ?? 0)
  }

  private func deliver(
    _ attachment: Attachment, _ file: Spool.File
  ) async throws(FerryError) -> OutgoingAttachment {
    guard limits.attachments == .stored else {
      let url = try await link(attachment.name, file)
      Failpoint.afterUpload.pass()
      return outgoing(attachment.name, file, .url(url))
    }
    guard let uploading = destination as? any UploadingProvider else {
      throw FerryError(.internal, "The provider stores attachments but has no way to upload them.")
    }
    let reference = try await uploading.upload(
      try spool.read(file), name: attachment.name, mediaType: file.mediaType, to: lane.destination.channel)
    Failpoint.afterUpload.pass()
    return outgoing(attachment.name, file, reference)
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
