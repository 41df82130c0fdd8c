import CCurl
import FerryCore
import FerryRuntime

extension Transfer {
  /// What libcurl's result says, with a `didNotAct` that is true.
  func failure(_ code: CURLcode) -> FerryError {
    if isRefused {
      return FerryError(
        .addressRefused,
        "\(url.place) leads to an address that is not public. Allow the host in the configuration if it is meant.",
        didNotAct: isUnsent)
    }
    if isRepeated {
      return FerryError(
        .outcomeUnknown, "The kept connection to \(url.place) broke after the request was sent.", retry: .now,
        didNotAct: false)
    }
    let cause = String(cString: curl_easy_strerror(code))
    // These fail before the first byte of a request, whatever was sent on the way through a proxy. But it may not be the
    // first request: before a redirect, or on a kept connection that broke, there may have been another.
    let isCertain = isUnsent || (attempts == 0 && Self.failsBeforeRequest(code))
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST:
      return FerryError(
        .unavailable, "The name \(url.host) could not be resolved. Check its spelling and the network.", retry: .now,
        didNotAct: isCertain, cause: cause)
    case CURLE_COULDNT_RESOLVE_PROXY:
      return FerryError(
        .unavailable, "The proxy's name could not be resolved. Check the proxy settings in the environment.",
        retry: .now, didNotAct: isCertain, cause: cause)
    case CURLE_COULDNT_CONNECT:
      return FerryError(
        .unavailable, "\(url.place) does not accept connections. Check that the service runs there.", retry: .now,
        didNotAct: isCertain, cause: cause)
    case CURLE_OPERATION_TIMEDOUT:
      return FerryError(
        .timedOut, "\(url.place) did not answer within \(request.deadline.inWords).", retry: .now,
        didNotAct: isCertain, cause: isCertain ? "nothing had been sent" : "the request had been sent")
    case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS:
      return FerryError(
        .unavailable, "The certificate of \(url.place) is not trusted. Check its name, its dates and who signed it.",
        retry: .never, didNotAct: isCertain, cause: cause)
    case CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT:
      return FerryError(
        .badConfiguration, "The certificate files named in the environment cannot be used.", didNotAct: isCertain,
        cause: cause)
    case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
      return FerryError(
        .unavailable, "No secure connection to \(url.place) could be made. Check that it speaks TLS there.",
        retry: .now, didNotAct: isCertain, cause: cause)
    case CURLE_PROXY:
      return FerryError(
        .unavailable, "The proxy did not lead to \(url.place).", retry: .now, didNotAct: isCertain, cause: cause)
    case CURLE_TOO_MANY_REDIRECTS:
      return FerryError(
        .badData, "\(url.place) redirects more than \(request.redirects) times.", didNotAct: false, cause: cause)
    case CURLE_UNSUPPORTED_PROTOCOL where attempts > followed:
      // A request was made there, so the address was right: libcurl says this of an answer that is no HTTP, too.
      return FerryError(
        .badData, "\(url.place) answered with something that is no HTTP.", retry: .now, didNotAct: isCertain,
        cause: cause)
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT:
      return FerryError(
        .badRequest, "\(url.place) leads to an address that is neither http nor https.", didNotAct: isCertain,
        cause: cause)
    default:
      return FerryError(
        .unavailable, "The connection to \(url.place) broke before the answer was complete.", retry: .now,
        didNotAct: isCertain, cause: cause)
    }
  }

  private static func failsBeforeRequest(_ code: CURLcode) -> Bool {
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT, CURLE_PROXY,
      CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CACERT_BADFILE,
      CURLE_SSL_CERTPROBLEM, CURLE_SSL_CLIENTCERT, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED:
      true
    default: false
    }
  }
}

extension Duration {
  var inWords: String {
    milliseconds < 1000 || milliseconds % 1000 != 0 ? "\(milliseconds) ms" : "\(milliseconds / 1000) s"
  }
}
