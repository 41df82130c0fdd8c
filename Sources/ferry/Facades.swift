import BackendlessProvider
import FerryChat
import FerryConfig
import FerryCore
import FerryPages
import FerryRuntime
import FerryTransport
import LocalProvider
import PusherProvider
import TwilioProvider

/// The server side of one provider's protocol, as the local server mounts it on a port of its own.
struct Facade: Sendable {
  let handle: Rehearsal.Handler
  /// The largest request, where it is not the server's usual one.
  var bodyBytes: Int?
  /// Its work besides requests, until cancelled.
  var run: @Sendable () async -> Void = {}
  /// Tells its clients to come back later, in the protocol's own words.
  var sayGoodbye: @Sendable () async -> Void = {}
  /// Where the service keeps no chat: shows a channel to people who look at it with the chat page.
  var view: ChannelView?
  /// The text by which its apps say in a message that somebody has come.
  var joinNotice: String?

  /// Somebody is to see a room on a page, from now on.
  func watch(_ room: ChannelID) { view?.watch(room.rawValue) }

  /// The same with the chat page on its port, and with the API that the page talks to: the local server's, over the
  /// chat of this service. The service answers everything else.
  func showing(_ pages: Pages, of api: LocalServer, withStart: Bool) -> Facade {
    Facade(
      handle: { [handle, view, joinNotice] request in
        if let page = pages.answer(request, withStart: withStart, joinNotice: joinNotice) { return page }
        guard LocalServer.owns(request) else { return await handle(request) }
        let response = await api.handle(request)
        view?.asked(request, answered: response.status)
        return response
      }, bodyBytes: bodyBytes, run: run, sayGoodbye: sayGoodbye, view: view)
  }
}

/// Makes the facades. Adding one is one line in `all`.
struct FacadeEntry: Sendable {
  let provider: String
  /// The name of the account's namespace, which names its files.
  let namespace: @Sendable (ConfigMapping) throws(FerryError) -> String
  /// What its namespace accepts.
  var limits: @Sendable (ConfigMapping) throws(FerryError) -> ChatLimits = { _ in ChatLimits() }
  let make: @Sendable (ConfigMapping, ChatService, Rehearsal?, Session) throws(FerryError) -> Facade

  static let all = [pusher, twilio, backendless]

  static func entry(for section: FacadeSection) throws(FerryError) -> FacadeEntry {
    guard let entry = all.first(where: { $0.provider == section.provider }) else {
      throw section.unknownProvider(valid: all.map(\.provider))
    }
    return entry
  }

  private static let pusher = FacadeEntry(
    provider: "pusher",
    namespace: { mapping throws(FerryError) in "pusher-\(try PusherFacade.Settings(mapping).appID)" },
    limits: { _ in
      var limits = ChatLimits()
      // What fits into an event, unless much of it has to be escaped.
      limits.textBytes = 10_000
      return limits
    },
    make: { mapping, chat, rehearsal, session throws(FerryError) in
      let settings = try PusherFacade.Settings(mapping)
      let view = ChannelView(
        chat: chat, client: session.client, tutorial: settings.tutorial, clock: session.clock, logger: session.logger,
        metrics: session.metrics)
      let facade = PusherFacade(
        settings: settings, store: ChatCacheStore(chat: chat), client: session.client, rehearsal: rehearsal, view: view,
        clock: session.clock, logger: session.logger, metrics: session.metrics)
      return Facade(
        handle: rehearsal?.wrap(facade.handle) ?? facade.handle, run: facade.run, sayGoodbye: facade.closeAll,
        view: view)
    })
}

extension FacadeEntry {
  fileprivate static let twilio = FacadeEntry(
    provider: "twilio",
    namespace: { mapping throws(FerryError) in "twilio-\(try TwilioFacade.Settings(mapping).accountSID)" },
    limits: { mapping throws(FerryError) in try TwilioFacade.Settings(mapping).chatLimits },
    make: { mapping, chat, rehearsal, session throws(FerryError) in
      let settings = try TwilioFacade.Settings(mapping)
      let facade = TwilioFacade(
        settings: settings, chat: chat, client: session.client, clock: session.clock, logger: session.logger,
        metrics: session.metrics, rehearsal: rehearsal)
      return Facade(
        handle: rehearsal?.wrap(facade.handle, failure: TwilioFacade.rehearsed) ?? facade.handle,
        bodyBytes: Int(settings.chatLimits.fileBytes) + (1 << 20), run: facade.run, sayGoodbye: facade.closeAll)
    })
}

extension FacadeEntry {
  fileprivate static let backendless = FacadeEntry(
    provider: "backendless",
    namespace: { mapping throws(FerryError) in "backendless-\(try BackendlessFacade.Settings(mapping).appID)" },
    limits: { mapping throws(FerryError) in
      var limits = ChatLimits()
      limits.fileBytes = try BackendlessFacade.Settings(mapping).fileBytes
      return limits
    },
    make: { mapping, chat, rehearsal, session throws(FerryError) in
      let settings = try BackendlessFacade.Settings(mapping)
      let facade = BackendlessFacade(
        settings: settings, chat: chat, client: session.client, rehearsal: rehearsal, clock: session.clock,
        logger: session.logger, metrics: session.metrics)
      return Facade(
        handle: rehearsal?.wrap(facade.handle, failure: BackendlessFacade.rehearsed) ?? facade.handle,
        bodyBytes: settings.bodyBytes, run: facade.run, sayGoodbye: facade.closeAll, joinNotice: "joined")
    })
}

/// Cached events and numbers of a Pusher facade, kept in its namespace's database.
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

extension Rehearsal {
  convenience init?(_ section: RehearsalSection?, clock: any FerryClock) {
    guard let section else { return nil }
    var plan = Plan()
    plan.fail = section.fail
    plan.status = section.status
    plan.retryAfter = section.retryAfter
    plan.drop = section.drop
    plan.lose = section.lose
    plan.delay = Int(section.delay.milliseconds)
    plan.echo = section.echo
    plan.match = section.match
    plan.method = section.method
    self.init(plan, token: section.token.reveal(), clock: clock)
  }
}
