import FerryConfig
import FerryCore
import FerryRuntime
import Testing

@testable import TwilioProvider

@Suite struct TwilioAdapterSettingsTests {
  private static let account = "AC" + String(repeating: "1", count: 32)
  private static let key = "SK" + String(repeating: "2", count: 32)
  private static let service = "IS" + String(repeating: "3", count: 32)

  private func settings(_ yaml: String) throws -> TwilioAdapter.Settings {
    try TwilioAdapter.Settings(ConfigNode.parse("{account_sid: \(Self.account), \(yaml)}").mapping())
  }

  @Test func `the defaults lead to Twilio's own hosts`() throws {
    let settings = try settings("auth_token: t")
    #expect(settings.api == "https://conversations.twilio.com")
    #expect(settings.media == "https://mcs.us1.twilio.com")
    #expect(settings.realtime == "wss://tsock.us1.twilio.com")
    #expect(settings.pollInterval(isCalled: false) == .seconds(5))
    #expect(settings.pollInterval(isCalled: true) == .seconds(30))
    #expect(settings.pollWindow == 100)
    #expect(!settings.create && !settings.messaging && !settings.webhookSetup && !settings.canType)
    #expect(settings.identity == "ferry")
    #expect(settings.addReaders)
  }

  @Test func `region and edge choose other hosts`() throws {
    let both = try settings("auth_token: t, region: ie1, edge: dublin")
    #expect(both.api == "https://conversations.dublin.ie1.twilio.com")
    #expect(both.media == "https://mcs.ie1.twilio.com")
    #expect(both.realtime == "wss://tsock.ie1.twilio.com")
    #expect(try settings("auth_token: t, edge: sydney").api == "https://conversations.sydney.us1.twilio.com")
    #expect(try settings("auth_token: t, region: au1").api == "https://conversations.au1.twilio.com")
  }

  @Test func `one address serves everything unless others are given`() throws {
    var settings = try settings("auth_token: t, api_url: 'http://127.0.0.1:0/'")
    #expect(settings.media == "http://127.0.0.1:0")
    #expect(settings.realtime == "ws://127.0.0.1:0")
    settings.fill(port: 8081)
    #expect(settings.api == "http://127.0.0.1:8081")
    #expect(settings.media == "http://127.0.0.1:8081")
    #expect(settings.realtime == "ws://127.0.0.1:8081")
    let apart = try self.settings(
      "auth_token: t, api_url: 'https://a.example', media_url: 'https://m.example', realtime_url: 'wss://r.example'")
    #expect(apart.api == "https://a.example")
    #expect(apart.media == "https://m.example")
    #expect(apart.realtime == "wss://r.example")
  }

  @Test func `everything else is read`() throws {
    var settings = try settings(
      """
      auth_token: t, api_key: \(Self.key), api_secret: s, service_sid: \(Self.service), identity: bot,
      webhook: 'http://127.0.0.1:0/hooks/support?tenant=7', webhook_setup: true, signature_keys: {rule: secret},
      poll: 2s, poll_window: 250, create: true, messaging: true, add_readers: false, writes_per_second: 100
      """)
    #expect(settings.canType)
    #expect(settings.identity == "bot")
    #expect(settings.signatureKeys["rule"]?.reveal() == "secret")
    #expect(settings.poll == .seconds(2))
    #expect(settings.pollWindow == 250)
    #expect(settings.create && settings.messaging && settings.webhookSetup && !settings.addReaders)
    #expect(settings.writesPerSecond == 100)
    settings.fill(webhookPort: 8090)
    #expect(settings.webhook == "http://127.0.0.1:8090/hooks/support?tenant=7")
    #expect(settings.pollInterval(isCalled: true) == .seconds(2))
  }

  @Test func `an API key alone is enough for what needs no webhook`() throws {
    let settings = try settings("api_key: \(Self.key), api_secret: s")
    #expect(settings.authToken == nil)
    #expect(!settings.canType)
  }

  @Test(arguments: [
    "", "auth_token: t, region: 'a/b'", "auth_token: t, api_url: ftp://x",
    "auth_token: t, api_url: 'http://x', region: ie1",
    "auth_token: t, realtime_url: 'http://x'", "auth_token: t, service_sid: IS1",
    "auth_token: t, api_key: SK1, api_secret: s",
    "auth_token: t, api_key: \(key)", "auth_token: t, api_secret: s", "auth_token: t, api_key: \(key), api_secret: s",
    "auth_token: t, webhook: x", "auth_token: t, webhook: 'https://h.example'",
    "auth_token: t, webhook: 'https://h/x#y'",
    "auth_token: t, webhook_setup: true", "api_key: \(key), api_secret: s, webhook: 'https://h.example/x'",
    "auth_token: t, poll: 1ms", "auth_token: t, poll: 2d", "auth_token: t, poll_window: 0",
    "auth_token: t, poll_window: 1001",
    "auth_token: t, identity: ''", "auth_token: t, identity: US00000000000000000000000000000001",
    "auth_token: t, writes_per_second: 0", "auth_token: t, creat: true", "auth_token: t, messaging: 1",
  ])
  func `what is wrong is told with its place`(yaml: String) {
    let error = #expect(throws: FerryError.self) { try settings(yaml) }
    #expect(error?.code == .badConfiguration)
    #expect(error?.message.hasPrefix("ferry.yaml:1:") == true, "\(error?.message ?? "")")
  }

  @Test func `an account is written as its SID`() {
    #expect(throws: FerryError.self) {
      try TwilioAdapter.Settings(ConfigNode.parse("{account_sid: AC1, auth_token: t}").mapping())
    }
  }

  @Test func `an address names everything`() throws {
    let hosted = try #require(
      try TwilioAdapter.settings(fromURL: "twilio://\(Self.account):T%2FK@conversations.twilio.com/my%20room"))
    #expect(hosted.channel == "my room")
    #expect(hosted.settings.authToken?.reveal() == "T/K")
    #expect(hosted.settings.api == "https://conversations.twilio.com")
    #expect(hosted.settings.media == "https://mcs.us1.twilio.com")
    let region = try #require(
      try TwilioAdapter.settings(fromURL: "twilio://\(Self.account):t@conversations.dublin.ie1.twilio.com/x"))
    #expect(region.settings.api == "https://conversations.dublin.ie1.twilio.com")
    #expect(region.settings.media == "https://mcs.ie1.twilio.com")
    let own = try #require(try TwilioAdapter.settings(fromURL: "twilio+http://\(Self.key):s@127.0.0.1:8081/lobby"))
    #expect(own.settings.api == "http://127.0.0.1:8081")
    #expect(own.settings.realtime == "ws://127.0.0.1:8081")
    #expect(own.settings.authToken == nil)
    #expect(own.settings.apiKey == Self.key)
    #expect(try TwilioAdapter.settings(fromURL: "pusher://x") == nil)
  }

  @Test(arguments: [
    "twilio://", "twilio://\(account):t@h", "twilio://\(account)@h/c", "twilio://AC1:t@h/c", "twilio://\(account):@h/c",
    "twilio://\(account):t@h/", "twilio://\(account):t@/c",
  ])
  func `half an address is refused`(url: String) {
    #expect(throws: FerryError.self) { try TwilioAdapter.settings(fromURL: url) }
  }

  @Test func `capabilities say what is missing and why`() {
    let plain = TwilioAdapter.capabilities(typing: false)
    #expect(!plain.typing)
    #expect(plain.absent["typing"]?.contains("api_key") == true)
    #expect(plain.bodyBytes == 32_768)
    #expect(plain.bodyCharacters == nil)
    #expect(plain.attachmentsPerMessage == 1)
    #expect(!plain.captions)
    #expect(plain.sendsPerSecond == 30)
    let phones = TwilioAdapter.capabilities(typing: true, messaging: true)
    #expect(phones.typing)
    #expect(phones.absent["typing"] == nil)
    #expect(phones.absent["typing names"] != nil)
    #expect(phones.bodyCharacters == 1600)
  }
}
