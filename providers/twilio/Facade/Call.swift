import FerryCore
import FerryTransport

/// One request to the REST API, read.
struct Call: Sendable {
  let method: String
  let route: Route
  let path: String
  /// The fields of the body.
  let form: Form
  let query: Form
  /// Scheme and host as the client knows them.
  let base: String
  /// The service that the request is about: the one in its path, or the account's default.
  let service: String
  let isInService: Bool
  /// Whether what it does is announced to webhooks.
  let isAnnounced: Bool

  /// What the URLs of its answers begin with.
  var root: String { isInService ? "\(base)/v1/Services/\(service)" : "\(base)/v1" }

  func url(_ parts: String...) -> JSONValue {
    .string("\(root)/\(parts.map { PercentEncoding.encode($0) }.joined(separator: "/"))")
  }
}
