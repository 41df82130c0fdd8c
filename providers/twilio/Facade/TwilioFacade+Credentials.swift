import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// Who asks.
extension TwilioFacade {
  /// Nil for the account itself, or the identity of an access token, which only media takes.
  func caller(_ request: HTTPRequest, allowsToken: Bool) throws(TwilioError) -> String? {
    if allowsToken, let token = request.headers["X-Twilio-Token"] {
      do throws(FerryError) { return try verified(token).identity } catch { throw .badCredentials }
    }
    guard let header = request.headers["Authorization"], header.lowercased().hasPrefix("basic "),
      let data = Data(base64Encoded: String(header.dropFirst(6)))
    else { throw .badCredentials }
    let pair = String(decoding: data, as: UTF8.self)
    guard let colon = pair.firstIndex(of: ":") else { throw .badCredentials }
    let user = String(pair[..<colon])
    let password = String(pair[pair.index(after: colon)...])
    // Both are compared, so that the time does not tell which is right.
    let isAccount =
      Crypto.areEqual(user, settings.accountSID) && Crypto.areEqual(password, settings.authToken.reveal())
    let isKey = Crypto.areEqual(user, settings.apiKey) && Crypto.areEqual(password, settings.apiSecret.reveal())
    guard isAccount || isKey else { throw .badCredentials }
    return nil
  }

  /// A token of this account. Throws as `AccessToken.verified` does.
  func verified(_ token: String) throws(FerryError) -> AccessToken {
    let token = try AccessToken.verified(
      token, secret: { $0 == settings.apiKey ? settings.apiSecret : nil }, now: clock.now())
    guard token.accountSID == settings.accountSID else {
      throw FerryError(.badCredentials, "The access token is for another account.", cause: "20103")
    }
    return token
  }
}
