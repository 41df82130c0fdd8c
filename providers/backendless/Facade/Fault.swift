import FerryCore
import FerryRuntime
import FerryTransport

/// Why something is not carried out, as the service says it: `{"code":3003,"message":"...","errorData":{}}`.
struct Fault: Error, Sendable {
  let status: Int
  let code: Int
  let message: String

  init(_ status: Int, _ code: Int, _ message: String) {
    self.status = status
    self.code = code
    self.message = message
  }

  var response: HTTPResponse {
    .text(
      #"{"code":\#(code),"message":\#(JSONText.quoted(message)),"errorData":{}}"#, status: status,
      type: "application/json")
  }

  // Codes that the service documents, or its libraries know.
  static func noEntity(_ id: String) -> Fault { Fault(404, 1000, "Entity with ID \(id.prefix(100)) not found") }
  static func noTable(_ name: String) -> Fault { Fault(404, 1009, "Table not found by name '\(name.prefix(100))'") }
  static let wrongApp = Fault(
    400, 2002, "Version is disabled or provided wrong application info (application id or API key)")
  static let badLogin = Fault(401, 3003, "Invalid login or password")
  static let noIdentity = Fault(400, 3011, "Missing identity or password: a user needs an email and a password")
  static func identityTaken(_ name: String) -> Fault {
    Fault(409, 3033, "User already exists: the identity '\(name.prefix(100))' is taken")
  }
  static let badToken = Fault(401, 3064, "Not existing user token. Relogin user")
  static let notYours = Fault(403, 4000, "User has no permission to access the resource")
  static let cannotCancel = Fault(400, 5040, "Message has already been cancelled or does not exist")
  static func noFile(_ path: String) -> Fault {
    Fault(404, 6000, "File or directory '\(path.prefix(200))' is not found")
  }
  static func nothingToMove(_ path: String) -> Fault {
    Fault(404, 6007, "File or directory '\(path.prefix(200))' is not found")
  }
  static let badPath = Fault(400, 6006, "The path contains prohibited symbols")
  static func nameTaken(_ path: String) -> Fault {
    Fault(409, 6018, "File or directory '\(path.prefix(200))' already exists")
  }
  static func existsInTarget(_ path: String) -> Fault {
    Fault(409, 6023, "'\(path.prefix(200))' already exists in the target")
  }
  static let moveOntoFile = Fault(400, 6021, "The target is a file: a file is moved or copied into a directory")
  static func missing(_ field: String) -> Fault { Fault(400, 8010, "Missing field in the body: '\(field)'") }
  static let notJSON = Fault(400, 8011, "The body must be JSON, with the content type application/json")

  // Codes of the service for these are not known.
  static func fileExists(_ path: String) -> Fault {
    Fault(409, 6003, "File '\(path.prefix(200))' already exists: add overwrite=true to replace it")
  }
  static func badCondition(_ why: String) -> Fault { Fault(400, 1017, why) }
  static func badRequest(_ why: String) -> Fault { Fault(400, 8000, why) }
  static func unsupported(_ what: String) -> Fault { Fault(501, 501, "\(what) is not supported by this server") }
  static let nothingHere = Fault(404, 404, "There is nothing at this path")

  init(_ error: FerryError) {
    let status = error.httpStatus
    self.init(status, status == 400 ? 8000 : status, error.message)
  }

  static func wrap(_ error: any Error) -> Fault { error as? Fault ?? Fault(.wrap(error)) }
}

/// Identifiers as the service makes them: 8-4-4-4-12 digits in upper case.
enum GUID {
  static func new() -> String { text(Crypto.randomHex(bytes: 16)) }

  static func text(_ hex: String) -> String {
    var text = ""
    for (index, digit) in hex.uppercased().enumerated() {
      if [8, 12, 16, 20].contains(index) { text += "-" }
      text.append(digit)
    }
    return text
  }
}
