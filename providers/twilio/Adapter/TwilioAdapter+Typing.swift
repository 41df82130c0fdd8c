package import FerryCore
import FerryRuntime

extension TwilioAdapter: TypingProvider {
  /// As Ferry's own identity, because Twilio takes nobody's typing but that of whoever holds the token. The end of typing
  /// is never sent: it follows from silence.
  package func setTyping(_ typing: Typing) async throws(FerryError) {
    guard let realtime else {
      throw FerryError(
        .unsupported, capabilities.absent["typing"] ?? "Typing needs api_key, api_secret and service_sid.")
    }
    guard typing.on else { return }
    let conversation = try await sid(of: typing.channel)
    do throws(FerryError) { try await realtime.type(in: conversation) } catch {
      // Only a participant may type.
      guard error.code == .forbidden || error.code == .notFound else { throw error }
      try await join(typing.channel)
      try await realtime.type(in: conversation)
    }
  }

  /// Makes Ferry's identity a participant, without which it neither hears nor shows typing.
  func join(_ channel: ChannelID) async throws(FerryError) {
    try await add(settings.identity, name: "", nil, to: channel)
  }

  /// What a conversation needs that messages do not wait for.
  func prepare(_ channel: ChannelID, _ conversation: String) async {
    if settings.webhook != nil { await checkWebhook(of: channel, conversation) }
    guard realtime != nil else { return }
    do throws(FerryError) { try await join(channel) } catch {
      if !Task.isCancelled { logger.warning("\(channel): typing is not carried: \(error)") }
    }
  }
}
