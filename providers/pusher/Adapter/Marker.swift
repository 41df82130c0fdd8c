import FerryCore
import FerryRuntime

/// Where the last send to a channel is remembered on a service that keeps no history: a cache channel beside it.
///
/// A send publishes its event there too, in the same request, so that what the marker holds tells whether a lost
/// request was carried out. Lanes of several bridges, and of several relays, write to one channel without waiting for
/// one another, and a person may post besides; so every bridge has a marker of its own for each source, and so has
/// every post of a person. The keys of a bridge begin with its name and the source's address.
///
/// Its name can be guessed, and the app's key is in every client, so nobody may listen to it without a signature.
enum Marker {
  static let prefix = "private-cache-ferry-"

  static func channel(for channel: ChannelID, _ key: SendKey) -> String {
    let text = "\(channel)\n\(scope(of: key))"
    return prefix + Crypto.hex(Crypto.digest(.sha256, of: text.utf8)).prefix(20)
  }

  /// Whether sends with keys like this one come one after the other under one marker.
  static func isShared(_ key: SendKey) -> Bool { key.rawValue.contains("|") }

  /// Bridge and source; a divider within the source's name is escaped, and so may be taken for the end of the name.
  private static func scope(of key: SendKey) -> Substring {
    let text = key.rawValue
    guard let first = text.firstIndex(of: "|") else { return text[...] }
    let second = text[text.index(after: first)...].firstIndex(of: "|")
    return text[..<(second ?? first)]
  }

  /// What a marker holds that is no message itself.
  static func data(_ key: SendKey?) -> String {
    JSONText.text(of: [FerryField.name: FerryField(stamp: nil, key: key ?? "")])
  }

  /// The key in what a marker holds.
  static func key(in data: String) -> SendKey? {
    JSONText.decode(JSONValue.self, from: data).flatMap { FerryField($0)?.sendKey }
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

  /// What a marker holds of a key: the key itself, and beside an encrypted channel something that tells those alone
  /// who have the app's secret whether it is the same. The channel's own key would not do: it may be another by the time
  /// the send is looked for.
  static func token(_ key: SendKey, on channel: ChannelName, _ appKey: AppKey) -> SendKey {
    channel.isEncrypted ? SendKey(appKey.fingerprint(of: key.rawValue)) : key
  }
}
