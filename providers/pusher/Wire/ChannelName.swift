/// What a channel's name says about it. Source: the prefix table of the Channels protocol, longest prefix first.
package struct ChannelName: Hashable, Sendable {
  /// `user`: the one user that a server sends to.
  package enum Access: Hashable, Sendable { case everybody, signed, members, user }

  package let text: String
  package let access: Access
  /// Keeps its last event for those who subscribe later.
  package let isCache: Bool
  /// Carries ciphertext that the service cannot read; client events are not offered on it.
  package let isEncrypted: Bool

  /// What a service accepts, and what the documentation allows a client to use.
  package static let longestAccepted = 200
  package static let longestSent = 164

  private static let prefixes: [(prefix: String, access: Access, isCache: Bool, isEncrypted: Bool)] = [
    ("private-encrypted-cache-", .signed, true, true),
    ("private-encrypted-", .signed, false, true),
    ("private-cache-", .signed, true, false),
    ("private-", .signed, false, false),
    ("presence-cache-", .members, true, false),
    ("presence-", .members, false, false),
    ("cache-", .everybody, true, false),
  ]

  /// Nil for a name that is empty, too long, or has characters outside letters, digits and `_-=@,.;`.
  package init?(_ text: String, longest: Int = ChannelName.longestAccepted) {
    guard !text.isEmpty, text.utf8.count <= longest, text.utf8.allSatisfy(Self.isAllowed) else { return nil }
    self.text = text
    if let kind = Self.prefixes.first(where: { text.hasPrefix($0.prefix) }) {
      (access, isCache, isEncrypted) = (kind.access, kind.isCache, kind.isEncrypted)
    } else {
      (access, isCache, isEncrypted) = (.everybody, false, false)
    }
  }

  /// Also a user's own channel, `#server-to-user-ID`, which a client asks for only after it has signed in.
  package init?(service text: String) {
    guard text.hasPrefix(Self.userPrefix) else {
      self.init(text)
      return
    }
    let id = text.dropFirst(Self.userPrefix.count)
    guard Self.isUserID(id), text.utf8.count <= Self.longestAccepted else { return nil }
    self.init(user: text)
  }

  private init(user text: String) {
    self.text = text
    (access, isCache, isEncrypted) = (.user, false, false)
  }

  package static let userPrefix = "#server-to-user-"

  /// Whether somebody may sign in as `id`: letters, digits and signs, as in names.
  package static func isUserID(_ id: some StringProtocol) -> Bool { !id.isEmpty && id.utf8.allSatisfy(isAllowed) }

  /// Whose channel it is; nil for a channel of several.
  package var userID: String? { access == .user ? String(text.dropFirst(Self.userPrefix.count)) : nil }

  package var isPresence: Bool { access == .members }
  /// Whether a client needs a signature.
  package var isSigned: Bool { access == .signed || access == .members }

  private static func isAllowed(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_-=@,.;".utf8.contains(byte)
    }
  }
}

/// Names of events.
package enum EventName {
  package static let longest = 200

  /// Kept for the service itself: no publisher and no client may use them.
  package static func isReserved(_ name: String) -> Bool {
    name.hasPrefix("pusher:") || name.hasPrefix("pusher_internal:")
  }

  package static func isFromClient(_ name: String) -> Bool { name.hasPrefix("client-") }
}

/// The service's numbers that both sides keep.
package enum Limits {
  /// Of an event's `data`, in UTF-8 bytes.
  package static let dataBytes = 10240
  package static let channelsPerEvent = 100
  package static let eventsPerBatch = 10
  /// How far a request's time may be off, in seconds.
  package static let clockSkew: Int64 = 600
  package static let presenceMembers = 100
  package static let userIDLength = 128
  package static let userInfoBytes = 1024
  /// How long a cache channel keeps its event, in seconds.
  package static let cacheSeconds: Double = 1800
  package static let watchlistUsers = 100
  /// From so many subscribers up, their number is told only every few seconds.
  package static let countedAtOnce = 100
}
