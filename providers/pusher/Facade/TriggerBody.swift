import FerryCore

/// An event as publishers post it, checked.
struct PublishedEvent: Sendable {
  let name: String
  let channels: [ChannelName]
  let data: String
  /// The connection that is not to get it back.
  let exceptSocketID: String?
  /// Attributes of the channels that the publisher wants to know.
  let info: Set<ChannelAttribute>
}

enum ChannelAttribute: String, Sendable {
  case userCount = "user_count"
  case subscriptionCount = "subscription_count"
  case cache

  static func parse(_ list: String?) throws(Refusal) -> Set<ChannelAttribute> {
    var attributes: Set<ChannelAttribute> = []
    for name in (list ?? "").split(separator: ",") {
      guard let attribute = ChannelAttribute(rawValue: String(name)) else {
        throw Refusal(400, "Invalid info attribute: \"\(name)\" is not one of user_count, subscription_count, cache")
      }
      attributes.insert(attribute)
    }
    return attributes
  }
}

/// The JSON that `events` and, item by item, `batch_events` take.
private struct EventBody: Decodable {
  let name: String?
  let channel: String?
  let channels: [String]?
  let data: FrameData?
  let socketID: String?
  let info: String?

  enum CodingKeys: String, CodingKey {
    case name, channel, channels, data, info
    case socketID = "socket_id"
  }
}

private struct BatchBody: Decodable { let batch: [EventBody] }

extension PublishedEvent {
  static func one(from body: [UInt8]) throws(Refusal) -> PublishedEvent {
    guard let body = JSONText.decode(EventBody.self, from: body) else {
      throw Refusal(400, "Invalid body: it must be a JSON object with name, channels and data")
    }
    return try PublishedEvent(body)
  }

  /// All or none: the first bad event refuses the batch.
  static func batch(from body: [UInt8]) throws(Refusal) -> [PublishedEvent] {
    guard let body = JSONText.decode(BatchBody.self, from: body) else {
      throw Refusal(400, "Invalid body: it must be a JSON object with a batch of events")
    }
    guard (1...Limits.eventsPerBatch).contains(body.batch.count) else {
      throw Refusal(
        400, "Invalid batch: it holds \(body.batch.count) events, and must hold 1 to \(Limits.eventsPerBatch)")
    }
    var events: [PublishedEvent] = []
    for item in body.batch {
      guard item.channels == nil else { throw Refusal(400, "Invalid batch: each event names one channel") }
      events.append(try PublishedEvent(item))
    }
    return events
  }

  private init(_ body: EventBody) throws(Refusal) {
    try self.init(
      name: body.name, channels: body.channels ?? body.channel.map { [$0] } ?? [], data: body.data?.string,
      exceptSocketID: body.socketID, info: try ChannelAttribute.parse(body.info))
  }

  /// Holds an event to the service's rules.
  init(
    name: String?, channels: [String], data: String?, exceptSocketID: String? = nil, info: Set<ChannelAttribute> = []
  ) throws(Refusal) {
    guard let name, !name.isEmpty else { throw Refusal(400, "Missing name: the event has none") }
    guard name.unicodeScalars.count <= EventName.longest else {
      throw Refusal(400, "Invalid event name: it is longer than \(EventName.longest) characters")
    }
    guard !EventName.isReserved(name) else {
      throw Refusal(400, "Invalid event name: names that begin with pusher: or pusher_internal: are reserved")
    }
    guard (1...Limits.channelsPerEvent).contains(channels.count) else {
      throw Refusal(
        400, "Invalid channels: the event names \(channels.count), and must name 1 to \(Limits.channelsPerEvent)")
    }
    guard let data else { throw Refusal(400, "Missing data: the event has none") }
    guard data.utf8.count <= Limits.dataBytes else {
      throw Refusal(
        413, "The data content of this event exceeds the allowed maximum (\(Limits.dataBytes) bytes)")
    }
    if let exceptSocketID, !Self.isSocketID(exceptSocketID) {
      throw Refusal(400, "Invalid socket_id: it must be two numbers joined by a dot")
    }
    self.name = name
    self.channels = try Self.distinct(channels)
    self.data = data
    self.exceptSocketID = exceptSocketID
    self.info = info
    // Each channel has a key of its own, so the data fit one of them at most.
    if self.channels.count > 1, self.channels.contains(where: \.isEncrypted) {
      throw Refusal(400, "Invalid channels: an event cannot go to multiple channels when one of them is encrypted")
    }
  }

  private static func distinct(_ names: [String]) throws(Refusal) -> [ChannelName] {
    var seen: Set<String> = []
    var channels: [ChannelName] = []
    for name in names where seen.insert(name).inserted {
      channels.append(try ChannelName.checked(name))
    }
    return channels
  }

  static func isSocketID(_ text: String) -> Bool {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return parts.count == 2
      && parts.allSatisfy { part in
        !part.isEmpty && part.count <= 20 && part.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
      }
  }
}

extension ChannelName {
  static func checked(_ name: String) throws(Refusal) -> ChannelName {
    guard let channel = ChannelName(service: name) else {
      throw Refusal(
        400,
        "Invalid channel name: \"\(name.prefix(ChannelName.longestAccepted))\" must be 1 to \(longestAccepted) of the "
          + "letters, digits and signs _-=@,.;")
    }
    return channel
  }
}
