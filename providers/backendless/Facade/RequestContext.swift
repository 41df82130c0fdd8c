import FerryCore
import FerryRuntime
import FerryTransport

/// A request to the REST API whose application and key are right, and who sent it.
struct RequestContext: Sendable {
  let request: HTTPRequest
  /// Behind the key, decoded. A slash at the end leaves an empty last part.
  let path: [String]
  /// Nil when nobody is logged in.
  let user: UserReference?
  let token: String?
  /// Where this client finds files, with a slash at the end.
  let files: String

  private static let bodyBytes = 2 << 20

  /// The body as JSON; null when there is none.
  func json() async throws(Fault) -> JSONValue {
    let bytes: [UInt8]
    do throws(FerryError) { bytes = try await request.body.collect(upTo: Self.bodyBytes) } catch { throw Fault(error) }
    if bytes.isEmpty { return .null }
    let type = request.headers["Content-Type"]?.lowercased() ?? ""
    guard type.contains("json"), let value = JSONText.value(bytes) else { throw .notJSON }
    return value
  }

  func object() async throws(Fault) -> [String: JSONValue] {
    let value = try await json()
    if value == .null { return [:] }
    guard let object = value.object else { throw .badRequest("The body must be a JSON object") }
    return object
  }

  func objects() async throws(Fault) -> [[String: JSONValue]] {
    var objects: [[String: JSONValue]] = []
    guard let list = try await json().array else { throw .badRequest("The body must be a JSON array of objects") }
    for item in list {
      guard let object = item.object else { throw .badRequest("The body must be a JSON array of objects") }
      objects.append(object)
    }
    guard (1...100).contains(objects.count) else { throw .badRequest("Between 1 and 100 objects are taken at once") }
    return objects
  }

  func flag(_ name: String) -> Bool { request.query(name) == "true" }
}

extension HTTPResponse {
  static func value(_ value: JSONValue) -> HTTPResponse {
    .text(JSON.text(of: value), type: "application/json")
  }

  /// Done, and nothing to say.
  static var nothing: HTTPResponse {
    HTTPResponse(status: 200, headers: ["Content-Type": "application/json"], body: .bytes([]))
  }
}
