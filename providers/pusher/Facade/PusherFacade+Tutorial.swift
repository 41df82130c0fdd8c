import FerryCore
import FerryRuntime
import FerryTransport

/// The server of the anonymous-chat tutorial, whose app then works against this facade alone.
///
/// Nobody signs these requests, as in the tutorial. Names and types are the tutorial's to the letter: its app expects
/// `ID` as a number in `new_message` and in the answer, and as a string in `message_delivered`.
extension PusherFacade {
  private static let chatroom = "chatroom"

  func answerTutorial(_ request: HTTPRequest, _ name: String) async throws -> HTTPResponse {
    let form = try TutorialForm(try await body(of: request), type: request.headers["Content-Type"] ?? "")
    switch name {
    case "messages":
      let (sender, text) = (try form.required("sender"), try form.required("text"))
      var content: [String: JSONValue] = ["sender": .string(sender), "text": .string(text)]
      // Held to the rules before a number is used up; the longest takes nineteen digits.
      content["ID"] = .integer(.max)
      _ = try Self.event("new_message", content)
      let id = try await store.nextNumber("messages")
      content["ID"] = .integer(id)
      try await publish([try Self.event("new_message", content)])
      content["success"] = 200
      return .json(content)
    case "typing":
      let sender = try form.required("sender")
      try await publish([
        try Self.event("user_typing", ["sender": .string(sender), "text": .string("\(sender) is typing...")])
      ])
    case "delivered":
      try await publish([try Self.event("message_delivered", ["ID": .string(try form.required("ID"))])])
    default: throw Refusal(404, "Not found: the tutorial has /messages, /typing and /delivered")
    }
    return .json(["success": 200])
  }

  private static func event(_ name: String, _ content: [String: JSONValue]) throws(Refusal) -> PublishedEvent {
    try PublishedEvent(name: name, channels: [chatroom], data: JSON.text(of: .object(content)))
  }
}

/// The fields of a request's body, whether it is a form or JSON.
private struct TutorialForm {
  private let fields: [String: String]

  init(_ body: [UInt8], type: String) throws(Refusal) {
    if type.lowercased().contains("json") {
      guard let members = JSONText.decode(JSONValue.self, from: body)?.object else {
        throw Refusal(400, "Invalid body: it must be a form or a JSON object")
      }
      fields = members.compactMapValues(\.text)
    } else {
      fields = Dictionary(
        PercentEncoding.pairs(String(decoding: body, as: UTF8.self)).map { ($0.name, $0.value) },
        uniquingKeysWith: { first, _ in first })
    }
  }

  func required(_ name: String) throws(Refusal) -> String {
    guard let value = fields[name] else { throw Refusal(400, "Missing \(name): the body has none") }
    return value
  }
}
