import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite struct FacadeSettingsTests {
  private let good = """
    {account_sid: AC00000000000000000000000000000001, auth_token: t, api_key: SK00000000000000000000000000000001,
     api_secret: s, service_sid: IS00000000000000000000000000000001
    """

  @Test func `every key is read`() throws {
    let more = """
      , public_url: "https://e.org/", conversations: [lobby, hall], pre_webhook_retry_count: 1,
      post_webhook_retry_count: 3, typing_timeout: 7s}
      """
    let settings = try TwilioFacade.Settings(ConfigNode.parse(good + more).mapping())
    #expect(settings.publicURL == "https://e.org")
    #expect(settings.conversations == ["lobby", "hall"])
    #expect(settings.preWebhookRetries == 1)
    #expect(settings.postWebhookRetries == 3)
    #expect(settings.typingTimeout == 7)
    #expect(settings.chatLimits.typingLasts == .seconds(7))
    #expect(try TwilioFacade.Settings(ConfigNode.parse(good + "}").mapping()).conversations == [])
  }

  @Test(
    "what is wrong is told with its place",
    arguments: [
      ", typing_timeout: 0s}", ", public_url: e.org}", ", conversations: [CH00000000000000000000000000000001]}",
      ", post_webhook_retry_count: 4}", ", apikey: x}", ", conversations: ''}",
    ])
  func wrong(more: String) throws {
    let error = #expect(throws: FerryError.self) {
      try TwilioFacade.Settings(ConfigNode.parse(good + more).mapping())
    }
    #expect(error?.code == .badConfiguration)
  }

  @Test func `a SID of another kind is refused`() throws {
    let error = #expect(throws: FerryError.self) {
      try TwilioFacade.Settings(ConfigNode.parse(good.replacing("SK0", with: "AC0") + "}").mapping())
    }
    #expect(error?.message.contains("api_key") == true)
  }
}
