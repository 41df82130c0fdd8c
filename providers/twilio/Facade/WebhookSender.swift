import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport

/// Sends what is put down for webhooks: to each target in order, to different targets side by side.
///
/// A delivery is removed once it was answered or given up, so that a restart sends what is left, and repeats at most
/// what was under way when the process was killed; the idempotency token tells the receiver.
final class WebhookSender: Sendable {
  private struct Lanes {
    var running: Set<String> = []
    /// Targets that are to be looked at: to start a lane, or to look once more before one ends.
    var told: Set<String> = []
  }

  private enum Outcome { case answered(status: Int, body: [UInt8]), silent(FerryError) }

  private let chat: ChatService
  private let client: HTTPClient
  private let signature: WebhookSignature
  private let settings: TwilioFacade.Settings
  private let clock: any FerryClock
  private let logger: Logger
  private let metrics: Metrics?
  private let lanes = Locked(Lanes())
  private let news = BoundedChannel<Void>(capacity: 1)

  private static let prefix = "webhooks/"
  private static let answerBytes = 64 << 10

  static func collection(_ target: String) -> String { prefix + target }

  init(
    chat: ChatService, client: HTTPClient, signature: WebhookSignature, settings: TwilioFacade.Settings,
    clock: any FerryClock, logger: Logger, metrics: Metrics?
  ) {
    self.chat = chat
    self.client = client
    self.signature = signature
    self.settings = settings
    self.clock = clock
    self.logger = logger
    self.metrics = metrics
  }

  /// Something was put down for a target.
  func poke(_ target: String) {
    lanes.withLock { _ = $0.told.insert(target) }
    _ = news.offer(())
  }

  func run() async {
    if let left = try? await chat.read({ try $0.collections(beginningWith: Self.prefix) }) {
      for collection in left { poke(String(collection.dropFirst(Self.prefix.count))) }
    }
    await withDiscardingTaskGroup { group in
      while await news.next() != nil {
        let new = lanes.withLock { lanes in
          let new = lanes.told.subtracting(lanes.running)
          lanes.running.formUnion(new)
          lanes.told.subtract(new)
          return new
        }
        for target in new { group.addTask { await self.runLane(target) } }
      }
    }
  }

  // MARK: Post-action

  private func runLane(_ target: String) async {
    let collection = Self.collection(target)
    while !Task.isCancelled {
      do throws(FerryError) {
        let page = try await chat.documents(in: collection, DocumentQuery(limit: 20))
        for document in page {
          if Task.isCancelled { break }
          // Not cancelled half-way: what has been sent is not to be sent again.
          let isDone = await Task { await self.deliver(document) }.value
          guard isDone else { break }
          try await chat.remove(document.id, from: collection)
        }
        if page.isEmpty, isOver(target) { return }
      } catch {
        logger.error("webhooks to \(target) are held up: \(error)")
        try? await clock.sleep(for: .seconds(1))
      }
    }
    lanes.withLock { _ = $0.running.remove(target) }
  }

  /// Ends the lane unless something was put down since it looked.
  private func isOver(_ target: String) -> Bool {
    lanes.withLock { lanes in
      if lanes.told.remove(target) != nil { return false }
      lanes.running.remove(target)
      return true
    }
  }

  /// True when nothing more is to be done for it. False when the task ends while it waits to try again.
  private func deliver(_ document: Document) async -> Bool {
    guard let delivery: WebhookDelivery = try? document.value() else { return true }
    for attempt in 0...settings.postWebhookRetries {
      if attempt > 0 { try? await clock.sleep(for: settings.webhookRetryDelay) }
      switch await send(delivery, attempt: attempt) {
      case .answered(let status, _) where (200..<300).contains(status):
        metrics?.add(to: "ferry_twilio_facade_webhooks_total")
        return true
      case .answered(let status, _):
        logger.warning("webhook \(delivery.event): answered \(status)")
        guard Self.isWorthRepeating(status) else { return true }
      case .silent(let error):
        logger.warning("webhook \(delivery.event): \(error)")
      }
    }
    metrics?.add(to: "ferry_twilio_facade_webhooks_lost_total")
    return true
  }

  private static func isWorthRepeating(_ status: Int) -> Bool { [429, 503, 504].contains(status) }

  // MARK: Pre-action

  /// Asks whether something may happen. The answer's JSON says what is to be changed; nil changes nothing.
  func consent(_ delivery: WebhookDelivery) async throws(TwilioError) -> JSONValue? {
    for attempt in 0...settings.preWebhookRetries {
      if attempt > 0 { try? await clock.sleep(for: settings.webhookRetryDelay) }
      switch await send(delivery, attempt: attempt) {
      case .answered(let status, let body) where (200..<300).contains(status):
        return status == 200 ? JSONText.value(body) : nil
      case .answered(let status, _):
        if Self.isWorthRepeating(status), attempt < settings.preWebhookRetries { continue }
        guard status >= 400 else { return nil }
        throw TwilioError(403, 50056, "The pre-action webhook refused \(delivery.event)")
      case .silent(let error):
        logger.warning("webhook \(delivery.event): \(error)")
      }
    }
    return nil
  }

  // MARK: One request

  private func send(_ delivery: WebhookDelivery, attempt: Int) async -> Outcome {
    var form = Form()
    for index in stride(from: 0, to: delivery.fields.count - 1, by: 2) {
      form.add(delivery.fields[index], delivery.fields[index + 1])
    }
    form.add("RetryCount", String(attempt))
    var url = String(delivery.url.prefix { $0 != "#" })
    var headers: HTTPHeaders = ["I-Twilio-Idempotency-Token": delivery.token, "User-Agent": "TwilioProxy/1.1"]
    var body = ClientRequest.Body.none
    if delivery.method == "GET" {
      url += (url.contains("?") ? "&" : "?") + form.encoded
      headers.set(WebhookSignature.header, signature.sign(url: url, form: []))
    } else {
      headers.set(WebhookSignature.header, signature.sign(url: url, form: form.fields))
      headers.set("Content-Type", Form.mediaType)
      body = .bytes(Array(form.encoded.utf8))
    }
    let request = ClientRequest(
      method: delivery.method, url: url, headers: headers, body: body, deadline: settings.webhookTimeout)
    do throws(FerryError) {
      let response = try await client.send(request)
      return .answered(status: response.status, body: try await response.collect(upTo: Self.answerBytes))
    } catch {
      return .silent(error)
    }
  }
}
