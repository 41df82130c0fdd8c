import FerryCore
import FerryRuntime
import FerryTransport

/// Sees to it that Twilio calls the configured address. Nothing waits for this: what is not announced is found by asking.
extension TwilioAdapter {
  /// What is to be done about a conversation's own webhooks.
  enum WebhookAction: Hashable {
    case none
    case create
    case update(sid: String)
    /// Only so many are allowed, and all are somebody else's.
    case noRoom
  }

  /// One of a conversation's own webhooks.
  private struct Scoped {
    let sid: String
    let url: String
    let method: String
    let filters: [String]

    init?(_ value: JSONValue) {
      guard let sid = value["sid"]?.string, value["target"]?.string == "webhook",
        let url = value["configuration"]?["url"]?.string
      else { return nil }
      self.sid = sid
      self.url = url
      method = value["configuration"]?["method"]?.string?.lowercased() ?? "post"
      filters = (value["configuration"]?["filters"]?.array ?? []).compactMap(\.string)
    }
  }

  /// A webhook to another host with our path is ours from before the host changed, as those of tunnels do.
  static func action(for address: String, given records: [JSONValue]) -> WebhookAction {
    let scoped = records.compactMap { Scoped($0) }
    let ours = scoped.filter { path(of: $0.url) == path(of: address) }
    if let same = ours.first(where: { $0.url == address }) {
      let isRight = same.method == "post" && Set(same.filters).isSuperset(of: WebhookEvent.filters)
      return isRight ? .none : .update(sid: same.sid)
    }
    if let stale = ours.first { return .update(sid: stale.sid) }
    return records.count < AdapterLimits.webhooksPerConversation ? .create : .noRoom
  }

  private static func path(of url: String) -> Substring {
    guard let slashes = url.firstRange(of: "://") else { return url[...] }
    return url[slashes.upperBound...].drop { $0 != "/" && $0 != "?" }
  }

  func checkWebhook(of channel: ChannelID, _ conversation: String) async {
    guard let address = settings.webhook else { return }
    do throws(FerryError) {
      if settings.webhookSetup { return try await setUp(address, conversation, channel) }
      let url = api.url("Conversations", conversation, "Webhooks")
      let scoped = try await api.all(url, doing: "list the webhooks").compactMap { Scoped($0) }
      if scoped.contains(where: { $0.url == address }) { return }
      if try await isConfigured(address) { return }
      logger.warning(
        "nothing at Twilio points to this account's webhook for \(channel), which is read by asking every "
          + "\(pollInterval.milliseconds / 1000) s; set webhook_setup: true, or the URL in Twilio's console")
    } catch {
      if !Task.isCancelled { logger.warning("the webhook of \(channel) could not be looked at: \(error)") }
    }
  }

  private func setUp(_ address: String, _ conversation: String, _ channel: ChannelID) async throws(FerryError) {
    let list = api.url("Conversations", conversation, "Webhooks")
    var form: Form = [("Configuration.Url", address), ("Configuration.Method", "post")]
    for filter in WebhookEvent.filters { form.add("Configuration.Filters", filter) }
    switch Self.action(for: address, given: try await api.all(list, doing: "list the webhooks")) {
    case .none: break
    case .create:
      form.add("Target", "webhook")
      try await api.post(list, form, doing: "create the webhook of \(channel)")
      logger.notice("created the webhook of \(channel)")
    case .update(let sid):
      try await api.post(
        api.url("Conversations", conversation, "Webhooks", sid), form, doing: "update the webhook of \(channel)")
      logger.notice("updated the webhook of \(channel)")
    case .noRoom:
      logger.warning(
        "\(channel) has \(AdapterLimits.webhooksPerConversation) webhooks already, which is all that Twilio allows; "
          + "remove one, or set the URL for the whole service")
    }
  }

  /// Whether the service or the account calls the address for all of its conversations.
  private func isConfigured(_ address: String) async throws(FerryError) -> Bool {
    var urls = [settings.api + "/v1/Configuration/Webhooks"]
    if settings.serviceSID != nil { urls.append(api.url("Configuration", "Webhooks")) }
    for url in urls {
      let answer = try await api.get(url, doing: "look at the account's webhooks")
      if answer["post_webhook_url"]?.string == address { return true }
    }
    return false
  }
}
