import FerryCore
import FerryRuntime
import FerryTransport

/// Tells one address what happens, in order: nothing is sent before what precedes it was taken or given up.
final class WebhookEndpoint: Sendable {
  private let settings: WebhookSettings
  private let appKey: AppKey
  private let client: HTTPClient
  private let clock: any FerryClock
  private let logger: Logger
  private let metrics: Metrics?
  private let place: String
  private let queue = BoundedChannel<WebhookEvent>(capacity: 10_000)

  /// For how long an event is tried again. Source: the Channels documentation.
  static let patience = Duration.seconds(300)
  private static let firstDelay = Duration.seconds(1)
  private static let longestDelay = Duration.seconds(60)
  private static let deadline = Duration.seconds(10)
  private static let eventsPerBatch = 100

  init(
    _ settings: WebhookSettings, appKey: AppKey, client: HTTPClient, clock: any FerryClock, logger: Logger,
    metrics: Metrics?
  ) {
    self.settings = settings
    self.appKey = appKey
    self.client = client
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
    place = WebhookSettings.place(of: settings.url) ?? ""
  }

  /// Queues what this address wants to know. When too much waits already, the event is dropped and counted.
  func accept(_ event: WebhookEvent) {
    guard settings.events.contains(event.kind), queue.offer(event) != .queued else { return }
    drop(1, "the queue is full")
  }

  /// Until cancelled. What is not told by then is counted as dropped.
  func run() async {
    while let first = await queue.next() {
      await tell([first] + (settings.batch ? queue.drain(upTo: Self.eventsPerBatch - 1) : []))
    }
    let rest = queue.drain().count
    if rest > 0 { drop(rest, "the facade stops") }
  }

  private func tell(_ events: [WebhookEvent]) async {
    let start = clock.now()
    let body = WebhookEvent.body(of: events, at: start)
    let request = ClientRequest(
      method: "POST", url: settings.url,
      headers: [
        "Content-Type": "application/json", "X-Pusher-Key": appKey.key,
        "X-Pusher-Signature": appKey.signature(of: String(decoding: body, as: UTF8.self)),
      ],
      body: .bytes(body), deadline: Self.deadline)
    var delay = Self.firstDelay
    while true {
      let problem = await attempt(request)
      guard let problem else {
        metrics?.add(Double(events.count), to: "ferry_pusher_facade_webhook_events_total")
        return
      }
      guard !Task.isCancelled else { return drop(events.count, "the facade stops") }
      let waited = Duration.milliseconds(clock.now().milliseconds - start.milliseconds)
      guard waited + delay <= Self.patience else { return drop(events.count, problem) }
      logger.debug("webhook at \(place): \(problem), again in \(delay)")
      do { try await clock.sleep(for: delay) } catch { return drop(events.count, "the facade stops") }
      delay = min(delay * 2, Self.longestDelay)
    }
  }

  /// Nil when the other side has taken the request; otherwise why not.
  private func attempt(_ request: ClientRequest) async -> String? {
    do throws(FerryError) {
      let response = try await client.send(request)
      // Read, so that the connection can be used again; what it says is of no interest.
      _ = try? await response.collect(upTo: 64 << 10)
      return response.isSuccess ? nil : "answered \(response.status)"
    } catch {
      return error.message
    }
  }

  private func drop(_ count: Int, _ reason: String) {
    metrics?.add(Double(count), to: "ferry_pusher_facade_webhook_drops_total")
    logger.warning("webhook at \(place): \(count) events dropped: \(reason)")
  }
}
