import FerryCore
import FerryRuntime
import FerryTransport

/// Why a request is refused, as clients are told: an HTTP status, Twilio's number and words.
/// Source: https://www.twilio.com/docs/api/errors
struct TwilioError: Error, Sendable {
  let status: Int
  let code: Int
  let message: String

  init(_ status: Int, _ code: Int, _ message: String) {
    self.status = status
    self.code = code
    self.message = message
  }

  /// A failure of the chat behind the facade.
  init(_ error: FerryError) {
    switch error.code {
    case .badRequest, .badData: self.init(400, 20001, error.message)
    case .notFound: self.init(404, 20404, error.message)
    case .forbidden: self.init(403, 20403, error.message)
    case .conflict: self.init(409, 20409, error.message)
    case .tooLarge: self.init(413, 20001, error.message)
    case .timedOut, .cancelled: self.init(408, 20001, error.message)
    default: self.init(503, 20503, "The service is not available at the moment. Please try again later.")
    }
  }

  var response: HTTPResponse {
    let body: [String: JSONValue] = [
      "code": .integer(Int64(code)), "message": .string(message), "status": .integer(Int64(status)),
      "more_info": .string("https://www.twilio.com/docs/errors/\(code)"),
    ]
    var response = HTTPResponse.json(body, status: status)
    if status == 401 { response.headers.set("WWW-Authenticate", #"Basic realm="Twilio API""#) }
    return response
  }

  // MARK: The ones that more than one place needs

  static let badCredentials = TwilioError(401, 20003, "Authenticate")
  static let noConversation = TwilioError(404, 50350, "Conversation not found")
  static let noParticipant = TwilioError(404, 50432, "Participant not found")
  static let noMessage = TwilioError(404, 50500, "Message not found")
  static let noUser = TwilioError(404, 50200, "User not found")
  static let noMedia = TwilioError(404, 50507, "Media not found")
  static let closed = TwilioError(400, 50377, "The conversation is closed: it cannot be changed any more")

  static func notFound(_ path: String) -> TwilioError {
    TwilioError(404, 20404, "The requested resource \(path) was not found")
  }

  static func invalid(_ name: String, _ why: String) -> TwilioError {
    TwilioError(400, 20001, "Invalid parameter \(name): \(why)")
  }
}
