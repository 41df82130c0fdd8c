import FerryCore
import FerryTransport

/// What the service says went wrong: its own code and words, beside the HTTP status.
struct ServiceFault: Hashable, Sendable {
  var code: Int?
  var message: String
  var status: Int?

  /// The body of a refusal, or the error of a real-time answer, where the code is a number or a string.
  init(_ value: JSONValue?, status: Int? = nil) {
    code = value?["code"]?.text.flatMap { Int($0) }
    message = value?["message"]?.string ?? value?["errorMessage"]?.string ?? ""
    self.status = status
  }

  /// The user token is no good any more: a new login mends it.
  var isStaleToken: Bool { code.map { [3023, 3064, 3090, 3091].contains($0) } ?? false }

  /// There is no such table, or it lacks a column that was asked for: nothing that is looked for can be in it.
  var isMissingTableOrColumn: Bool { code == 1009 || (message.contains("olumn") && message.contains("does not exist")) }

  private struct Meaning {
    let code: FerryError.Code
    let advice: String
    var retry = FerryError.Retry.never
  }

  private static let meanings: [Int: Meaning] = {
    let relogin = Meaning(
      code: .badCredentials, advice: "the user's session is not valid any more. Check login and password.")
    let login = Meaning(code: .badCredentials, advice: "the login was refused. Check login and password.")
    let path = Meaning(code: .badRequest, advice: "the file's path was refused. Check files_folder.")
    return [
      1000: Meaning(code: .notFound, advice: "it is not there any more."),
      1009: Meaning(code: .notFound, advice: "the table is not there. Run 'ferry check --create', or check table."),
      2002: Meaning(code: .badCredentials, advice: "the app id or the API key is wrong. Check app_id and api_key."),
      3000: Meaning(code: .badCredentials, advice: "logins are turned off for this user. Turn them on in the console."),
      3001: Meaning(code: .badCredentials, advice: "the app has no login settings. Set them in the console."),
      3002: Meaning(
        code: .badCredentials, advice: "the user is logged in elsewhere, and the app allows one login only.",
        retry: .after(.seconds(60))),
      3003: login, 3006: login, 3011: login,
      3033: Meaning(code: .conflict, advice: "that identity is taken."),
      3036: Meaning(code: .badCredentials, advice: "the user is locked after failed logins. Unlock it in the console."),
      3044: Meaning(
        code: .unavailable, advice: "the user has too many logins at once.", retry: .after(.seconds(60))),
      3023: relogin, 3064: relogin, 3091: relogin,
      3090: Meaning(code: .badCredentials, advice: "the user is disabled. Enable it in the console."),
      4000: Meaning(
        code: .forbidden, advice: "the app does not permit it. Give the API key's role or the user the permission."),
      5040: Meaning(code: .notFound, advice: "the message was cancelled already or is not known."),
      6000: Meaning(code: .notFound, advice: "the file is not there."),
      6007: Meaning(code: .notFound, advice: "the file is not there."),
      6006: path, 6021: path, 6028: path,
      6018: Meaning(code: .conflict, advice: "a file of that name is there already."),
      6023: Meaning(code: .conflict, advice: "a file of that name is there already."),
      8010: Meaning(code: .badRequest, advice: "the service misses a field."),
      8011: Meaning(code: .badRequest, advice: "the service does not take the content type."),
    ]
  }()

  /// As an error whose `retry` and `didNotAct` are true. `doing` completes "Could not ...".
  ///
  /// What the service refuses by a code of its own it has not done.
  func error(doing: String, retryAfter: String? = nil) -> FerryError {
    var error: FerryError
    if let status, status == 429 || status >= 500 {
      error = .from(status: status, retryAfter: retryAfter, doing: doing)
    } else if isMissingTableOrColumn, code != 1009 {
      error = FerryError(
        .notFound, "Could not \(doing): the table lacks a column. Run 'ferry check --create', or check fields.")
    } else if let meaning = code.flatMap({ Self.meanings[$0] }) {
      error = FerryError(meaning.code, "Could not \(doing): \(meaning.advice)", retry: meaning.retry)
    } else if let status {
      error = .from(status: status, retryAfter: retryAfter, doing: doing)
    } else {
      error = FerryError(.badRequest, "Could not \(doing): the service refuses.")
    }
    error.cause = cause
    return error
  }

  /// The service's own words are for developers and hold no secret; of a page of a proxy the start will do.
  var cause: String {
    let parts = [
      status.map { "status \($0)" }, code.map { "code \($0)" }, message.isEmpty ? nil : "\(message.prefix(300))",
    ]
    return parts.compactMap { $0 }.joined(separator: ", ")
  }
}
