import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials

@testable import TwilioProvider

/// A facade over a chat in a temporary folder, asked without a socket between; webhooks go over real ones.
final class FacadeRig: Sendable {
  static let account = "AC00000000000000000000000000000001"
  static let service = "IS00000000000000000000000000000001"
  static let key = "SK00000000000000000000000000000001"

  let folder: TemporaryFolder
  let clock: ManualClock
  let settings: TwilioFacade.Settings
  let loop: LoopExecutor
  let chat: ChatService
  let facade: TwilioFacade
  let client: HTTPClient

  init(
    folder: TemporaryFolder? = nil, clock: ManualClock = ManualClock(),
    adjust: (inout TwilioFacade.Settings) -> Void = { _ in }
  ) throws {
    var settings = TwilioFacade.Settings(
      accountSID: Self.account, authToken: Secret("demo-auth-token"), apiKey: Self.key,
      apiSecret: Secret("demo-api-secret"), serviceSID: Self.service)
    settings.conversations = ["lobby"]
    adjust(&settings)
    self.settings = settings
    self.clock = clock
    let folder = try folder ?? TemporaryFolder()
    self.folder = folder
    loop = try LoopExecutor(name: "twilio-test")
    client = HTTPClient(loop: loop, logger: .silent)
    chat = try ChatService(
      path: folder.file("chat.db"), files: folder.file("files"), clock: clock, logger: .silent,
      limits: settings.chatLimits)
    facade = TwilioFacade(
      settings: settings, chat: chat, client: client, clock: clock, logger: .silent, metrics: nil)
  }

  /// With the facade's background work running.
  func running<T: Sendable>(_ body: @escaping @Sendable () async throws -> T) async throws -> T {
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await self.facade.run() }
      defer { group.cancelAll() }
      return try await body()
    }
  }

  func close() {
    chat.close()
    loop.stop()
  }

  // MARK: Requests

  struct Answer: Sendable {
    let status: Int
    let headers: HTTPHeaders
    let bytes: [UInt8]
    var json: JSONValue { (try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))) ?? .null }
    var code: Int64? { json["code"]?.integer }
    subscript(name: String) -> JSONValue? { json[name] }
  }

  func send(
    _ method: String, _ path: String, _ form: Form = [], headers: HTTPHeaders = [:], body: ByteStream? = nil,
    credentials: String? = "\(FacadeRig.account):demo-auth-token"
  ) async throws -> Answer {
    var headers = headers
    headers.set("Host", "twilio.test")
    if let credentials {
      headers.set("Authorization", "Basic \(Data(credentials.utf8).base64EncodedString())")
    }
    let parts = path.split(separator: "?", maxSplits: 1)
    let response = await facade.handle(
      HTTPRequest(
        method: method, path: String(parts[0]), rawQuery: parts.count > 1 ? String(parts[1]) : "", headers: headers,
        body: body ?? .bytes(Array(form.encoded.utf8))))
    let bytes: [UInt8]
    switch response.body {
    case .bytes(let all): bytes = all
    case .stream(let stream): bytes = try await stream.collect(upTo: 64 << 20)
    default: bytes = []
    }
    return Answer(status: response.status, headers: response.headers, bytes: bytes)
  }

  /// A POST that is announced to webhooks.
  @discardableResult
  func post(_ path: String, _ form: Form, announced: Bool = false) async throws -> Answer {
    try await send("POST", "/v1/\(path)", form, headers: announced ? ["X-Twilio-Webhook-Enabled": "true"] : [:])
  }

  func get(_ path: String) async throws -> Answer { try await send("GET", "/v1/\(path)") }

  func upload(_ bytes: [UInt8], type: String = "image/png") async throws -> Answer {
    try await send(
      "POST", "/v1/Services/\(Self.service)/Media?Filename=a.png", headers: ["Content-Type": type], body: .bytes(bytes))
  }
}

/// Takes webhooks, and knows whether their signatures fit.
final class HookReceiver: Sendable {
  struct Call: Sendable {
    let form: Form
    let token: String?
    let isSigned: Bool
    var event: String { form["EventType"] ?? "" }
  }

  let calls = Observed<[Call]>([])
  /// What is answered next; 200 when there is nothing.
  let statuses = Locked<[Int]>([])
  let server: HTTPServer

  init(loop: LoopExecutor) throws {
    let calls = calls
    let statuses = statuses
    let base = Locked("")
    let signature = WebhookSignature(authToken: Secret("demo-auth-token"))
    server = try HTTPServer(HTTPServer.Settings(), loop: loop, logger: .silent) { request in
      let body = (try? await request.body.collect(upTo: 1 << 20)) ?? []
      let form = Form(decoding: body)
      let url = base.withLock { $0 } + request.path
      let isSigned = signature.isValid(url: url, form: form.fields, headers: request.headers)
      let status = statuses.withLock { $0.isEmpty ? 200 : $0.removeFirst() }
      calls.update {
        $0.append(Call(form: form, token: request.headers["I-Twilio-Idempotency-Token"], isSigned: isSigned))
      }
      return .text("", status: status)
    }
    base.withLock { [url = server.url] in $0 = url }
  }

  var url: String { server.url + "/hook" }

  /// The calls, once there are so many.
  func wait(for count: Int) async -> [Call] { await calls.wait { $0.count >= count ? $0 : nil } ?? [] }
}
