/// Why something failed, what to do about it, and the two facts from which retry and duplicate handling derive:
/// when it may be tried again, and whether the other side certainly did not act.
///
/// The description never contains a secret or a message body.
package struct FerryError: Error, Sendable, CustomStringConvertible {
  package var code: Code
  /// What went wrong and how to put it right, in whole sentences.
  package var message: String
  package var retry: Retry
  /// True when it is certain that the other side did not act. After false, a send is settled with
  /// `ChatProvider.find(_:in:)` before it is repeated.
  package var didNotAct: Bool
  package var cause: String?

  package init(
    _ code: Code, _ message: String, retry: Retry = .never, didNotAct: Bool = true, cause: String? = nil
  ) {
    self.code = code
    self.message = message
    self.retry = retry
    self.didNotAct = didNotAct
    self.cause = cause
  }

  package var description: String {
    let text = "\(code.label): \(message)"
    return if let cause { "\(text) (\(cause))" } else { text }
  }

  /// A bounded set of names, fit for metrics.
  package struct Code: Hashable, Sendable {
    package let label: String
    package init(_ label: String) { self.label = label }

    package static let badRequest = Code("bad_request")
    package static let badData = Code("bad_data")
    package static let badCredentials = Code("bad_credentials")
    package static let forbidden = Code("forbidden")
    package static let notFound = Code("not_found")
    package static let conflict = Code("conflict")
    package static let tooLarge = Code("too_large")
    package static let rateLimited = Code("rate_limited")
    package static let unavailable = Code("unavailable")
    package static let timedOut = Code("timed_out")
    package static let outcomeUnknown = Code("outcome_unknown")
    package static let addressRefused = Code("address_refused")
    package static let badConfiguration = Code("bad_configuration")
    package static let unsupported = Code("unsupported")
    package static let storage = Code("storage")
    package static let cancelled = Code("cancelled")
    package static let `internal` = Code("internal")
  }

  /// When the same request may be tried again.
  package enum Retry: Hashable, Sendable {
    /// Trying again cannot help; a person has to change something.
    case never
    /// With the caller's own back-off.
    case now
    /// Not before this long from now, as the other side asked.
    case after(Duration)
  }
}

extension FerryError {
  /// The task was cancelled while the request was under way, so its outcome may be unknown.
  package static func cancelled(didNotAct: Bool = false) -> FerryError {
    FerryError(.cancelled, "The work was stopped before it ended.", retry: .now, didNotAct: didNotAct)
  }

  /// Any error as a `FerryError`; a foreign one counts as a fault of ours whose outcome is unknown.
  package static func wrap(_ error: any Error) -> FerryError {
    if let error = error as? FerryError { return error }
    if error is CancellationError { return .cancelled() }
    return FerryError(
      .internal, "Something failed that should not. Please report it.", retry: .now, didNotAct: false,
      cause: words(for: error))
  }

  /// An `EncodingError` describes itself with the value, which may hold a message's body.
  private static func words(for error: any Error) -> String {
    guard case EncodingError.invalidValue(_, let context) = error else { return "\(error)" }
    return context.debugDescription
  }
}
