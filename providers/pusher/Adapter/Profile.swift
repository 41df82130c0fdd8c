package import FerryConfig
package import FerryCore

/// How one app, or one kind of its channels, speaks: names of events and fields, and habits.
package struct Profile: Hashable, Sendable {
  /// Whether ids stand in JSON as strings or as numbers. Compared they are strings always.
  package enum IDStyle: String, Hashable, Sendable, CaseIterable { case string, integer }

  package var preset: Preset?
  package var events = EventNames()
  package var fields = FieldNames()
  package var via = Transports()
  package var ids = IDStyle.string
  /// Whether the text of messages is HTML.
  package var html = false

  package init() {}

  package init(_ preset: Preset) {
    self.preset = preset
    preset.adjust(&self)
  }

  /// Reads the keys that an account and its channel patterns have in common. `base` is what holds where a key is
  /// missing; a preset takes its place.
  init(_ mapping: ConfigMapping, over base: Profile) throws(FerryError) {
    self =
      try mapping.optional("preset").map { node throws(FerryError) in Profile(try node.choice(Preset.self)) } ?? base
    if let events = mapping.optional("events") {
      self.events = try EventNames(try events.mapping(), over: self.events)
    }
    if let fields = mapping.optional("fields") {
      self.fields = try FieldNames(try fields.mapping(), over: self.fields)
    }
    if let via = mapping.optional("via") { self.via = try Transports(try via.mapping(), over: self.via) }
    if let ids = mapping.optional("ids") { self.ids = try ids.choice(IDStyle.self) }
    if let html = mapping.optional("html") { self.html = try html.bool() }
  }

  /// A message's id as the app writes ids.
  func value(of id: MessageID) -> JSONValue {
    guard ids == .integer, let number = Int64(id.rawValue), String(number) == id.rawValue else {
      return .string(id.rawValue)
    }
    return .integer(number)
  }
}

/// By which way each kind of event leaves: the HTTP API, or the socket as a client event.
package struct Transports: Hashable, Sendable {
  package enum Way: String, Hashable, Sendable, CaseIterable { case server, client }

  enum Kind: String, CaseIterable, Sendable { case edit, delete, typing, delivered, read, reaction }

  private var ways: [String: Way] = [:]

  package init() {}

  package init(_ mapping: ConfigMapping) throws(FerryError) { try self.init(mapping, over: Transports()) }

  init(_ mapping: ConfigMapping, over base: Transports) throws(FerryError) {
    self = base
    for kind in Kind.allCases {
      if let node = mapping.optional(kind.rawValue) { ways[kind.rawValue] = try node.choice(Way.self) }
    }
    try mapping.finish()
  }

  /// What leaves, and how. Unless the configuration says otherwise, a name for client events is sent as one.
  ///
  /// The second name is for channels on which there are no client events.
  func plan(_ kind: Kind, _ names: [String]) -> (way: Way, name: String, serverName: String) {
    let first = names.first ?? kind.rawValue
    let way = ways[kind.rawValue] ?? (EventName.isFromClient(first) ? .client : .server)
    guard way == .client else { return (.server, first, first) }
    let stripped = EventName.isFromClient(first) ? String(first.dropFirst("client-".count)) : first
    let serverName = names.first { !EventName.isFromClient($0) } ?? stripped
    return (.client, names.first(where: EventName.isFromClient) ?? "client-\(first)", serverName)
  }
}

/// Settings for the channels whose names a pattern matches.
package struct ChannelSettings: Sendable {
  let pattern: ChannelPattern
  package let profile: Profile

  package init(_ pattern: ChannelPattern, _ profile: Profile) {
    self.pattern = pattern
    self.profile = profile
  }

  package init(_ mapping: ConfigMapping, over base: Profile) throws(FerryError) {
    pattern = ChannelPattern(try mapping.required("match").nonEmptyString())
    profile = try Profile(mapping, over: base)
    try mapping.finish()
  }
}

/// A channel's name in which a star stands for any number of any characters.
package struct ChannelPattern: Hashable, Sendable {
  private let parts: [[UInt8]]

  package init(_ text: String) {
    parts = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false).map(Array.init)
  }

  package func matches(_ channel: String) -> Bool {
    var rest = Array(channel.utf8)[...]
    guard let first = parts.first, rest.starts(with: first) else { return false }
    guard parts.count > 1, let last = parts.last else { return rest.count == first.count }
    rest = rest.dropFirst(first.count)
    for part in parts.dropFirst().dropLast() {
      // The earliest place leaves the most to those that follow.
      guard let place = Self.place(of: part, in: rest) else { return false }
      rest = rest[(place + part.count)...]
    }
    return rest.count >= last.count && rest.suffix(last.count).elementsEqual(last)
  }

  private static func place(of part: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard !part.isEmpty else { return bytes.startIndex }
    guard bytes.count >= part.count else { return nil }
    return (bytes.startIndex...(bytes.endIndex - part.count)).first { bytes[$0...].starts(with: part) }
  }
}
