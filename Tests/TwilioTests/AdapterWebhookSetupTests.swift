import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(3))) struct TwilioWebhookSetupTests {
  private func scoped(
    _ url: String, method: String = "post", filters: [String] = WebhookEvent.filters, sid: String = "WH1"
  )
    -> JSONValue
  {
    [
      "sid": .string(sid), "target": "webhook",
      "configuration": [
        "url": .string(url), "method": .string(method), "filters": .array(filters.map { .string($0) }),
      ],
    ]
  }

  private func action(_ records: [JSONValue]) -> TwilioAdapter.WebhookAction {
    TwilioAdapter.action(for: "https://h.example/hooks/a?t=1", given: records)
  }

  @Test func `one's own webhook is found, renewed or made`() {
    #expect(action([]) == .create)
    #expect(action([scoped("https://h.example/hooks/a?t=1", filters: WebhookEvent.filters + ["onUserAdded"])]) == .none)
    #expect(action([scoped("https://h.example/hooks/a?t=1", method: "get")]) == .update(sid: "WH1"))
    #expect(action([scoped("https://h.example/hooks/a?t=1", filters: ["onMessageAdded"])]) == .update(sid: "WH1"))
    // A tunnel has another name after a restart.
    #expect(action([scoped("https://old.example/hooks/a?t=1")]) == .update(sid: "WH1"))
    #expect(action([scoped("https://h.example/hooks/b")]) == .create)
    #expect(action([["sid": "WH2", "target": "studio"]]) == .create)
    #expect(action((0..<5).map { scoped("https://h.example/\($0)") }) == .noRoom)
    #expect(action([.null, "x", ["target": "webhook"]]) == .create)
  }

  @Test func `a conversation's webhook is created`() async throws {
    let twilio = ScriptedTwilio()
    try await AdapterRig.listening(
      twilio: twilio,
      adjust: { settings in
        settings.webhook = AdapterRig.webhook
        settings.webhookSetup = true
      }
    ) { rig in
      let request = await twilio.state.wait { state in
        state.requests.first { $0.line.hasSuffix("/Webhooks") && $0.method == "POST" }
      }
      #expect(request?.form["Target"] == "webhook")
      #expect(request?.form["Configuration.Url"] == AdapterRig.webhook)
      #expect(request?.form["Configuration.Method"] == "post")
      #expect(request?.form.all("Configuration.Filters") == WebhookEvent.filters)
    }
  }

  @Test func `when nothing points here, a person is told`() async throws {
    let lines = Observed<[String]>([])
    let logger = Logger(component: "test", level: .warning, write: { line in lines.update { $0.append(line) } })
    try await AdapterRig.with(
      listening: Subscription(channel: "lobby"), logger: logger, adjust: { $0.webhook = AdapterRig.webhook }
    ) { rig in
      let line = await lines.wait { $0.first { $0.contains("webhook") } }
      #expect(line?.contains("webhook_setup: true") == true)
    }
  }
}
