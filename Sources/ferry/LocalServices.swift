import FerryChat
import FerryConfig
import FerryCore
import FerryPages
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

  /// What people look at, on every port.
  let pages = Pages()
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
    let requests = section.requestsPerClient
    var services: [Service] = []
    var chats: [ChatService] = []
    let tokens = (section.local?.tokens ?? []).map {
      LocalServer.Token(token: $0.token.reveal(), user: $0.user, moderator: $0.moderator)
    }
    if let section = section.local {
      var limits = ChatLimits()
      limits.fileBytes = section.fileBytes
      let chat = try Self.chat("local", data, limits, session)
      chats.append(chat)
      let local = LocalServer(chat: chat, tokens: tokens, logger: session.logger)
      let facade = Facade(handle: local.handle).showing(pages, of: local, withStart: true)
      services.append(
        try Self.service("local", section.listen, facade, bodyBytes: Int(section.fileBytes), requests, loop, session))
    }
    for section in section.facades {
      let entry = try FacadeEntry.entry(for: section)
      let chat = try Self.chat(
        try entry.namespace(section.mapping), data, try entry.limits(section.mapping), session)
      chats.append(chat)
      let rehearsal = Rehearsal(section.rehearsal, clock: session.clock)
      var facade = try entry.make(section.mapping, chat, rehearsal, session)
      if !tokens.isEmpty {
        facade = facade.showing(
          pages, of: LocalServer(chat: chat, tokens: tokens, logger: session.logger), withStart: false)
      }
      services.append(
        try Self.service(section.provider, section.listen, facade, bodyBytes: facade.bodyBytes, requests, loop, session)
      )
    }
    self.services = services
    self.chats = chats
    if section.local != nil, let start = ports["local"] {
      pages.show(
        services.map { Pages.Pane(title: $0.name, port: $0.server.port, room: "lobby") }, onPort: start)
    }
  }

  /// The bound ports by provider.
  var ports: [String: UInt16] { Dictionary(services.map { ($0.name, $0.server.port) }) { first, _ in first } }
  var urls: [String: String] { Dictionary(services.map { ($0.name, $0.server.url) }) { first, _ in first } }

  /// Shows rooms side by side on the start page, each on its provider's port. Those of providers that are not served
  /// here are left out. With `token`, people are signed in by themselves.
  func show(_ rooms: [(provider: String, room: ChannelID)], token: String?) {
    guard let start = ports["local"] else { return }
    let panes = rooms.compactMap { provider, room in
      ports[provider].map { Pages.Pane(title: provider, port: $0, room: room.rawValue, token: token) }
    }
    pages.show(panes, onPort: start)
    for (provider, room) in rooms {
      services.first { $0.name == provider }?.facade.watch(room)
    }
  }

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
    _ name: String, _ listen: ListenAddress, _ facade: Facade, bodyBytes: Int?, _ requests: Int, _ loop: LoopExecutor,
    _ session: Session
  ) throws(FerryError) -> Service {
    var settings = HTTPServer.Settings(host: listen.host, port: listen.port, requestsPerClient: requests)
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
