import FerryCore
import FerryRuntime

/// Where the last send to a channel is remembered on a service that keeps no history: a cache channel beside it.
///
/// A send publishes its event there too, in the same request, so that what the marker holds tells whether a lost
/// request was carried out. Lanes of several bridges write to one channel without waiting for one another, and a
/// person may post besides; so every bridge has a marker of its own, and so has every post of a person. The keys of
/// a bridge begin with its name.
enum Marker {
  static let prefix = "cache-ferry-"

  static func channel(for channel: ChannelID, _ key: SendKey) -> String {
    let text = "\(channel)\n\(scope(of: key))"
    return prefix + Crypto.hex(Crypto.digest(.sha256, of: text.utf8)).prefix(20)
  }

  /// Whether sends with keys like this one come one after the other under one marker.
  static func isShared(_ key: SendKey) -> Bool { key.rawValue.contains("|") }

  private static func scope(of key: SendKey) -> Substring { key.rawValue.prefix { $0 != "|" } }

  /// What a marker holds that is no message itself.
  static func data(_ key: SendKey?) -> String {
    JSONText.text(of: [FerryField.name: FerryField(stamp: nil, key: key ?? "")])
  }

  /// The key in what a marker holds.
  static func key(in data: String) -> SendKey? {
    JSONText.decode(JSONValue.self, from: data).flatMap { FerryField($0)?.key }.map { SendKey($0) }
  }

  /// The id of what was posted under a key: the same on every retry, and known before the answer.
  static func messageID(_ key: SendKey, _ style: Profile.IDStyle = .string) -> MessageID {
    let digest = Crypto.digest(.sha256, of: key.rawValue.utf8)
    switch style {
    case .string: return MessageID(String(Crypto.hex(digest).prefix(24)))
    case .integer:
      // 52 bits: what every app's numbers can hold, JavaScript's among them.
      let number = digest.prefix(7).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } >> 4
      return MessageID(String(max(number, 1)))
    }
  }

  /// What a marker holds of a key: the key itself, and beside an encrypted channel something that only tells those
  /// who have the channel's key whether it is the same.
  static func token(_ key: SendKey, _ box: SecretBox?) -> SendKey {
    box.map { SendKey($0.fingerprint(of: key.rawValue)) } ?? key
  }
}
