import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials
import LocalProvider
import PusherProvider

/// The local server and the facades of a configuration, each on its port.
struct LocalServices: Sendable {
  private struct Service: Sendable {
    let name: String
    let server: HTTPServer
    /// Tells its clients to come back later, in the protocol's own words.
    let sayGoodbye: @Sendable () async -> Void
    /// What it does besides answering, until cancelled.
    var run: @Sendable () async -> Void = {}
  }

  private let services: [Service]
  private let chats: [ChatService]

  /// Listens when it returns; connections are answered once `run` is called.
  init(_ section: ServeSection, data: String, _ session: Session) throws(FerryError) {
    do {
      try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
    } catch {
      throw FerryError(.storage, "The data folder \(data) cannot be made.", cause: "\(error)")
    }
    let loop = try LoopExecutor(name: "ferry-serve")
    var services: [Service] = []
    var chats: [ChatService] = []
    if let local = section.local {
      let chat = try Self.chat("local", data, local.fileBytes, session)
      chats.append(chat)
      let tokens = local.tokens.map {
        LocalServer.Token(token: $0.token.reveal(), user: $0.user, moderator: $0.moderator)
      }
      let facade = LocalServer(chat: chat, tokens: tokens, logger: session.logger)
      let server = try HTTPServer(
        HTTPServer.Settings(host: local.listen.host, port: local.listen.port, bodyBytes: Int(local.fileBytes)),
        loop: loop, logger: session.logger, handler: facade.handle)
      services.append(Service(name: "local", server: server, sayGoodbye: {}))
    }
    for section in section.facades {
      guard section.provider == "pusher" else { throw section.unknownProvider(valid: ["pusher"]) }
      let settings = try PusherFacade.Settings(section.mapping)
      let chat = try Self.chat("pusher-\(settings.appID)", data, 0, session)
      chats.append(chat)
      let facade = PusherFacade(
        settings: settings, store: ChatCacheStore(chat: chat),
        client: settings.webhooks.isEmpty ? nil : HTTPClient(loop: loop, logger: session.logger),
        clock: session.clock, logger: session.logger, metrics: session.metrics)
      let server = try HTTPServer(
        HTTPServer.Settings(host: section.listen.host, port: section.listen.port), loop: loop,
        logger: session.logger, handler: facade.handle)
      services.append(Service(name: section.provider, server: server, sayGoodbye: facade.closeAll, run: facade.run))
    }
    self.services = services
    self.chats = chats
  }

  /// The bound ports by provider.
  var ports: [String: UInt16] { Dictionary(services.map { ($0.name, $0.server.port) }) { first, _ in first } }
  var urls: [String: String] { Dictionary(services.map { ($0.name, $0.server.url) }) { first, _ in first } }

  /// Until cancelled.
  func run() async {
    await withDiscardingTaskGroup { group in
      for chat in chats { group.addTask { await chat.run() } }
      for service in services {
        group.addTask { await service.server.run() }
        group.addTask { await service.run() }
      }
    }
  }

  /// Before `run` is cancelled.
  func sayGoodbye() async {
    await withDiscardingTaskGroup { group in
      for service in services { group.addTask { await service.sayGoodbye() } }
    }
  }

  /// After `run` has ended.
  func close() {
    for chat in chats { chat.close() }
  }

  private static func chat(
    _ name: String, _ data: String, _ fileBytes: Int64, _ session: Session
  ) throws(FerryError) -> ChatService {
    var limits = ChatLimits()
    if fileBytes > 0 { limits.fileBytes = fileBytes }
    return try ChatService(
      path: "\(data)/\(name).db", files: "\(data)/\(name).files", clock: session.clock,
      logger: session.logger.component(name), limits: limits)
  }
}

/// Cached events of a Pusher facade, kept in its namespace's database.
struct ChatCacheStore: PusherCacheStore {
  let chat: ChatService

  func keep(_ event: String, for channel: String) async throws(FerryError) {
    try await chat.keep(event, as: "pusher-cache/\(channel)")
  }

  func kept(_ channel: String) async throws(FerryError) -> (event: String, age: Double)? {
    try await chat.kept("pusher-cache/\(channel)").map { ($0.value, $0.age) }
  }

  func prune(olderThan seconds: Double) async throws(FerryError) -> Bool {
    try await chat.forget("pusher-cache/", olderThan: .seconds(seconds))
  }

  func nextNumber(_ name: String) async throws(FerryError) -> Int64 {
    try await chat.count("pusher-number/\(name)")
  }
}
