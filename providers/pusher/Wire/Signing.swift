package import FerryConfig
import FerryRuntime

/// An application's key and secret, and everything that is signed with them.
///
/// Signatures are lower-case hexadecimal HMAC-SHA256 under the secret.
package struct AppKey: Sendable {
  package let key: String
  private let secret: Secret

  package init(key: String, secret: Secret) {
    self.key = key
    self.secret = secret
  }

  package func signature(of text: String) -> String {
    Crypto.hex(Crypto.hmac(.sha256, key: secret.reveal().utf8, text.utf8))
  }

  /// The same for equal texts, of use to nobody without the secret, and no signature of anything.
  package func fingerprint(of text: String) -> String {
    let key = Crypto.hmac(.sha256, key: secret.reveal().utf8, "ferry fingerprint".utf8)
    return Crypto.hex(Crypto.hmac(.sha256, key: key, text.utf8))
  }

  // MARK: Requests

  /// What a request's signature covers: method, path without query, and every parameter but the signature itself,
  /// by lower-case name, values not escaped.
  package static func stringToSign(method: String, path: String, parameters: [(name: String, value: String)]) -> String
  {
    let pairs = parameters.map { (name: $0.name.lowercased(), value: $0.value) }
      .filter { $0.name != "auth_signature" }
      .enumerated()
      // Repeated names keep their order.
      .sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
      .map { "\($0.element.name)=\($0.element.value)" }
    return "\(method.uppercased())\n\(path)\n\(pairs.joined(separator: "&"))"
  }

  /// The parameters of a request together with those that sign it. The body's digest covers the exact bytes sent.
  package func signed(
    method: String, path: String, parameters: [(name: String, value: String)] = [], body: [UInt8], seconds: Int64
  ) -> [(name: String, value: String)] {
    var all = parameters
    all += [("auth_key", key), ("auth_timestamp", String(seconds)), ("auth_version", "1.0")]
    if !body.isEmpty { all.append(("body_md5", Self.digest(of: body))) }
    let text = Self.stringToSign(method: method, path: path, parameters: all)
    return all + [("auth_signature", signature(of: text))]
  }

  package static func digest(of body: [UInt8]) -> String { Crypto.hex(Crypto.digest(.md5, of: body)) }

  // MARK: Channels and users

  /// What a subscription's signature covers. `channelData` is the string exactly as it travels.
  package static func channelString(socketID: String, channel: String, channelData: String?) -> String {
    channelData.map { "\(socketID):\(channel):\($0)" } ?? "\(socketID):\(channel)"
  }

  /// `KEY:SIGNATURE`, as a subscription carries it.
  package func channelAuth(socketID: String, channel: String, channelData: String? = nil) -> String {
    let text = Self.channelString(socketID: socketID, channel: channel, channelData: channelData)
    return "\(key):\(signature(of: text))"
  }

  /// `KEY:SIGNATURE`, as a sign-in carries it. `userData` is the string exactly as it travels.
  package func userAuth(socketID: String, userData: String) -> String {
    "\(key):\(signature(of: Self.userString(socketID: socketID, userData: userData)))"
  }

  /// What a sign-in's signature covers.
  package static func userString(socketID: String, userData: String) -> String { "\(socketID)::user::\(userData)" }
}
