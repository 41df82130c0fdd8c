package import FerryCore

extension FerryError {
  /// The longest that anybody may make us wait, in seconds: a day. Times are computed with it, which must not overflow.
  private static let longestWait = 86_400

  /// What an HTTP status other than 2xx says about a request, as an error whose `retry` and `didNotAct` are true.
  ///
  /// `doing` completes "Could not ...", without secrets: "post the message".
  /// Source of the meanings: RFC 9110, 15; RFC 6585 for 429.
  package static func from(status: Int, retryAfter: String?, doing: String) -> FerryError {
    let wait = retryAfter.flatMap { Int($0.trimmingSpaces) }.map { Duration.seconds(min(max(0, $0), longestWait)) }
    let cause = "status \(status)"
    let could = "Could not \(doing): "
    switch status {
    case 401, 407:
      return FerryError(
        .badCredentials, could + "the credentials were not accepted. Check them in the configuration.", cause: cause)
    case 403:
      return FerryError(.forbidden, could + "the other side does not allow it.", cause: cause)
    case 404, 410:
      return FerryError(.notFound, could + "the other side knows no such thing.", cause: cause)
    case 408:
      return FerryError(
        .timedOut, could + "the other side waited too long for the request.", retry: .now, didNotAct: true,
        cause: cause)
    case 409, 412:
      return FerryError(.conflict, could + "it contradicts what is there.", cause: cause)
    case 413:
      return FerryError(.tooLarge, could + "it is larger than the other side accepts.", cause: cause)
    case 425:
      return FerryError(.unavailable, could + "the other side wants it later.", retry: .now, cause: cause)
    case 429:
      return FerryError(
        .rateLimited, could + "the other side asks to slow down.", retry: wait.map { .after($0) } ?? .now, cause: cause)
    case 503 where wait != nil:
      return FerryError(
        .unavailable, could + "the other side asks to come back later.", retry: .after(wait ?? .zero), cause: cause)
    case 500...599:
      return FerryError(
        .unavailable, could + "the other side failed.", retry: wait.map { .after($0) } ?? .now, didNotAct: false,
        cause: cause)
    case 300...399:
      // Says nothing about the request: a portal or a maintenance page is in between, or the address is wrong.
      return FerryError(
        .unavailable, could + "the other side pointed elsewhere. Check the address in the configuration.",
        retry: .after(wait ?? .seconds(10)), cause: cause)
    case 400...499:
      return FerryError(.badRequest, could + "the other side rejected the request.", cause: cause)
    default:
      return FerryError(
        .badData, could + "the answer was not understood.", retry: .now, didNotAct: false, cause: cause)
    }
  }

  /// The status with which a server of ours reports this error.
  package var httpStatus: Int {
    switch code {
    case .badRequest, .badData: 400
    case .badCredentials: 401
    case .forbidden, .addressRefused: 403
    case .notFound: 404
    case .conflict: 409
    case .tooLarge: 413
    case .rateLimited: 429
    case .unsupported: 501
    case .unavailable, .storage: 503
    case .timedOut, .outcomeUnknown: 504
    default: 500
    }
  }
}
