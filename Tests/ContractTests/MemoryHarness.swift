import FerryCore
import FerryRuntime
import FerryTestKit

struct MemoryHarness: ProviderHarness {
  let channel: ChannelID = "room"
  let provider: MemoryProvider
  var proxy: FaultProxy? { nil }

  init(adjust: (inout Capabilities) -> Void = { _ in }) { provider = MemoryProvider(adjust: adjust) }

  func makeProvider(goodCredentials: Bool) -> any ChatProvider {
    goodCredentials ? provider : MemoryProvider(credentialsAreGood: false)
  }

  func say(_ text: String, by author: Author) async { provider.say(text, by: author, in: channel) }

  func watch() async -> any ChannelWatcher {
    Watcher(provider: provider, channel: channel, start: provider.messages(in: channel).count)
  }

  func close() async {}

  private struct Watcher: ChannelWatcher {
    let provider: MemoryProvider
    let channel: ChannelID
    let start: Int

    func messages(_ count: Int) async -> [Seen] {
      await provider.wait(in: channel) { messages in
        let new = messages.dropFirst(start).map { Seen(author: $0.author.name, text: $0.text) }
        return new.count >= count ? new : nil
      } ?? []
    }

    func close() async {}
  }
}

/// A harness whose provider writes everything twice.
struct DoublingHarness: ProviderHarness {
  private let inner = MemoryHarness()
  var channel: ChannelID { inner.channel }
  var proxy: FaultProxy? { nil }

  func makeProvider(goodCredentials: Bool) -> any ChatProvider { Doubling(inner: inner.provider) }
  func say(_ text: String, by author: Author) async { await inner.say(text, by: author) }
  func watch() async -> any ChannelWatcher { await inner.watch() }
  func close() async {}

  private struct Doubling: ChatProvider {
    let inner: MemoryProvider
    var capabilities: Capabilities { inner.capabilities }

    func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
      try await inner.run(subscriptions, into: inbox)
    }

    func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
      _ = try await inner.post(message, to: channel)
      return try await inner.post(message, to: channel)
    }

    func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
      try await inner.find(key, in: channel)
    }

    func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
      try await inner.attachment(reference)
    }

    func channels() async throws(FerryError) -> [ChannelSummary] { try await inner.channels() }
  }
}
