package import FerryConfig
package import FerryCore
import FerryRuntime
import FoundationEssentials

/// What a client presents at the realtime socket: a JWT signed with the secret of an API key.
/// Source: https://www.twilio.com/docs/iam/access-tokens
package struct AccessToken: Hashable, Sendable {
  package var accountSID: String
  package var keySID: String
  package var serviceSID: String
  package var identity: String
  /// Whole seconds count.
  package var issued: Timestamp
  /// Seconds.
  package var ttl: Int

  /// Longer lives are refused.
  package static let longestLife = 86_400

  package init(
    accountSID: String, keySID: String, serviceSID: String, identity: String, issued: Timestamp, ttl: Int = 3600
  ) {
    self.accountSID = accountSID
    self.keySID = keySID
    self.serviceSID = serviceSID
    self.identity = identity
    self.issued = issued
    self.ttl = ttl
  }

  package var expires: Timestamp { issued.advanced(by: .seconds(ttl)) }

  /// The token as text, good for as long as `secret` is the secret of its key.
  package func signed(with secret: Secret) -> String {
    let seconds = issued.milliseconds / 1000
    var claims = JSONWriter()
    claims.begin()
    claims.member("jti", "\(keySID)-\(seconds)")
    claims.name("grants")
    claims.begin()
    claims.name("chat")
    claims.begin()
    claims.member("service_sid", serviceSID)
    claims.end()
    claims.member("identity", identity)
    claims.end()
    claims.member("iss", keySID)
    claims.name("exp")
    claims.value(seconds + Int64(ttl))
    claims.name("nbf")
    claims.value(seconds)
    claims.member("sub", accountSID)
    claims.end()
    let body = "\(Self.base64URL(Self.head.utf8)).\(Self.base64URL(claims.text.utf8))"
    return "\(body).\(Self.base64URL(Crypto.hmac(.sha256, key: secret.reveal().utf8, body.utf8)))"
  }

  private static let head = #"{"cty":"twilio-fpa;v=1","typ":"JWT","alg":"HS256"}"#

  private struct Head: Decodable { let alg: String? }

  private struct Claims: Decodable {
    let iss: String?
    let sub: String?
    let exp: JSONValue?
    let nbf: JSONValue?
    let grants: JSONValue?
  }

  /// The token, when it is signed with the secret of the key it names and is good at `now`.
  ///
  /// Throws `badCredentials` whose cause is Twilio's number for what is wrong, such as `20104` for expired.
  package static func verified(
    _ text: String, secret: (_ keySID: String) -> Secret?, now: Timestamp
  ) throws(FerryError) -> AccessToken {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let head: Head = decode(parts[0]), let claims: Claims = decode(parts[1]),
      let signature = bytes(parts[2])
    else { throw refusal(20101, "The access token is not a JWT.") }
    guard head.alg == "HS256" else { throw refusal(20102, "The access token is not signed with HS256.") }
    guard let keySID = claims.iss, let accountSID = claims.sub, let secret = secret(keySID) else {
      throw refusal(20103, "The access token names an API key or account that is not known here.")
    }
    let wanted = Crypto.hmac(.sha256, key: secret.reveal().utf8, "\(parts[0]).\(parts[1])".utf8)
    guard Crypto.areEqual(signature, wanted) else {
      throw refusal(20107, "The access token's signature does not fit the secret of its API key.")
    }
    let seconds = now.milliseconds / 1000
    guard let expires = number(claims.exp) else { throw refusal(20101, "The access token does not say when it ends.") }
    guard expires > seconds else { throw refusal(20104, "The access token has expired. Fetch a new one.") }
    let issued = number(claims.nbf) ?? min(seconds, expires)
    guard issued <= seconds else { throw refusal(20105, "The access token is not valid yet. Check the clocks.") }
    // Both lie within 2^53, so that the difference is a number too.
    let ttl = expires - issued
    guard ttl <= Int64(longestLife) else {
      throw refusal(20157, "The access token lives longer than \(longestLife) seconds.")
    }
    let grant = claims.grants?["chat"] ?? claims.grants?["ip_messaging"]
    guard let identity = claims.grants?["identity"]?.string, !identity.isEmpty,
      let serviceSID = grant?["service_sid"]?.string
    else { throw refusal(20106, "The access token lacks an identity or a chat grant with a service_sid.") }
    return AccessToken(
      accountSID: accountSID, keySID: keySID, serviceSID: serviceSID, identity: identity,
      issued: Timestamp(milliseconds: issued * 1000), ttl: Int(ttl))
  }

  private static func refusal(_ number: Int, _ message: String) -> FerryError {
    FerryError(.badCredentials, message, cause: String(number))
  }

  /// Seconds, whole or not, as long as a date can be made of them.
  private static func number(_ value: JSONValue?) -> Int64? {
    let seconds: Int64?
    switch value {
    case .integer(let whole): seconds = whole
    case .number(let real): seconds = Int64(exactly: real.rounded(.down))
    default: seconds = nil
    }
    return seconds.flatMap { (0...253_402_300_799).contains($0) ? $0 : nil }
  }

  // MARK: Base64url (RFC 4648, 5, without padding)

  private static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  private static func bytes(_ text: Substring) -> [UInt8]? {
    var base64 = text.replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    return Data(base64Encoded: String(base64)).map { [UInt8]($0) }
  }

  private static func decode<Value: Decodable>(_ text: Substring) -> Value? {
    bytes(text).flatMap { JSONText.decode(Value.self, from: $0) }
  }
}
