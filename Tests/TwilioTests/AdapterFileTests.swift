import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite(.timeLimit(.minutes(3))) struct TwilioFileTests {
  private struct Seen: Sendable {
    var uploads: [(url: String, type: String?, bytes: [UInt8])] = []
    var downloads: [HTTPHeaders] = []
    var links = 0
  }

  private struct Answers: Sendable {
    var upload = 201
    var download = 200
    /// What the record says of where the bytes are; `{port}` is the server's.
    var link = "http://127.0.0.1:{port}/temporary/1?signature=x"
  }

  /// A media service that says what a test wants.
  private static func with(
    _ answers: Answers = Answers(), serviceSID: String? = ScriptedTwilio.service, guarded: Bool = false,
    _ body: @escaping @Sendable (AdapterRig, Observed<Seen>) async throws -> Void
  ) async throws {
    let seen = Observed(Seen())
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      let bytes = (try? await request.body.collect(upTo: 1 << 24)) ?? []
      let port = request.headers["Host"]?.split(separator: ":").last.map(String.init) ?? ""
      switch (request.method, request.path) {
      case ("POST", "/v1/Services/\(ScriptedTwilio.service)/Media"):
        seen.update { $0.uploads.append((request.rawQuery, request.headers["Content-Type"], bytes)) }
        return .json(["sid": "ME1"] as JSONValue, status: answers.upload)
      case ("GET", "/v1/Services/\(ScriptedTwilio.service)/Media/ME1"):
        seen.update { $0.links += 1 }
        let link = answers.link.replacing("{port}", with: port)
        return .json(["sid": "ME1", "links": ["content_direct_temporary": .string(link)]] as JSONValue)
      case ("GET", "/temporary/1"):
        seen.update { $0.downloads.append(request.headers) }
        return HTTPResponse(
          status: answers.download, headers: ["Content-Type": "image/png"], body: .bytes([1, 2, 3]))
      case ("GET", "/v1/Configuration"):
        return .json(["default_chat_service_sid": .string(ScriptedTwilio.service)] as JSONValue)
      default: return HTTPResponse(status: 404)
      }
    }
    try await AdapterRig.with(handler: handler, adjust: { $0.serviceSID = serviceSID }) { rig in
      try await body(rig, seen)
    }
  }

  @Test func `a file is uploaded with its type and name, byte for byte`() async throws {
    try await Self.with { rig, seen in
      let reference = try await rig.adapter.upload(
        .bytes([1, 2, 3]), name: "a cat & ü.png", mediaType: "image/png", to: "lobby")
      #expect(reference == .provider("ME1"))
      let upload = try #require(seen.value.uploads.first)
      #expect(upload.type == "image/png")
      #expect(upload.bytes == [1, 2, 3])
      #expect(Form(decoding: Array(upload.url.utf8))["Filename"] == "a cat & ü.png")
      #expect(Form(decoding: Array(upload.url.utf8))["Category"] == "media")
      _ = try await rig.adapter.upload(.bytes([1]), name: "x", mediaType: "", to: "lobby")
      #expect(seen.value.uploads.last?.type == "application/octet-stream")
    }
  }

  @Test func `an upload that failed has done nothing, whatever became of it`() async throws {
    var answers = Answers()
    answers.upload = 500
    try await Self.with(answers) { rig, _ in
      let error = await #expect(throws: FerryError.self) {
        try await rig.adapter.upload(.bytes([1]), name: "x", mediaType: "image/png", to: "lobby")
      }
      #expect(error?.code == .unavailable)
      #expect(error?.didNotAct == true)
      let large = await #expect(throws: FerryError.self) {
        try await rig.adapter.upload(
          ByteStream(size: 151 << 20, read: ByteStream.none.next), name: "x", mediaType: "image/png", to: "lobby")
      }
      #expect(large?.code == .tooLarge)
    }
  }

  @Test func `bytes come from a temporary address, asked for every time and without credentials`() async throws {
    try await Self.with { rig, seen in
      for _ in 0..<2 {
        let bytes = try await rig.adapter.attachment(.provider("ME1")).collect(upTo: 10)
        #expect(bytes == [1, 2, 3])
      }
      #expect(seen.value.links == 2)
      #expect(seen.value.downloads.count == 2)
      #expect(seen.value.downloads.allSatisfy { $0["Authorization"] == nil })
    }
  }

  @Test func `without a configured service the account's own is asked for, once`() async throws {
    try await Self.with(serviceSID: nil) { rig, _ in
      for _ in 0..<2 { _ = try await rig.adapter.attachment(.provider("ME1")).collect(upTo: 10) }
      let service = try await rig.adapter.service()
      #expect(service == ScriptedTwilio.service)
    }
  }

  @Test func `an address that has run out is a reason to ask again`() async throws {
    var answers = Answers()
    answers.download = 403
    try await Self.with(answers) { rig, _ in
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.attachment(.provider("ME1")) }
      #expect(error?.code == .unavailable)
      #expect(error?.retry == .now)
    }
  }

  @Test func `a file that is not there is not found`() async throws {
    try await Self.with { rig, _ in
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.attachment(.provider("ME2")) }
      #expect(error?.code == .notFound)
    }
  }

  @Test func `an address of another host may not lead into this network`() async throws {
    var answers = Answers()
    answers.link = "http://127.0.0.9:{port}/temporary/1"
    try await Self.with(answers) { rig, _ in
      let error = await #expect(throws: FerryError.self) { try await rig.adapter.attachment(.provider("ME1")) }
      #expect(error?.code == .addressRefused)
    }
  }

  @Test func `a relative address is the media service's own`() async throws {
    var answers = Answers()
    answers.link = "/temporary/1"
    try await Self.with(answers) { rig, _ in
      let bytes = try await rig.adapter.attachment(.provider("ME1")).collect(upTo: 10)
      #expect(bytes == [1, 2, 3])
    }
  }
}
