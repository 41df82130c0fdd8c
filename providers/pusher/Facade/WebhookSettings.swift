import FerryConfig
import FerryCore

/// One address that is told what happens on channels.
package struct WebhookSettings: Sendable {
  /// Absolute, `http` or `https`.
  package var url: String
  package var events: Set<WebhookEvent.Kind>
  /// Whether events that wait are told together, rather than one a request.
  package var batch: Bool

  package init(url: String, events: Set<WebhookEvent.Kind> = Set(WebhookEvent.Kind.allCases), batch: Bool = false) {
    self.url = url
    self.events = events
    self.batch = batch
  }

  /// Reads the keys of one webhook. Subscription counts are told only where they are counted.
  init(_ node: ConfigNode, countsSubscriptions: Bool) throws(FerryError) {
    let mapping = try node.mapping()
    let urlNode = try mapping.required("url")
    url = try urlNode.nonEmptyString()
    guard Self.place(of: url) != nil else {
      throw urlNode.error("\"url\" must begin with http:// or https:// and name a host")
    }
    events = Set(WebhookEvent.Kind.allCases)
    if let list = mapping.optional("events") {
      events = []
      for item in try list.list() {
        let kind = try item.choice(WebhookEvent.Kind.self)
        if kind == .subscriptionCount, !countsSubscriptions {
          throw item.error("subscription_count is told only with \"subscription_count: true\" on the facade")
        }
        events.insert(kind)
      }
      guard !events.isEmpty else { throw list.error("\"events\" must not be empty; leave it out for all") }
    }
    batch = try mapping.optional("batch")?.bool() ?? false
    try mapping.finish()
  }

  /// Host and port, for people: nothing of an address that could be secret. Nil when it is no web address.
  static func place(of url: String) -> String? {
    guard let scheme = ["http://", "https://"].first(where: { url.hasPrefix($0) }),
      url.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f })
    else { return nil }
    let authority = url.dropFirst(scheme.count).prefix { !"/?#".contains($0) }
    let place = authority.split(separator: "@", omittingEmptySubsequences: false).last.map(String.init) ?? ""
    return place.isEmpty || place.hasPrefix(":") ? nil : place
  }
}
