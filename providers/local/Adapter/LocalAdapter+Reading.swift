import FerryChat
package import FerryCore
import FerryTransport

extension LocalAdapter: ChatProvider, HistoryProvider {
  package func run(_ subscriptions: [Subscription], into inbox: any Inbox) async throws(FerryError) {
    var listener = Listener(adapter: self, inbox: inbox, subscriptions: subscriptions)
    try await listener.run()
  }

  package func find(_ key: SendKey, in channel: ChannelID) async throws(FerryError) -> Finding {
    try await find([key], in: channel)[0]
  }

  package func find(_ keys: [SendKey], in channel: ChannelID) async throws(FerryError) -> [Finding] {
    var found: [[UInt8]: MessageID] = [:]
    let keys = keys.map { Self.fitted(id: $0.rawValue) }
    for query in Self.queries(keys) {
      let path = Self.path(channel, "messages") + "?" + query
      let page = try await get(path, Answers.PostedMessages.self, doing: "look for a message")
      for message in page.messages { found[Array((message.client_id ?? "").utf8)] = MessageID(message.id) }
    }
    return keys.map { key in found[Array(key.utf8)].map { .found($0) } ?? .absent }
  }

  /// The keys as queries, each short enough for a request's first line.
  private static func queries(_ keys: [String]) -> [String] {
    var queries: [String] = []
    for key in keys {
      let item = "client_id=" + PercentEncoding.encode(key)
      if let last = queries.last, last.utf8.count + item.utf8.count < 4000 {
        queries[queries.count - 1] = last + "&" + item
      } else {
        queries.append(item)
      }
    }
    return queries
  }

  package func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    var request: ClientRequest
    switch reference {
    case .provider(let sha256):
      request = ClientRequest(url: "\(settings.url)/v1/files/\(Self.segment(sha256))", headers: authorization)
    case .url(let url):
      request = ClientRequest(url: url, redirects: 3, isTrusted: false)
    }
    request.deadline = .seconds(600)
    return try await send(request, doing: "fetch an attachment").body
  }

  package func channels() async throws(FerryError) -> [ChannelSummary] {
    var channels: [ChannelSummary] = []
    var next: String?
    repeat {
      let query = "?limit=500" + (next.map { "&after=\(PercentEncoding.encode($0))" } ?? "")
      let page = try await get("/v1/rooms" + query, Answers.Rooms.self, doing: "list the rooms")
      channels += page.rooms.map { ChannelSummary(id: ChannelID($0.id), name: $0.title, members: $0.members) }
      next = page.next
    } while next != nil
    return channels
  }

  /// What was deleted is left out, so a page may have fewer messages than asked for, or none, and still not be the last.
  package func history(
    of channel: ChannelID, order: HistoryOrder, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> HistoryPage {
    let (name, bound) = order == .oldestFirst ? ("oldest", "after") : ("newest", "before")
    var path = Self.path(channel, "messages") + "?order=\(name)&limit=\(min(max(limit, 1), 500))"
    if let cursor { path += "&\(bound)=\(PercentEncoding.encode(cursor.rawValue))" }
    let page = try await get(path, Answers.Messages.self, doing: "read the history")
    var messages: [Message] = []
    for message in page.messages where message.deleted == nil { messages.append(try message.message()) }
    return HistoryPage(messages: messages, next: page.next.map { Cursor($0) })
  }
}
