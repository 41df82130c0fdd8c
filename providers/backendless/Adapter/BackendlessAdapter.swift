import FerryConfig
package import FerryCore
package import FerryRuntime
package import FerryTransport

/// A client of an app on Backendless, or of a service that speaks its protocols.
///
/// It listens on the real-time service and writes over REST. A message is a row of the chat table, saved first and then
/// published; its edits and its deletion are changes of the row. What was said while nobody listened is read from the
/// table.
package final class BackendlessAdapter: ChatProvider {
  package let capabilities: Capabilities
  let settings: Settings
  let api: BackendlessAPI
  let client: HTTPClient
  let clock: any FerryClock
  let logger: Logger
  let identity = ClientIdentity()
  let reader: ChatReader
  let writer: ChatWriter
  let commands: CommandReader
  let people: People
  /// The connection that `run` holds, while it stands.
  let live = Locked<RealtimeLink?>(nil)
  /// Who is where, as far as `run` has heard.
  let present = Locked<[ChannelID: Presence]>([:])
  /// Messages of ours that came back, and so have certainly been published.
  let echoes = Recently<String, Bool>(limit: 10_000)
  /// Rows that this process deletes, and with which stamp.
  let deletions = Recently<String, Stamp?>(limit: 10_000)
  /// Which version of the protocol the service last spoke.
  let version = Locked<EngineVersion>(.four)
  let pace: Pace
  /// The time under which the last imported row of a channel is sorted.
  let pastOrder = Locked<[ChannelID: PastOrder]>([:])

  package init(settings: Settings, client: HTTPClient, clock: any FerryClock = SystemClock(), logger: Logger) {
    self.settings = settings
    self.client = client
    self.clock = clock
    self.logger = logger
    let api = BackendlessAPI(settings: settings, client: client, clock: clock)
    self.api = api
    reader = ChatReader(
      fields: settings.fields, messageClass: settings.messageClass, joinNotice: settings.joinNotice,
      isOwnFile: { [place = settings.place] in api.isOwnFile($0, of: place) })
    writer = ChatWriter(fields: settings.fields, messageClass: settings.messageClass)
    commands = CommandReader(names: settings.commands, fields: settings.fields)
    people = People(api: api, clock: clock)
    pace = Pace(perSecond: settings.sendsPerSecond, clock: clock)
    capabilities = Self.capabilities(settings)
  }

  /// What an account can do that is set up so.
  package static func capabilities(_ settings: Settings = Settings(server: Settings.cloud, appID: "", key: Secret("")))
    -> Capabilities
  {
    var capabilities = Capabilities()
    let keeps = settings.table != nil
    capabilities.edits = keeps
    capabilities.deletes = keeps
    capabilities.typing = settings.receive == .realtime
    capabilities.members = settings.joinNotice != nil
    capabilities.reads = settings.receive == .realtime && settings.commands.read != nil
    capabilities.attachments = .stored
    capabilities.attachmentsPerMessage = 1
    capabilities.history = keeps ? .messages : .none
    capabilities.certainty = keeps ? .always : .none
    capabilities.settleSeconds = 2
    // A text column of the service holds 21,000 characters or so.
    capabilities.bodyBytes = 20_000
    capabilities.sendsPerSecond = settings.sendsPerSecond
    if keeps {
      var importing = ImportPowers()
      importing.batch = BackendlessAPI.pageSize
      importing.isRepeatable = true
      importing.joins = settings.joinNotice != nil
      importing.sortsByTime = true
      importing.orderSlack = 60_000
      capabilities.importing = importing
    }
    capabilities.absent = absent(settings)
    return capabilities
  }

  private static func absent(_ settings: Settings) -> [String: String] {
    var absent = ["reactions": "Backendless chat apps have no custom for reactions."]
    if settings.table == nil {
      let reason = "The account keeps no table (table: none)."
      absent["history"] = reason + " What is said while nobody listens is reported as a gap."
      absent["edits"] = reason + " Edits are changes of a row."
      absent["deletes"] = reason + " Deletions are those of a row."
    }
    if settings.receive == .legacyPolling {
      absent["typing"] = "Commands need the real-time service, and the account polls (receive: legacy_polling)."
    }
    if settings.joinNotice == nil {
      absent["members"] = "Nobody can be made to join; the account announces nobody (join_notice: false)."
    }
    if settings.commands.read == nil {
      absent["reads"] = "Every app has its own command for this, if any. Name it: reads: { command: MESSAGE_READ }."
    } else if settings.receive == .legacyPolling {
      absent["reads"] = absent["typing"]
    }
    return absent
  }

  /// The name as the service takes it.
  func checked(_ channel: ChannelID) throws(FerryError) -> String {
    let name = channel.rawValue
    guard !name.isEmpty, name.utf8.count <= 255, !name.contains("/"), Condition.isPlain(name) else {
      throw FerryError(
        .badRequest,
        "\"\(channel)\" cannot be a Backendless channel: 1 to 255 bytes without slashes, backslashes and controls can.")
    }
    return name
  }

  /// The rows of a channel, as a where clause; empty where the table is the one channel's.
  func condition(_ channel: ChannelID) throws(FerryError) -> String {
    guard let column = settings.fields.channel else { return "" }
    guard let name = Condition.quoted(try checked(channel)) else { return "1 = 0" }
    return "\(column) = \(name)"
  }

  func table(doing: String) throws(FerryError) -> String {
    guard let table = settings.table else {
      throw FerryError(.unsupported, "Could not \(doing): the account keeps no table. Name one: table: ChatMessage.")
    }
    return table
  }
}

/// Who is in a channel, as far as was heard.
struct Presence: Sendable {
  /// Logged in and connected, by user id.
  var users: Set<String> = []
  /// Announced by a notice, by name.
  var announced: [String: Author] = [:]
}

/// A dictionary that forgets its oldest entries.
final class Recently<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct State: Sendable {
    var values: [Key: Value] = [:]
    var order: [Key] = []
  }

  private let limit: Int
  private let state = Locked(State())

  init(limit: Int) { self.limit = limit }

  subscript(key: Key) -> Value? { state.withLock { $0.values[key] } }

  func note(_ key: Key, _ value: Value) {
    state.withLock { state in
      if state.values.updateValue(value, forKey: key) == nil { state.order.append(key) }
      guard state.order.count > limit else { return }
      for old in state.order.prefix(limit / 2) { state.values[old] = nil }
      state.order.removeFirst(limit / 2)
    }
  }
}

/// Keeps sends apart where the app's plan allows so many a second.
final class Pace: Sendable {
  private let interval: Duration?
  private let clock: any FerryClock
  private let next = Locked(Timestamp(milliseconds: 0))

  init(perSecond: Double?, clock: any FerryClock) {
    interval = perSecond.map { .milliseconds(Int64((1000 / $0).rounded(.up))) }
    self.clock = clock
  }

  /// Waits for its turn.
  func wait() async throws(FerryError) {
    guard let interval else { return }
    let now = clock.now()
    let turn = next.withLock { next in
      let turn = max(next, now)
      next = turn.advanced(by: interval)
      return turn
    }
    let wait = Duration.milliseconds(turn.milliseconds - now.milliseconds)
    guard wait > .zero else { return }
    do { try await clock.sleep(for: wait) } catch { throw .cancelled(didNotAct: true) }
  }
}
