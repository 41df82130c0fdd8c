import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport

@testable import BackendlessProvider

/// Adapters against a facade of their own, with a proxy in between.
final class AdapterRig: Sendable {
  let facade: BackendlessFacade
  let chat: ChatService
  let proxy: FaultProxy
  let client: HTTPClient
  let inbox = RecordingInbox()
  private let server: HTTPServer

  static let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "lobby"), id: "1")
  static let ann = Author(id: "ann", name: "ann")

  private init(
    facade: BackendlessFacade, chat: ChatService, proxy: FaultProxy, client: HTTPClient, server: HTTPServer
  ) {
    self.facade = facade
    self.chat = chat
    self.proxy = proxy
    self.client = client
    self.server = server
  }

  /// What stands between server and facade: answers by itself, or changes what the facade is asked.
  typealias Filter = @Sendable (inout HTTPRequest) -> HTTPResponse?

  static func serving(
    adjust: (inout BackendlessFacade.Settings) -> Void = { _ in }, filter: @escaping Filter = { _ in nil },
    _ body: @escaping @Sendable (AdapterRig) async throws -> Void
  ) async throws {
    let folder = try TemporaryFolder()
    let chat = try ChatService(path: folder.file("chat.db"), files: folder.file("files"), logger: .silent)
    let loop = try LoopExecutor(name: "adapter-test")
    defer {
      chat.close()
      loop.stop()
    }
    let client = HTTPClient(loop: loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent)
    var settings = BackendlessFacade.Settings(appID: "APPID", apiKey: Secret("KEY"))
    settings.passwordRounds = 10
    adjust(&settings)
    let facade = BackendlessFacade(
      settings: settings, chat: chat, client: client, rehearsal: nil, clock: SystemClock(), logger: .silent,
      metrics: nil)
    let server = try HTTPServer(
      HTTPServer.Settings(stopTimeout: .milliseconds(200)), loop: loop, logger: .silent
    ) { request in
      var request = request
      if let answer = filter(&request) { return answer }
      return await facade.handle(request)
    }
    let proxy = try await FaultProxy.start(to: server.port)
    let rig = AdapterRig(facade: facade, chat: chat, proxy: proxy, client: client, server: server)
    do {
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await server.run() }
        group.addTask { await chat.run() }
        group.addTask { await facade.run() }
        defer { group.cancelAll() }
        try await rig.waitUntilFollowed()
        try await body(rig)
      }
    } catch {
      await proxy.close()
      throw error
    }
    await proxy.close()
  }

  /// The facade follows the chat once it runs: what a chat page writes becomes a row then.
  private func waitUntilFollowed() async throws {
    let draft = Draft(author: Author(id: "nobody", name: "nobody"), text: "is anybody there?")
    _ = try await chat.post(draft, to: "elsewhere", by: .owner)
    while try await send("POST", "/data/ChatMessage/find", [:]).array?.isEmpty != false { await Task.yield() }
  }

  func adapter(
    clock: any FerryClock = SystemClock(), _ adjust: (inout BackendlessAdapter.Settings) -> Void = { _ in }
  ) -> BackendlessAdapter {
    var settings = BackendlessAdapter.Settings(server: proxy.url, appID: "APPID", key: Secret("KEY"))
    settings.commands.read = "MESSAGE_READ"
    adjust(&settings)
    return BackendlessAdapter(settings: settings, client: client, clock: clock, logger: .silent)
  }

  /// Runs an adapter on `lobby` while `body` works; returns where it stood.
  @discardableResult
  func running(
    _ adapter: BackendlessAdapter, channel: ChannelID = "lobby", cursor: Cursor? = nil, lastSeen: Timestamp? = nil,
    inbox: RecordingInbox? = nil, _ body: @escaping @Sendable (RecordingInbox) async throws -> Void
  ) async throws -> Cursor? {
    let inbox = inbox ?? RecordingInbox()
    let subscription = FerryCore.Subscription(channel: channel, cursor: cursor, lastSeen: lastSeen)
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await adapter.run([subscription], into: inbox) }
      group.addTask {
        await inbox.connected()
        try await body(inbox)
      }
      // Whichever ends first: a run that ends by itself has failed.
      try await group.next()
      group.cancelAll()
    }
    return inbox.now.cursors[channel]
  }

  // MARK: As an app

  @discardableResult
  func send(_ method: String, _ path: String, _ body: JSONValue? = nil) async throws -> JSONValue {
    var request = ClientRequest(method: method, url: server.url + "/APPID/KEY" + path)
    if let body {
      request.headers.set("Content-Type", "application/json")
      request.body = .bytes(JSONText.bytes(of: body))
    }
    let response = try await client.send(request)
    let bytes = try await response.collect(upTo: 1 << 22)
    guard response.isSuccess else {
      throw FerryError(.internal, "\(method) \(path): \(response.status) \(String(decoding: bytes, as: UTF8.self))")
    }
    return JSONText.value(bytes) ?? .null
  }

  @discardableResult
  func save(_ text: String, channel: String? = "lobby", by name: String = "bob") async throws -> JSONValue {
    var row: [String: JSONValue] = ["userName": .string(name), "messageText": .string(text)]
    row["channel"] = channel.map(JSONValue.string)
    return try await send("PUT", "/data/ChatMessage", .object(row))
  }

  func publish(_ message: JSONValue, to channel: String = "lobby") async throws {
    try await send("POST", "/messaging/\(channel)", ["message": message])
  }

  @discardableResult
  func say(_ text: String, channel: String? = "lobby") async throws -> String {
    let row = try await save(text, channel: channel)
    try await publish(row)
    return row["objectId"]?.string ?? ""
  }

  static func message(_ text: String, id: String = Crypto.randomHex(bytes: 6), revision: Int = 0) -> OutgoingMessage {
    var stamp = Self.stamp
    stamp.id = MessageID(id)
    stamp.revision = revision
    return OutgoingMessage(key: stamp.key, author: ann, text: text, stamp: stamp)
  }
}

extension RecordingInbox.Record {
  /// Everything in a few words, in order.
  var story: [String] {
    events.map { event in
      switch event.kind {
      case .posted(let message): "+\(message.text)"
      case .edited(let message): "~\(message.text)"
      case .deleted: "-"
      case .joined(let membership): ">\(membership.member.name)"
      case .left(let membership): "<\(membership.member.name)"
      case .read(let mark): "r\(mark.upTo)"
      case .reacted: "x"
      }
    }
  }
}

extension RecordingInbox {
  /// Until so many events have come.
  func story(_ count: Int) async -> [String] { await wait { $0.events.count >= count ? $0.story : nil } ?? [] }
}
