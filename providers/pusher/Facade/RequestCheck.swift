import FerryCore
import FerryRuntime
import FoundationEssentials

/// Decides whether a request to the HTTP API was made by somebody who holds the secret.
struct RequestCheck: Sendable {
  let appKey: AppKey

  /// Throws what the caller is to be told. `paths` are the forms in which the client may have signed its path: as
  /// it arrived, and unescaped.
  func verify(
    method: String, paths: [String], parameters: [(name: String, value: String)], body: [UInt8], now: Timestamp
  ) throws(Refusal) {
    func parameter(_ name: String) -> String? { parameters.first { $0.name.lowercased() == name }?.value }

    guard let key = parameter("auth_key"), let sent = parameter("auth_signature"),
      let time = parameter("auth_timestamp")
    else {
      throw Refusal(401, "Missing authentication: auth_key, auth_timestamp and auth_signature are all required")
    }
    guard Crypto.areEqual(key, appKey.key) else {
      throw Refusal(401, "Unknown auth_key: this application does not have the key you sent")
    }
    guard parameter("auth_version") == "1.0" else { throw Refusal(401, "Invalid auth_version: it must be 1.0") }

    // Over what arrived, whatever it says; the body's digest is a parameter like any other and checked below.
    let texts = paths.map { AppKey.stringToSign(method: method, path: $0, parameters: parameters) }
    guard texts.contains(where: { Crypto.areEqual(appKey.signature(of: $0), sent) }) else {
      throw Refusal(401, Self.invalidSignature(texts.first ?? "", sent: sent))
    }
    try checkTime(time, now: now)
    try checkDigest(parameter("body_md5"), of: body)
  }

  private func checkTime(_ time: String, now: Timestamp) throws(Refusal) {
    guard let seconds = Int64(time), let sent = Self.iso8601(seconds: seconds) else {
      throw Refusal(401, "Invalid auth_timestamp: it must be seconds since 1970")
    }
    let server = now.milliseconds / 1000
    guard seconds.subtractingReportingOverflow(server).partialValue.magnitude <= Limits.clockSkew.magnitude else {
      throw Refusal(
        401,
        "Timestamp expired: Given timestamp (\(sent)) not within \(Limits.clockSkew)s of server time "
          + "(\(Self.iso8601(seconds: server) ?? ""))")
    }
  }

  private func checkDigest(_ digest: String?, of body: [UInt8]) throws(Refusal) {
    guard let digest else {
      guard body.isEmpty else { throw Refusal(401, "Missing body_md5: it is required when there is a body") }
      return
    }
    guard Crypto.areEqual(digest, AppKey.digest(of: body)) else {
      throw Refusal(401, "Invalid body_md5: it is not the MD5 digest of the body that arrived")
    }
  }

  /// The text to sign is no secret, and the fastest way for a developer to see what differs.
  private static func invalidSignature(_ text: String, sent: String) -> String {
    let shown = text.replacing("\n", with: "\\n")
    return
      "Invalid signature: you should have sent HmacSHA256Hex(\"\(shown)\", your_secret_key), but you sent \"\(sent)\""
  }

  private static func iso8601(seconds: Int64) -> String? {
    // The years 0001 to 9999, outside which dates have no such form.
    guard (-62_135_596_800...253_402_300_799).contains(seconds) else { return nil }
    return Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
  }
}
