import BackendlessProvider
import FerryConfig
import FerryCore
import FoundationEssentials
import LocalProvider
import PusherProvider
import Testing
import TwilioProvider

/// The configuration files and the schema, seen by the providers, who alone know their keys.
@Suite struct SettingsTests {
  private static let root = String(#filePath.split(separator: "/Tests/", maxSplits: 1)[0])

  @Test("the providers understand their part of the demo and the example", arguments: ["demo", "ferry.example"])
  func files(name: String) throws {
    let folder = try TemporarySecret()
    var environment = Dictionary(
      uniqueKeysWithValues: [
        "FERRY_LOCAL_TOKEN", "FERRY_CONSOLE_TOKEN", "FERRY_READ_TOKEN", "BOB_TOKEN", "FACADE_SECRET", "REHEARSAL_TOKEN",
        "APP_TOKEN",
        "TWILIO_AUTH_TOKEN", "TWILIO_API_SECRET", "TWILIO_SHARED_KEY",
        "BACKENDLESS_KEY", "BACKENDLESS_PASSWORD",
      ].map {
        ($0, "x\($0)")
      })
    environment["PUSHER_MASTER_KEY"] = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
    // The example takes one secret from a file, which is not in the repository.
    let text = try String(contentsOfFile: "\(Self.root)/config/\(name).yaml", encoding: .utf8)
      .replacing("file:pusher-secret.txt", with: "file:\(folder.path)")
    let configuration = try Configuration.parse(text, environment: environment)
    for account in configuration.accounts.values {
      switch account.provider {
      case "local": _ = try LocalAdapter.Settings(account.mapping)
      case "pusher": #expect(try PusherAdapter.Settings(account.mapping).secret?.reveal().contains("secret") != false)
      case "twilio": _ = try TwilioAdapter.Settings(account.mapping)
      case "backendless": _ = try BackendlessAdapter.Settings(account.mapping)
      default: Issue.record("\(account.provider) is unknown")
      }
    }
    for facade in configuration.serve?.facades ?? [] {
      switch facade.provider {
      case "pusher": _ = try PusherFacade.Settings(facade.mapping)
      case "twilio": _ = try TwilioFacade.Settings(facade.mapping)
      case "backendless": _ = try BackendlessFacade.Settings(facade.mapping)
      default: Issue.record("\(facade.provider) is unknown")
      }
    }
  }

  @Test("the schema knows the keys of accounts and facades, no more and no fewer")
  func schema() throws {
    let pusher = "app_id: '1', key: k, secret: s"
    try expectKeys("localAccount", "url: 'http://a', token: t") { _ = try LocalAdapter.Settings($0) }
    try expectKeys("pusherAccount", pusher) { _ = try PusherAdapter.Settings($0) }
    try expectKeys("pusherEvents", "") { _ = try EventNames($0) }
    try expectKeys("pusherFields", "") { _ = try FieldNames($0) }
    try expectKeys("pusherVia", "") { _ = try Transports($0) }
    try expectKeys("pusherUser", "id: a") { _ = try AccountUser($0) }
    try expectKeys("pusherChannels", "match: a") { _ = try ChannelSettings($0, over: Profile()) }
    try expectKeys("pusherFacade", pusher) { _ = try PusherFacade.Settings($0) }
    let account = "account_sid: AC00000000000000000000000000000001, auth_token: t"
    try expectKeys("twilioAccount", account) { _ = try TwilioAdapter.Settings($0) }
    let facade =
      account + ", api_key: SK00000000000000000000000000000001, api_secret: s, "
      + "service_sid: IS00000000000000000000000000000001"
    try expectKeys("twilioFacade", facade) { _ = try TwilioFacade.Settings($0) }
    let app = "app_id: a, api_key: k"
    try expectKeys("backendlessAccount", "login: l, password: p, " + app) { _ = try BackendlessAdapter.Settings($0) }
    try expectKeys("backendlessFields", "") { _ = try ChatFieldNames($0) }
    try expectKeys("backendlessFacade", app) { _ = try BackendlessFacade.Settings($0) }
    try expectKeys("pusherWebhook", "") { _ in
      let webhook = "webhooks: [{ url: 'http://a', no-such-key: 1 }]"
      _ = try PusherFacade.Settings(ConfigNode.parse("{ \(pusher), \(webhook) }").mapping())
    }
  }

  private func expectKeys(_ pointer: String, _ keys: String, _ read: (ConfigMapping) throws -> Void) throws {
    let mapping = try ConfigNode.parse("{ \(keys.isEmpty ? "" : keys + ", ")no-such-key: 1 }").mapping()
    let error = try #require(throws: FerryError.self) { try read(mapping) }
    let list = try #require(error.message.firstRange(of: "valid here: "), "\(error)")
    let accepted = error.message[list.upperBound...].split(separator: ", ").map(String.init)
    let data = try Data(contentsOf: URL(filePath: Self.root + "/config/ferry.schema.json"))
    var value = try JSONDecoder().decode(JSONValue.self, from: data)
    for step in ["$defs"] + pointer.split(separator: "/").map(String.init) {
      value = try #require(value[step], "the schema has no \(pointer)")
    }
    // The sections' own keys are read before the provider reads its own.
    let described = try #require(value["properties"]?.object).keys.filter {
      !["provider", "listen", "rehearsal"].contains($0)
    }
    #expect(described.sorted() == accepted, "\(pointer)")
  }
}

/// A file with a secret in it, gone with the last reference.
private final class TemporarySecret {
  let path = FileManager.default.temporaryDirectory.path + "/ferry-secret-\(UUID().uuidString)"

  init() throws { try Data("a secret\n".utf8).write(to: URL(filePath: path)) }
  deinit { try? FileManager.default.removeItem(atPath: path) }
}
