package import FerryConfig
import FerryRuntime
package import FerryTransport
import FoundationEssentials

/// Signs and checks `X-Twilio-Signature`: a base64 HMAC over the URL and the form's fields.
///
/// The key is the account's auth token and the digest SHA-1, unless a webhook rule names a shared key, whose digest is
/// SHA-256. Everything is compared in constant time.
/// Source: https://www.twilio.com/docs/usage/security
package struct WebhookSignature: Sendable {
  package static let header = "X-Twilio-Signature"
  package static let settingsHeader = "X-Twilio-Webhooks-Signature-Settings"

  private let authToken: Secret
  private let sharedKeys: [String: Secret]

  /// `sharedKeys` are the secrets of webhook rules by the rules' key ids.
  package init(authToken: Secret, sharedKeys: [String: Secret] = [:]) {
    self.authToken = authToken
    self.sharedKeys = sharedKeys
  }

  /// The signature of a request. `url` is the whole URL exactly as the sender was given it; `form` is empty for GET.
  package func sign(url: String, form: [(name: String, value: String)]) -> String {
    Self.base64(Crypto.hmac(.sha1, key: authToken.reveal().utf8, Self.text(url: Self.withoutFragment(url), form: form)))
  }

  /// The signature that a webhook rule makes, or nil when there is no such shared key.
  package func sign(url: String, form: [(name: String, value: String)], sharedKey id: String) -> String? {
    sharedKeys[id].map { secret in
      Self.base64(
        Crypto.hmac(.sha256, key: secret.reveal().utf8, Self.text(url: Self.withoutFragment(url), form: form)))
    }
  }

  /// Whether the headers carry the signature of this URL and form, `form` being empty for GET. The URL is accepted with
  /// and without its port, because senders differ.
  package func isValid(url: String, form: [(name: String, value: String)], headers: HTTPHeaders) -> Bool {
    guard let given = headers[Self.header], let (digest, secret) = method(headers) else { return false }
    var isValid = false
    // All are computed, so that the time does not tell which one fits.
    for candidate in Self.spellings(of: Self.withoutFragment(url)) {
      let wanted = Self.base64(Crypto.hmac(digest, key: secret.reveal().utf8, Self.text(url: candidate, form: form)))
      if Crypto.areEqual(wanted, given) { isValid = true }
    }
    return isValid
  }

  /// The same for a body that is no form, such as JSON: the URL carries the body's digest as `bodySHA256`.
  package func isValid(url: String, body: some Sequence<UInt8>, headers: HTTPHeaders) -> Bool {
    let address = Self.withoutFragment(url)
    guard let question = address.firstIndex(of: "?"),
      let digest = PercentEncoding.pairs(address[address.index(after: question)...])
        .first(where: { $0.name == "bodySHA256" })?.value,
      Crypto.areEqual(Crypto.hex(Crypto.digest(.sha256, of: body)), digest.lowercased())
    else { return false }
    return isValid(url: url, form: [], headers: headers)
  }

  /// Nil when the headers ask for what is not configured: the sender never picks the key or the digest.
  private func method(_ headers: HTTPHeaders) -> (Crypto.Digest, Secret)? {
    guard let settings = headers[Self.settingsHeader] else { return (.sha1, authToken) }
    var fields: [String: String] = [:]
    for field in settings.split(separator: ",") {
      let parts = field.split(separator: "=", maxSplits: 1).map { $0.filter { $0 != " " } }
      guard parts.count == 2, fields.updateValue(parts[1], forKey: parts[0]) == nil else { return nil }
    }
    guard fields["algorithm"] == "HMAC_SHA256", let id = fields["key"], let secret = sharedKeys[id] else { return nil }
    return (.sha256, secret)
  }

  /// The URL, then every field by name in the order of bytes; of a repeated name each distinct value once, in order.
  private static func text(url: String, form: [(name: String, value: String)]) -> [UInt8] {
    var text = Array(url.utf8)
    let fields = form.map { (name: Array($0.name.utf8), value: Array($0.value.utf8)) }
      .sorted { left, right in
        left.name == right.name
          ? left.value.lexicographicallyPrecedes(right.value) : left.name.lexicographicallyPrecedes(right.name)
      }
    for (index, field) in fields.enumerated() {
      if index > 0, fields[index - 1] == field { continue }
      text += field.name
      text += field.value
    }
    return text
  }

  private static func withoutFragment(_ url: String) -> String { String(url.prefix { $0 != "#" }) }

  /// As given, without its port, and with the port of its scheme.
  private static func spellings(of url: String) -> [String] {
    guard let slashes = url.firstRange(of: "://") else { return [url] }
    let scheme = url[..<slashes.lowerBound].lowercased()
    let rest = url[slashes.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    let tail = rest.dropFirst(authority.count)
    let start = url[..<slashes.upperBound]
    // A colon inside brackets belongs to an IPv6 address, and one before an @ to a password.
    let digits = authority.reversed().prefix { $0.isASCII && $0.isNumber }.count
    let host = authority.dropLast(digits)
    if digits > 0, host.hasSuffix(":") { return [url, "\(start)\(host.dropLast())\(tail)"] }
    return [url, "\(start)\(authority):\(scheme == "https" ? 443 : 80)\(tail)"]
  }

  private static func base64(_ bytes: [UInt8]) -> String { Data(bytes).base64EncodedString() }
}
