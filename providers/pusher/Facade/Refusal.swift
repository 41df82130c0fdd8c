/// Why a request or a subscription is not carried out, as the client is told.
struct Refusal: Error, Sendable {
  /// The `type` of a subscription's error. Source: what other servers of the protocol send.
  enum Kind: String, Sendable {
    case auth = "AuthError"
    case limitReached = "LimitReached"
    case server = "ServerError"
    case subscription = "SubscriptionError"
  }

  /// Of HTTP; for a limit of the socket, the protocol's code.
  let status: Int
  let text: String
  let type: Kind

  /// Without a type, the status says which.
  init(_ status: Int, _ text: String, type: Kind? = nil) {
    self.status = status
    self.text = text
    self.type = type ?? (status == 401 ? .auth : status >= 500 ? .server : .subscription)
  }
}
