/// A name or key that must not be mixed up with another kind of name.
///
/// Conforming types wrap a string, compare by it, and are written to JSON as that string.
package protocol Identifier: RawRepresentable, Hashable, Comparable, Sendable, Codable, CustomStringConvertible,
  ExpressibleByStringLiteral
where RawValue == String {
  init(rawValue: String)
}

extension Identifier {
  package init(_ rawValue: String) { self.init(rawValue: rawValue) }
  package init(stringLiteral value: String) { self.init(rawValue: value) }
  package var description: String { rawValue }
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The name of an account. Made by the person who writes the configuration; unique in it.
package struct AccountName: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// The name of a bridge. Made by the person who writes the configuration; unique in it.
package struct BridgeName: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// A room at an account. Made by the provider or its user; unique in the account.
package struct ChannelID: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// One message in a channel. Made by the provider, or by the adapter where the wire carries none; unique in the
/// channel. Numbers on the wire are strings here.
package struct MessageID: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// A person or program at an account. Made by the provider; unique in the account.
package struct UserID: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// One occurrence in a channel, the same however often the source reports it. Made by the adapter; unique in the
/// channel. Duplicates of a key are dropped, so an adapter must not give one key to two occurrences.
package struct EventKey: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// One logical send, the same on every retry of it. Made by whoever sends; unique in the destination channel.
package struct SendKey: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// A place in a source's stream of events. Made by the adapter, opaque to everyone else; valid in one channel.
package struct Cursor: Identifier {
  package let rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }
}

/// Account and channel, written `account:channel`. Only the first colon divides: a channel may hold more.
package struct Address: Hashable, Comparable, Sendable, Codable, CustomStringConvertible, LosslessStringConvertible {
  package let account: AccountName
  package let channel: ChannelID

  package init(account: AccountName, channel: ChannelID) {
    self.account = account
    self.channel = channel
  }

  /// Nil when there is no colon, or nothing on one side of it.
  package init?(_ description: String) {
    guard let colon = description.firstIndex(of: ":") else { return nil }
    let account = description[..<colon]
    let channel = description[description.index(after: colon)...]
    guard !account.isEmpty, !channel.isEmpty else { return nil }
    self.init(account: AccountName(String(account)), channel: ChannelID(String(channel)))
  }

  package var description: String { "\(account):\(channel)" }

  package static func < (left: Address, right: Address) -> Bool {
    (left.account, left.channel) < (right.account, right.channel)
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    let text = try container.decode(String.self)
    guard let address = Address(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "an address is written account:channel, not \"\(text)\"")
    }
    self = address
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}

/// Milliseconds since 1970-01-01T00:00:00Z, the finest time every provider can be given.
package struct Timestamp: Hashable, Comparable, Sendable, Codable {
  package let milliseconds: Int64

  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  package init(from decoder: any Decoder) throws {
    milliseconds = try decoder.singleValueContainer().decode(Int64.self)
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(milliseconds)
  }

  package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }
}
