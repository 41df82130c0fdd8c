import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials
import LocalProvider

/// The local server and the facades of a configuration, each on its port.
struct LocalServices: Sendable {
  private struct Service: Sendable {
    let name: String
    let server: HTTPServer
    let facade: Facade
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
    if let section = section.local {
      var limits = ChatLimits()
      limits.fileBytes = section.fileBytes
      let chat = try Self.chat("local", data, limits, session)
      chats.append(chat)
      let tokens = section.tokens.map {
        LocalServer.Token(token: $0.token.reveal(), user: $0.user, moderator: $0.moderator)
      }
      let local = LocalServer(chat: chat, tokens: tokens, logger: session.logger)
      services.append(
        try Self.service(
          "local", section.listen, Facade(handle: local.handle), bodyBytes: Int(section.fileBytes), loop, session))
    }
    for section in section.facades {
      let entry = try FacadeEntry.entry(for: section)
      let chat = try Self.chat(
        try entry.namespace(section.mapping), data, try entry.limits(section.mapping), session)
      chats.append(chat)
      let rehearsal = Rehearsal(section.rehearsal, clock: session.clock)
      let facade = try entry.make(section.mapping, chat, rehearsal, session)
      services.append(
        try Self.service(section.provider, section.listen, facade, bodyBytes: facade.bodyBytes, loop, session))
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
        group.addTask { await service.facade.run() }
      }
    }
  }

  /// Before `run` is cancelled.
  func sayGoodbye() async {
    await withDiscardingTaskGroup { group in
      for service in services { group.addTask { await service.facade.sayGoodbye() } }
    }
  }

  /// After `run` has ended.
  func close() {
    for chat in chats { chat.close() }
  }

  private static func service(
    _ name: String, _ listen: ListenAddress, _ facade: Facade, bodyBytes: Int?, _ loop: LoopExecutor,
    _ session: Session
  ) throws(FerryError) -> Service {
    var settings = HTTPServer.Settings(host: listen.host, port: listen.port)
    if let bodyBytes { settings.bodyBytes = bodyBytes }
    let server = try HTTPServer(settings, loop: loop, logger: session.logger, handler: facade.handle)
    return Service(name: name, server: server, facade: facade)
  }

  private static func chat(
    _ name: String, _ data: String, _ limits: ChatLimits, _ session: Session
  ) throws(FerryError) -> ChatService {
    try ChatService(
      path: "\(data)/\(name).db", files: "\(data)/\(name).files", clock: session.clock,
      logger: session.logger.component(name), limits: limits)
  }
}
