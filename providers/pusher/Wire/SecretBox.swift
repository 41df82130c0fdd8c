import CSodium
package import FerryCore
import FerryRuntime
import FoundationEssentials

/// The key of one encrypted channel, and what is sealed and opened with it.
///
/// XSalsa20-Poly1305 ("secretbox") with a random nonce for every event, all from libsodium. An event's data becomes
/// the JSON text `{"nonce":"...","ciphertext":"..."}`, both in standard base64.
/// Source: the Channels protocol's end-to-end encryption.
package struct SecretBox: Sendable, Hashable {
  /// Of a channel's key and of the master key, in bytes.
  package static let keyBytes = Int(crypto_secretbox_KEYBYTES)
  private static let nonceBytes = Int(crypto_secretbox_NONCEBYTES)
  private static let tagBytes = Int(crypto_secretbox_MACBYTES)

  private let key: [UInt8]

  /// Nil unless the key is as long as a key is.
  package init?(key: [UInt8]) {
    guard key.count == Self.keyBytes, Self.isReady else { return nil }
    self.key = key
  }

  /// From base64, as an auth endpoint hands out `shared_secret` and a configuration holds the master key.
  package init?(base64: String) {
    guard let key = Data(base64Encoded: base64) else { return nil }
    self.init(key: Array(key))
  }

  /// The box of a channel, where this one's key is the application's master key.
  package func box(for channel: String) -> SecretBox {
    SecretBox(derived: Crypto.digest(.sha256, of: Array(channel.utf8) + key))
  }

  private init(derived: [UInt8]) { key = derived }

  /// What subscribers of the channel are given.
  package var sharedSecret: String { Data(key).base64EncodedString() }

  // MARK: Sealing

  /// The data of an event that says `text`.
  package func seal(_ text: String) -> String {
    var nonce = [UInt8](repeating: 0, count: Self.nonceBytes)
    randombytes_buf(&nonce, nonce.count)
    return seal(text, nonce: nonce)
  }

  /// Never twice with one nonce: only tests choose it.
  func seal(_ text: String, nonce: [UInt8]) -> String {
    precondition(nonce.count == Self.nonceBytes, "a nonce has \(Self.nonceBytes) bytes")
    let plain = Array(text.utf8)
    var sealed = [UInt8](repeating: 0, count: plain.count + Self.tagBytes)
    crypto_secretbox_easy(&sealed, plain, UInt64(plain.count), nonce, key)
    return
      #"{"nonce":"\#(Data(nonce).base64EncodedString())","ciphertext":"\#(Data(sealed).base64EncodedString())"}"#
  }

  /// Nil for what was not sealed with this key, whatever else it is.
  package func open(_ data: JSONValue) -> String? {
    guard let nonce = data["nonce"]?.string.flatMap({ Data(base64Encoded: $0) }), nonce.count == Self.nonceBytes,
      let sealed = data["ciphertext"]?.string.flatMap({ Data(base64Encoded: $0) }), sealed.count >= Self.tagBytes
    else { return nil }
    var plain = [UInt8](repeating: 0, count: sealed.count - Self.tagBytes)
    let status = crypto_secretbox_open_easy(&plain, Array(sealed), UInt64(sealed.count), Array(nonce), key)
    guard status == 0 else { return nil }
    return String(validating: plain, as: UTF8.self)
  }

  // MARK: Sizes

  /// The bytes of an event's data that seals so many bytes of text.
  package static func sealedBytes(of count: Int) -> Int {
    #"{"nonce":"","ciphertext":""}"#.utf8.count + base64Bytes(of: nonceBytes) + base64Bytes(of: count + tagBytes)
  }

  /// The longest text, in bytes, whose sealed form is no longer than an event may be.
  package static let longestText: Int = {
    let room = Limits.dataBytes - sealedBytes(of: 0) + base64Bytes(of: tagBytes)
    return room / 4 * 3 - tagBytes
  }()

  private static func base64Bytes(of count: Int) -> Int { (count + 2) / 3 * 4 }

  private static let isReady = sodium_init() >= 0
}

extension SecretBox: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "<key>" }
  package var debugDescription: String { "<key>" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
