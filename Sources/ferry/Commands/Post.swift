import FerryCore
import FerryRuntime
import FoundationEssentials
import Glibc

/// `ferry post`: one message, edit, delete or typing notice, to any backend.
enum Post {
  static let command = Command(
    name: "post", positional: ["ADDRESS", "[TEXT]"],
    summary: "Post a message to a channel. Prints the message's id.",
    options: [
      .init("as", "NAME", "the author's name (else your login name)"),
      .init("image", "FILE", "attach a file, or the http(s) URL of one"),
      .init("reply", "ID", "reply to that message"),
      .init("edit", "ID", "replace that message's text instead"),
      .init("delete", "ID", "delete that message instead"),
      .init("typing", "SECONDS", "show that you are typing, for so long"),
      .init("key", "KEY", "make the post idempotent: the same key posts once"),
      Commands.jsonOption, Commands.configOption, Commands.verboseOption,
    ],
    notes: """
      TEXT comes from standard input when it is '-' or missing and input is piped.

      \(Commands.addressNotes)

      Examples:
        ferry post here:lobby "hello" --as guest7
        make 2>&1 | tail -5 | ferry post site:builds - --as ci --key "build-$N"
      """,
    run: run)

  private static let textLimit = 1 << 20

  private static func run(_ invocation: Invocation) async throws -> Int32 {
    let arguments = invocation.arguments
    let (provider, address, session) = try Session.open(arguments.positional[0], arguments)
    let author = author(arguments)
    if let id = arguments["delete"] {
      guard let deleting = provider as? any DeletingProvider, provider.capabilities.deletes else {
        throw unsupported("delete messages", address)
      }
      try await deleting.delete(
        MessageID(id), in: address.channel, as: arguments.has("as") ? author : nil, stamp: nil)
      return 0
    }
    if arguments.has("typing") { return try await type(author, provider, address, invocation) }

    let text = try text(arguments)
    var message = OutgoingMessage(
      key: SendKey(arguments["key"] ?? "post-\(Crypto.randomHex(bytes: 12))"), author: author, text: text,
      time: session.clock.now(), replyTo: arguments["reply"].map { MessageID($0) })
    if let file = arguments["image"] {
      message.attachments = [try await attachment(file, provider, address)]
    }
    try checkLimits(message, provider.capabilities, address)
    if let id = arguments["edit"] {
      guard let editing = provider as? any EditingProvider, provider.capabilities.edits else {
        throw unsupported("edit messages", address)
      }
      try await editing.edit(MessageID(id), in: address.channel, to: message)
      return 0
    }
    let id = try await send(message, isKeyed: arguments.has("key"), provider, address.channel)
    Terminal.output(
      arguments.has("json") ? try Terminal.json(["address": address.description, "id": id.rawValue]) : id.rawValue)
    return 0
  }

  /// A send whose outcome is unknown is settled once by asking; the user learns what is still unknown (exit 76).
  private static func send(
    _ message: OutgoingMessage, isKeyed: Bool, _ provider: any ChatProvider, _ channel: ChannelID
  ) async throws(FerryError) -> MessageID {
    // Another process may have used the key before. Where the provider itself does not refuse it, it is asked.
    if isKeyed, provider.capabilities.settleSeconds > 0,
      case .found(let id) = try await provider.find(message.key, in: channel)
    {
      return id
    }
    do throws(FerryError) {
      return try await provider.post(message, to: channel)
    } catch {
      guard !error.didNotAct else { throw error }
      if case .found(let id)? = try? await provider.find(message.key, in: channel) { return id }
      throw FerryError(
        .outcomeUnknown,
        "\(error.message) The message may have been posted all the same: look with 'ferry history'. What is posted with "
          + "--key KEY may be posted again without coming twice.", retry: error.retry, didNotAct: false,
        cause: error.cause)
    }
  }

  private static func author(_ arguments: Arguments) -> Author {
    let name = arguments["as"] ?? ProcessInfo.processInfo.environment["USER"] ?? "ferry"
    return Author(id: UserID(name), name: name)
  }

  private static func text(_ arguments: Arguments) throws -> String {
    let given = arguments.positional.count > 1 ? arguments.positional[1] : nil
    if let given, given != "-", !given.isEmpty || arguments.has("image") { return given }
    if given == "" { throw arguments.fail("the TEXT to post is empty") }
    if given == "-" || (!Terminal.inputIsTerminal && !arguments.has("image")) {
      let text = try Terminal.readInput(limit: textLimit)
      if !text.isEmpty || arguments.has("image") { return text }
    }
    guard arguments.has("image") else { throw arguments.fail("there is no TEXT to post") }
    return ""
  }

  private static func checkLimits(
    _ message: OutgoingMessage, _ capabilities: Capabilities, _ address: Address
  ) throws(FerryError) {
    if let limit = capabilities.bodyBytes, message.text.utf8.count > limit {
      throw FerryError(
        .tooLarge,
        "The text has \(message.text.utf8.count) bytes; \(address) takes at most \(limit). Shorten or split it.")
    }
  }

  private static func type(
    _ author: Author, _ provider: any ChatProvider, _ address: Address, _ invocation: Invocation
  ) async throws -> Int32 {
    guard let typing = provider as? any TypingProvider, provider.capabilities.typing else {
      throw unsupported("show typing", address)
    }
    let seconds = try invocation.arguments.integer("typing", in: 0...3600, default: 1)
    var left = seconds
    while left > 0 {
      try await typing.setTyping(Typing(channel: address.channel, by: author, on: true))
      // Renewed before the 5 seconds after which it ends by itself.
      let step = min(left, 3)
      try await SystemClock().sleep(for: .seconds(step))
      left -= step
    }
    try await typing.setTyping(Typing(channel: address.channel, by: author, on: false))
    return 0
  }

  private static func attachment(
    _ file: String, _ provider: any ChatProvider, _ address: Address
  ) async throws -> OutgoingAttachment {
    let name = String(file.split(separator: "/").last ?? "file")
    if file.hasPrefix("http://") || file.hasPrefix("https://") {
      return OutgoingAttachment(
        name: String(name.prefix { $0 != "?" }), mediaType: MediaType.guess(fromName: name), size: 0, sha256: "",
        reference: .url(file))
    }
    guard let uploading = provider as? any UploadingProvider, provider.capabilities.attachments == .stored else {
      throw FerryError(
        .unsupported,
        "\(address) stores no files. Give --image the http(s) URL of one, or post to an address that is bridged to it.")
    }
    let opened = try LocalFile(path: file)
    let type = MediaType.guess(fromName: name)
    if let limit = provider.capabilities.attachmentBytes, opened.size > limit {
      throw FerryError(.tooLarge, "\(file) has \(opened.size) bytes; \(address) takes at most \(limit).")
    }
    let (sha256, bytes) = try opened.contents(type)
    let reference = try await uploading.upload(bytes, name: name, mediaType: type, to: address.channel)
    return OutgoingAttachment(name: name, mediaType: type, size: opened.size, sha256: sha256, reference: reference)
  }

  private static func unsupported(_ what: String, _ address: Address) -> FerryError {
    FerryError(.unsupported, "The provider of \(address) cannot \(what). See 'ferry providers'.")
  }
}
