package import FerryCore

extension Journal {
  private static let messageLimit = 16
  private static let eventLimit = 200

  /// The way of every message that `id` names: as an original, as a copy, by an event's key, a send's key
  /// or, where none of these is it, a delivery's number.
  ///
  /// Without `address` all addresses that the journal knows are looked through, at the cost of two look-ups each.
  package func trace(_ id: String, at address: Address? = nil) async throws(FerryError) -> [MessageTrace] {
    try await database.read { connection in
      var found: [MessageTrace] = []
      func add(_ subject: (Address, MessageID?, EventKey?)) throws {
        let (address, message, key) = subject
        let isKnown = found.contains { $0.address == address && $0.message == message && $0.message != nil }
        guard !isKnown, found.count < Self.messageLimit else { return }
        found.append(try Self.trace(address, message, key, connection))
      }
      if let stamp = Stamp(key: SendKey(id)) {
        for subject in try Self.subjects(of: Self.source(of: stamp), at: stamp.origin, connection) { try add(subject) }
      }
      for address in try address.map({ [$0] }) ?? Self.addresses(connection) {
        for subject in try Self.subjects(of: id, at: address, connection) { try add(subject) }
      }
      if found.isEmpty, address == nil, let subject = try Self.subject(ofDelivery: id, connection) { try add(subject) }
      return found
    }
  }

  /// What the delivery `ferry dead` and the console call by this number is about; `#` may stand before it.
  private static func subject(
    ofDelivery id: String, _ connection: Connection
  ) throws -> (Address, MessageID?, EventKey?)? {
    guard let number = Int64(id.hasPrefix("#") ? id.dropFirst() : id[...]) else { return nil }
    let event = try connection.first(
      "SELECT e.account, e.channel, e.key, e.message FROM deliveries d JOIN events e ON e.id = d.event WHERE d.id = ?",
      .integer(number)
    ) { (address($0, 0), EventKey($0.text(2)), $0.optionalText(3).map { MessageID($0) }) }
    guard let (place, key, message) = event else { return nil }
    guard let message else { return (place, nil, key) }
    let known = [SQLValue.text(place.account.rawValue), .text(place.channel.rawValue), .text(message.rawValue)]
    return try original(known, connection) ?? (place, message, nil)
  }

  /// A note is stamped with the key of the event that it is about.
  private static func source(of stamp: Stamp) -> String {
    let id = stamp.id.rawValue
    return id.hasPrefix("note/") ? String(id.dropFirst(5)) : id
  }

  /// Originals that `id` leads to; an event's key, when the event is about no message.
  private static func subjects(
    of id: String, at address: Address, _ connection: Connection
  ) throws -> [(Address, MessageID?, EventKey?)] {
    let place = [SQLValue.text(address.account.rawValue), .text(address.channel.rawValue), .text(id)]
    if let original = try original(place, connection) { return [original] }
    let isKnown = try connection.first(
      """
      SELECT 1 FROM events WHERE account = ?1 AND channel = ?2 AND message = ?3
      UNION ALL SELECT 1 FROM links WHERE origin_account = ?1 AND origin_channel = ?2 AND origin = ?3 LIMIT 1
      """, place[0], place[1], place[2]
    ) { _ in true }
    if isKnown == true { return [(address, MessageID(id), nil)] }
    let keyed = try connection.first(
      "SELECT message FROM events WHERE account = ? AND channel = ? AND key = ?", place[0], place[1], place[2]
    ) { $0.optionalText(0) }
    guard let keyed else { return [] }
    guard let message = keyed else { return [(address, nil, EventKey(id))] }
    return [try original([place[0], place[1], .text(message)], connection) ?? (address, MessageID(message), nil)]
  }

  /// What a copy is a copy of.
  private static func original(
    _ copy: [SQLValue], _ connection: Connection
  ) throws -> (Address, MessageID?, EventKey?)? {
    try connection.first(
      "SELECT origin_account, origin_channel, origin FROM links WHERE account = ? AND channel = ? AND copy = ?",
      copy[0], copy[1], copy[2]
    ) { (address($0, 0), MessageID($0.text(2)), nil) }
  }

  /// Every address that was listened to or written to. Each step finds the next, so links are not walked.
  private static func addresses(_ connection: Connection) throws -> [Address] {
    var addresses = Set(try connection.rows("SELECT account, channel FROM cursors") { address($0, 0) })
    var last = (account: "", channel: "")
    while let next = try connection.first(
      """
      SELECT account, channel FROM links WHERE (account, channel) > (?, ?) ORDER BY account, channel LIMIT 1
      """, .text(last.account), .text(last.channel), map: { ($0.text(0), $0.text(1)) })
    {
      last = next
      addresses.insert(Address(account: AccountName(next.0), channel: ChannelID(next.1)))
    }
    return addresses.sorted()
  }

  private static func trace(
    _ place: Address, _ message: MessageID?, _ key: EventKey?, _ connection: Connection
  ) throws -> MessageTrace {
    var trace = MessageTrace(address: place, message: message)
    if let key {
      trace.received = try events("key = ?", place, key.rawValue, connection)
    }
    guard let message else { return trace }
    trace.received = try events("message = ?", place, message.rawValue, connection)
    trace.copies = try connection.rows(
      """
      SELECT account, channel, bridge, copy, part, revision, deleted FROM links
      WHERE origin_account = ? AND origin_channel = ? AND origin = ? ORDER BY bridge, account, channel, part LIMIT ?
      """, .text(place.account.rawValue), .text(place.channel.rawValue), .text(message.rawValue),
      SQLValue(eventLimit)
    ) { row in
      Link(
        bridge: BridgeName(row.text(2)), source: place, origin: message, destination: address(row, 0),
        copy: MessageID(row.text(3)), part: Int(row.integer(4)), revision: Int(row.integer(5)),
        isDeleted: row.integer(6) != 0)
    }
    for copy in trace.copies where trace.received.count < eventLimit {
      trace.received += try events("message = ?", copy.destination, copy.copy.rawValue, connection)
    }
    return trace
  }

  private static func events(
    _ condition: String, _ place: Address, _ value: String, _ connection: Connection
  ) throws -> [MessageTrace.Received] {
    let events = try connection.rows(
      """
      SELECT id, key, kind, message, time, accepted FROM events
      WHERE account = ? AND channel = ? AND \(condition) ORDER BY id LIMIT ?
      """, .text(place.account.rawValue), .text(place.channel.rawValue), .text(value), SQLValue(eventLimit)
    ) { row in
      let received = MessageTrace.Received(
        address: place, key: EventKey(row.text(1)), kind: row.text(2),
        message: row.optionalText(3).map { MessageID($0) }, time: Timestamp(milliseconds: row.integer(4)),
        accepted: Timestamp(milliseconds: row.integer(5)))
      return (row.integer(0), received)
    }
    return try events.map { id, received in
      var received = received
      received.deliveries = try deliveries(of: id, connection)
      return received
    }
  }

  private static func deliveries(of event: Int64, _ connection: Connection) throws -> [MessageTrace.Sent] {
    let sent = try connection.rows(
      "SELECT account, channel, id, bridge, state, attempts, updated, error FROM deliveries WHERE event = ? ORDER BY id",
      .integer(event)
    ) { row in
      MessageTrace.Sent(
        delivery: row.integer(2), lane: LaneID(bridge: BridgeName(row.text(3)), destination: address(row, 0)),
        state: Delivery.State(rawValue: row.integer(4)) ?? .pending, failedAttempts: Int(row.integer(5)),
        updated: Timestamp(milliseconds: row.integer(6)), lastError: row.optionalText(7))
    }
    return try sent.map { delivery in
      var delivery = delivery
      delivery.failures = try connection.rows(
        "SELECT time, error FROM attempts WHERE delivery = ? ORDER BY id", .integer(delivery.delivery)
      ) { (Timestamp(milliseconds: $0.integer(0)), $0.text(1)) }
      return delivery
    }
  }

  private static func address(_ row: Row, _ column: Int32) -> Address {
    Address(account: AccountName(row.text(column)), channel: ChannelID(row.text(column + 1)))
  }
}
