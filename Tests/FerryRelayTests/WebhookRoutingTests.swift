import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FerryTransport
import Testing

/// An account whose service calls us.
private struct Called: WebhookReceiver {
  let inner = MemoryProvider()
  let webhookPath: String?
  var capabilities: Capabilities { inner.capabilities }

  func webhook(_ request: HTTPRequest) async -> HTTPResponse { .text("\(webhookPath ?? "") got \(request.rawQuery)") }

  func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    try await inner.run(subscriptions, into: inbox)
  }
  func post(_ message: OutgoingMessage, to channel: ChannelID) async throws(FerryError) -> MessageID {
    try await inner.post(message, to: channel)
  }
  func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    try await inner.find(key, in: channel)
  }
  func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    try await inner.attachment(reference)
  }
  func channels() async throws(FerryError) -> [ChannelSummary] { try await inner.channels() }
}

@Suite struct WebhookRoutingTests {
  private func withRelay(_ accounts: [AccountName: any ChatProvider], _ body: (Relay) async throws -> Void) async throws
  {
    let folder = try TemporaryFolder()
    let journal = try Journal(path: folder.file("journal.db"))
    defer { journal.close() }
    try await body(
      try Relay(
        Relay.Settings(
          accounts: accounts, bridges: [], journal: journal, spool: try Spool(folder: folder.file("spool"), limit: 1),
          publicURL: "http://127.0.0.1:1")))
  }

  @Test func requestsReachTheAccountWhosePathTheyName() async throws {
    let accounts: [AccountName: any ChatProvider] = [
      "a": Called(webhookPath: "/hooks/a"), "b": Called(webhookPath: "/hooks/b ü"), "c": Called(webhookPath: nil),
    ]
    try await withRelay(accounts) { relay async throws in
      let listener = try RelayListener(relay: relay, token: nil)
      for (path, answer) in [("/hooks/a", "/hooks/a got x=1"), ("/hooks/b%20%C3%BC", "/hooks/b ü got x=1")] {
        let response = await listener.handle(HTTPRequest(method: "POST", path: path, rawQuery: "x=1"))
        guard case .bytes(let bytes) = response.body else {
          Issue.record("no answer")
          return
        }
        #expect(String(decoding: bytes, as: UTF8.self) == answer)
      }
      #expect(await listener.handle(HTTPRequest(method: "POST", path: "/hooks")).status == 404)
      #expect(await listener.handle(HTTPRequest(method: "POST", path: "/hooks/a/more")).status == 404)
    }
  }

  @Test func twoAccountsAtOnePathAreRefused() async throws {
    try await withRelay(["a": Called(webhookPath: "/x"), "b": Called(webhookPath: "/x")]) { relay async throws in
      let error = #expect(throws: FerryError.self) { try RelayListener(relay: relay, token: nil) }
      #expect(error?.code == .badConfiguration)
    }
  }
}
