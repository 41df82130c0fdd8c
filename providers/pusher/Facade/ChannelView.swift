package import FerryChat
import FerryCore
package import FerryRuntime
package import FerryTransport

/// Shows channels to people who look at them with the chat page, and lets them take part.
///
/// Channels keep nothing. While somebody looks at one, its events are read as Ferry's adapter reads them and kept in a
/// room of the same name, the last thousand messages of each; what is written in the room is published on the channel as
/// the adapter would write it. Clients of the service see no difference to another client. A channel that nobody looks
/// at costs nothing.
///
/// Both ways are at most once, as everything is on channels: what does not fit into the queue is counted and dropped.
package final class ChannelView: Sendable {
  /// An event as it was published.
  struct Heard: Sendable {
    let name: String
    let channel: String
    let data: String
    let userID: String?
  }

  /// What the view is told, in order.
  enum News: Sendable {
    case event(Heard)
    case member(PresenceList.Member, channel: String, isThere: Bool)
    /// Somebody looks at the channel now.
    case watched(String)
  }

  private struct State {
    var channels: Set<String> = []
    /// Scheme, host and port under which people reach this facade.
    var base: String?
  }

  let chat: ChatService
  let client: HTTPClient
  let profile: Profile
  let clock: any FerryClock
  let logger: Logger
  let metrics: Metrics?
  private let state = Locked(State())
  private let queue = BoundedChannel<News>(capacity: 1000)
  /// Told once what is written in rooms is followed.
  let isFollowing = BoundedChannel<Void>(capacity: 1)
  private let mostMessages: Int
  let mostFileBytesInAll: Int64

  static let mostChannels = 64
  /// Bytes of one picture kept here; a larger one stays a link.
  static let mostFileBytes = 8 << 20

  /// `client` fetches the pictures that events link to, under its guard. `mostMessages` are kept of each channel.
  /// `mostFileBytesInAll`: pictures are kept while all files here are no more than that; the others stay links.
  package init(
    chat: ChatService, client: HTTPClient, tutorial: PusherFacade.Settings.Tutorial? = nil, mostMessages: Int = 1000,
    mostFileBytesInAll: Int64 = 256 << 20, clock: any FerryClock, logger: Logger, metrics: Metrics?
  ) {
    self.mostMessages = mostMessages
    self.mostFileBytesInAll = mostFileBytesInAll
    self.chat = chat
    self.client = client
    profile = tutorial == .anonymousChat ? Profile(.anonymousChat) : Profile()
    self.clock = clock
    self.logger = logger.component("view")
    self.metrics = metrics
  }

  // MARK: Who looks at what

  /// Keeps what happens on a channel from now on.
  package func watch(_ channel: String) {
    guard let name = ChannelName(service: channel), !name.isEncrypted else { return }
    let (isFull, isNew) = state.withLock { state in
      guard state.channels.count < Self.mostChannels else { return (!state.channels.contains(channel), false) }
      return (false, state.channels.insert(channel).inserted)
    }
    if isNew, name.isPresence { offer(.watched(channel)) }
    if isFull { logger.warning("\(Self.mostChannels) channels are looked at already: \(channel) is not shown") }
  }

  /// Somebody asked the chat page's API for something, and was answered.
  package func asked(_ request: HTTPRequest, answered status: Int) {
    guard status < 500, ![401, 403].contains(status) else { return }
    let path = request.segments.drop { $0.isEmpty }
    if path.count > 2, path.starts(with: ["v1", "rooms"]) { watch(path[path.startIndex + 2]) }
    guard let host = request.headers["Host"] else { return }
    let base = "\(request.isSecure ? "https" : "http")://\(host)"
    state.withLock { $0.base = base }
  }

  func isWatched(_ channel: String) -> Bool { state.withLock { $0.channels.contains(channel) } }

  /// The address of a file for everybody; nil before anybody has come.
  func url(ofFile sha256: String, name: String) -> String? {
    state.withLock { $0.base }.map { "\($0)/files/\(sha256)/\(PercentEncoding.encode(name))" }
  }

  // MARK: Life

  /// Called with every event, in order. Never waits.
  func heard(_ name: String, on channel: ChannelName, _ data: String, userID: String? = nil) {
    guard isWatched(channel.text) else { return }
    offer(.event(Heard(name: name, channel: channel.text, data: data, userID: userID)))
  }

  /// Somebody has come to a presence channel, or has gone. Never waits.
  func heard(_ coming: Hub.Coming) {
    guard isWatched(coming.channel) else { return }
    offer(.member(coming.member, channel: coming.channel, isThere: coming.isThere))
  }

  private func offer(_ news: News) {
    if queue.offer(news) == .full { metrics?.add(to: "ferry_pusher_facade_view_drops_total") }
  }

  /// Until cancelled. `publish` puts an event on its channel for everybody but this view; `members` says who is on a
  /// presence channel.
  @concurrent
  func run(
    members: @escaping @Sendable (String) -> [PresenceList.Member],
    _ publish: @escaping @Sendable (PublishedEvent) async throws(FerryError) -> Void
  ) async {
    // Those that were looked at before a restart.
    for room in (try? await chat.rooms(limit: Self.mostChannels)) ?? [] {
      if ChannelName(service: room.id.rawValue)?.isPresence == true {
        await dropMembers(of: room.id, except: members(room.id.rawValue))
      }
      watch(room.id.rawValue)
    }
    await withDiscardingTaskGroup { group in
      group.addTask { await self.listen(members) }
      group.addTask { await self.tell(publish) }
    }
  }

  private func listen(_ members: @Sendable (String) -> [PresenceList.Member]) async {
    let reader = EventReader(profile)
    var memory = MessageMemory()
    var chunks = ChunkAssembly()
    var count: [String: Int] = [:]
    while let news = await queue.next() {
      let heard: Heard
      switch news {
      case .event(let event): heard = event
      case .member(let member, let channel, let isThere):
        await keep(member, in: ChannelID(channel), isThere: isThere)
        continue
      case .watched(let channel):
        for member in members(channel) { await keep(member, in: ChannelID(channel), isThere: true) }
        continue
      }
      guard let frame = whole(heard, &chunks) else { continue }
      let readings = reader.read(
        frame, in: ChannelID(heard.channel), unique: Crypto.randomHex(bytes: 12), now: clock.now(), memory: &memory)
      for reading in readings { await keep(reading, in: ChannelID(heard.channel)) }
      count[heard.channel, default: 0] += readings.count
      if count[heard.channel, default: 0] >= mostMessages / 4 {
        count[heard.channel] = 0
        do throws(FerryError) { try await chat.trim(ChannelID(heard.channel), to: mostMessages) } catch {
          logger.warning("\(heard.channel) could not be trimmed: \(error)")
        }
      }
    }
  }
}
