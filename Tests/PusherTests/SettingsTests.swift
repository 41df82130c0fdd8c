import FerryConfig
import FerryCore
import Testing

@testable import PusherProvider

@Suite struct PusherSettingsTests {
  private func mapping(_ yaml: String) throws -> ConfigMapping {
    try ConfigNode.parse(yaml).mapping()
  }

  @Test func `a cluster chooses the hosts`() throws {
    let settings = try PusherAdapter.Settings(mapping("{app_id: '1', key: k, secret: s, cluster: eu}"))
    #expect(settings.api == "https://api-eu.pusher.com")
    #expect(settings.socket == "wss://ws-eu.pusher.com")
    #expect(settings.marker)
  }

  @Test func `a host of one's own serves both`() throws {
    let settings = try PusherAdapter.Settings(
      mapping("{app_id: '1', key: k, secret: s, host: 127.0.0.1, port: 8082, tls: false, marker: false}"))
    #expect(settings.api == "http://127.0.0.1:8082")
    #expect(settings.socket == "ws://127.0.0.1:8082")
    #expect(!settings.marker)
  }

  @Test func `names of events and fields are one or many`() throws {
    let settings = try PusherAdapter.Settings(
      mapping(
        "{app_id: '1', key: k, secret: s, events: {message: [chat, talk], typing: client-typing}, fields: {text: body}}"
      ))
    #expect(settings.profile.events.message == ["chat", "talk"])
    #expect(settings.profile.events.typing == ["client-typing"])
    #expect(settings.profile.events.edit == EventNames().edit)
    #expect(settings.profile.fields.text == ["body"])
  }

  @Test func `a preset is the base, the account's names come on top, and a channel's pattern on top of these`() throws {
    let settings = try PusherAdapter.Settings(
      mapping(
        """
        {app_id: '1', key: k, secret: s, preset: laravel_echo, events: {message: message.sent}, ids: integer, channels: [
          {match: 'private-chatify.*', preset: chatify}, {match: 'presence-*', events: {read: seen}, via: {read: client}},
          {match: '*-late'}]}
        """))
    let account = settings.profile(for: "chatroom")
    #expect(account.preset == .laravelEcho && account.ids == .integer)
    #expect(account.events.message == ["message.sent"])
    #expect(account.events.delete.first == #"App\Events\MessageDeleted"#)
    let chatify = settings.profile(for: "private-chatify.7")
    #expect(chatify == Profile(.chatify))
    let presence = settings.profile(for: "presence-late")
    #expect(presence.events.message == ["message.sent"] && presence.ids == .integer)
    #expect(presence.via.plan(.read, presence.events.read).name == "client-seen")
    #expect(settings.profile(for: "x-late") == account)
  }

  @Test func `who signs, who Ferry is, and what is sealed`() throws {
    let settings = try PusherAdapter.Settings(
      mapping(
        """
        {app_id: '1', key: k, auth_endpoint: 'https://a/auth', user_auth_endpoint: 'https://a/user',
         auth_headers: {Authorization: Bearer x}, user: {id: bot, info: {name: Bot}}, echo: false, marker: false,
         encryption_master_key: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=, long: link,
         upload_url: 'https://a/long', html: true}
        """))
    #expect(settings.secret == nil && settings.auth?.url == "https://a/auth")
    #expect(settings.auth?.headers.first?.value.reveal() == "Bearer x" && settings.userAuth?.headers.count == 1)
    #expect(settings.user == AccountUser(id: "bot", info: ["name": "Bot"]))
    #expect(settings.encryption == (try SecretBoxTests.masterKey()))
    #expect(settings.long == .link && settings.upload?.url == "https://a/long")
    #expect(!settings.echo && settings.profile.html)
    #expect(!"\(settings)".contains("Bearer"))
  }

  @Test(arguments: [
    "{key: k, secret: s}", "{app_id: '1', key: k, secret: s, custer: eu}",
    "{app_id: '1', key: k, secret: s, cluster: eu, host: x}", "{app_id: '1', key: k, secret: s, port: 1}",
    "{app_id: '1', key: k, secret: s, host: 'http://x'}", "{app_id: '1', key: k, secret: s, host: x, port: 65536}",
    "{app_id: '1', key: k, secret: s, events: {message: []}}",
    "{app_id: '1', key: k, secret: s, events: {message: 'pusher:x'}}",
    "{app_id: '1', key: k, secret: s, fields: {text: a..b}}", "{app_id: '1', key: k, secret: s, fields: {txt: a}}",
    "{app_id: '1', key: k, secret: s, fields: {text: m, id: m.id}}",
    "{app_id: '1', key: k, secret: s, fields: {text: ferry.x}}",
    "{app_id: '1', key: k, secret: s, fields: {text: id, id: id}}", "{app_id: '1', key: k, secret: s, preset: chatty}",
    "{app_id: '1', key: k}", "{app_id: '1', key: k, auth_endpoint: 'ftp://x'}",
    "{app_id: '1', key: k, secret: s, auth_headers: {a: b}}",
    "{app_id: '1', key: k, auth_endpoint: 'https://x', auth_headers: {'a b': c}}",
    "{app_id: '1', key: k, auth_endpoint: 'https://x', auth_headers: {a: \"b\\nc\"}}",
    "{app_id: '1', key: k, auth_endpoint: 'https://x', user: {id: a}}",
    "{app_id: '1', key: k, secret: s, user: {id: 'a b'}}", "{app_id: '1', key: k, secret: s, user: {info: {a: b}}}",
    "{app_id: '1', key: k, secret: s, user_auth_endpoint: 'https://x'}",
    "{app_id: '1', key: k, secret: s, encryption_master_key: c2hvcnQ=}",
    "{app_id: '1', key: k, secret: s, encryption_master_key: '!'}", "{app_id: '1', key: k, secret: s, long: link}",
    "{app_id: '1', key: k, secret: s, upload_url: 'https://x'}", "{app_id: '1', key: k, secret: s, ids: number}",
    "{app_id: '1', key: k, secret: s, via: {message: client}}",
    "{app_id: '1', key: k, secret: s, via: {typing: maybe}}",
    "{app_id: '1', key: k, secret: s, channels: [{preset: chatify}]}",
    "{app_id: '1', key: k, secret: s, channels: [{match: a, marker: false}]}",
  ])
  func `what is wrong is told with its place`(yaml: String) throws {
    let error = #expect(throws: FerryError.self) { try PusherAdapter.Settings(mapping(yaml)) }
    #expect(error?.code == .badConfiguration)
    #expect(error?.message.hasPrefix("ferry.yaml:1:") == true, "\(error?.message ?? "")")
  }

  @Test func `an address names everything`() throws {
    let hosted = try #require(
      try PusherAdapter.settings(fromURL: "pusher://KEY:SEC%2FRET@api-eu.pusher.com/apps/7/room"))
    #expect(hosted.channel == "room")
    #expect(hosted.settings.appID == "7")
    #expect(hosted.settings.secret?.reveal() == "SEC/RET")
    #expect(hosted.settings.api == "https://api-eu.pusher.com")
    #expect(hosted.settings.socket == "wss://ws-eu.pusher.com")
    let own = try #require(try PusherAdapter.settings(fromURL: "pusher+http://k:s@127.0.0.1:8082/apps/1001/chatroom"))
    #expect(own.settings.api == "http://127.0.0.1:8082")
    #expect(own.settings.socket == "ws://127.0.0.1:8082")
    #expect(try PusherAdapter.settings(fromURL: "twilio://x") == nil)
  }

  @Test(arguments: [
    "pusher://", "pusher://h/apps/1/c", "pusher://k@h/apps/1/c", "pusher://k:s@h/apps/1", "pusher://k:s@h/app/1/c",
  ])
  func `half an address is refused`(url: String) {
    #expect(throws: FerryError.self) { try PusherAdapter.settings(fromURL: url) }
  }

  @Test func `a facade's identity is digits, and its events are limited`() throws {
    let settings = try PusherFacade.Settings(mapping("{app_id: '1001', key: k, secret: s, client_events: false}"))
    #expect(settings.appID == "1001")
    #expect(!settings.clientEvents)
    #expect(settings.clientEventsPerSecond == 10)
    #expect(throws: FerryError.self) { try PusherFacade.Settings(mapping("{app_id: abc, key: k, secret: s}")) }
    #expect(throws: FerryError.self) {
      try PusherFacade.Settings(mapping("{app_id: '1', key: k, secret: s, client_events_per_second: 0}"))
    }
  }
}
