import FerryConfig
package import FerryCore
import FerryTransport

extension TwilioAdapter {
  /// Reads `twilio://SID:SECRET@HOST/CHANNEL`; with `twilio+http` there is no TLS. The SID is an account's with its auth
  /// token, or an API key's with its secret. Any host that is not Twilio's own serves media and the realtime socket too.
  /// Nil when the URL is another kind's.
  package static func settings(fromURL url: String) throws(FerryError) -> (settings: Settings, channel: ChannelID)? {
    let scheme: String
    let rest: Substring
    if url.hasPrefix("twilio://") {
      (scheme, rest) = ("https", url.dropFirst(9))
    } else if url.hasPrefix("twilio+http://") {
      (scheme, rest) = ("http", url.dropFirst(14))
    } else {
      return nil
    }
    let malformed = FerryError(
      .badConfiguration, "A Twilio address is written twilio://SID:TOKEN@conversations.twilio.com/CHANNEL.")
    guard let slash = rest.firstIndex(of: "/"), let at = rest[..<slash].lastIndex(of: "@"),
      let colon = rest[..<at].firstIndex(of: ":")
    else { throw malformed }
    let sid = PercentEncoding.decode(rest[..<colon])
    let secret = PercentEncoding.decode(rest[rest.index(after: colon)..<at])
    let host = String(rest[rest.index(after: at)..<slash])
    let channel = PercentEncoding.decode(rest[rest.index(after: slash)...])
    guard !secret.isEmpty, !host.isEmpty, !host.contains(where: { "?# \\".contains($0) }), !channel.isEmpty else {
      throw malformed
    }
    let isKey = SID.isOne(sid, of: .apiKey)
    guard isKey || SID.isOne(sid, of: .account) else { throw malformed }
    var settings = self.settings(
      account: isKey ? "" : sid, token: isKey ? nil : Secret(secret), scheme: scheme, host: host)
    if isKey {
      settings.apiKey = sid
      settings.apiSecret = Secret(secret)
    }
    return (settings, ChannelID(channel))
  }

  private static func settings(account: String, token: Secret?, scheme: String, host: String) -> Settings {
    guard scheme == "https", host.hasPrefix("conversations."), host.hasSuffix(".twilio.com") else {
      return Settings(accountSID: account, authToken: token, api: "\(scheme)://\(host)")
    }
    let labels = host.dropFirst("conversations.".count).dropLast("twilio.com".count).split(separator: ".")
    return Settings(
      accountSID: account, authToken: token, region: labels.last.map(String.init),
      edge: labels.count > 1 ? labels.first.map(String.init) : nil)
  }
}
