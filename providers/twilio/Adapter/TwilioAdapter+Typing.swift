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
    try await add(settings.identity, name: "", nil, isOwn: true, to: channel)
    await introduce()
  }

  /// Gives Ferry's identity its name, once, unless somebody gave it another: clients show it when anybody types.
  private func introduce() async {
    let wasIntroduced = isIntroduced.withLock { known in
      defer { known = true }
      return known
    }
    if wasIntroduced { return }
    let url = api.url("Users", settings.identity)
    do throws(FerryError) {
      let name = try await api.get(url, doing: "read Ferry's own name")["friendly_name"]?.string ?? ""
      guard name.isEmpty || name == settings.identity else { return }
      try await api.post(url, [("FriendlyName", settings.typingName)], doing: "name Ferry's identity")
    } catch {
      isIntroduced.withLock { $0 = false }
      logger.debug("typing is shown as \(settings.identity): \(error)")
    }
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
