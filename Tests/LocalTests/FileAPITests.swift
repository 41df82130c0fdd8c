import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials
import LocalProvider
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileAPITests {
  private static let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + Crypto.randomBytes(5 << 20)

  private func upload(
    _ server: TestServer, _ query: String, _ body: ClientRequest.Body, type: String = "image/png"
  ) async throws -> Answer {
    let request = ClientRequest(
      method: "POST", url: server.url + "/v1/files" + query,
      headers: ["Authorization": "Bearer owner", "Content-Type": type], body: body)
    let response = try await server.client.send(request)
    return Answer(
      status: response.status, headers: response.headers, bytes: try await response.collect(upTo: 1 << 20))
  }

  private func stored(_ server: TestServer) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: server.folder + "/files").filter { $0 != "unfinished" }
  }

  @Test func anImageComesBackByteForByte() async throws {
    try await withServer { server async throws in
      let sha256 = Crypto.hex(Crypto.digest(.sha256, of: Self.png))
      let answer = try await upload(server, "?name=caf%C3%A9.png&sha256=\(sha256)", .bytes(Self.png), type: "text/html")
      #expect(answer.status == 201 && answer.json["sha256"]?.string == sha256, "\(answer.text)")
      #expect(answer.json["type"] == "image/png" && answer.json["size"]?.integer == Int64(Self.png.count))
      let url = try #require(answer.json["url"]?.string)
      let file = try await server.send("GET", url)
      #expect(file.status == 200 && file.bytes == Self.png)
      #expect(file.headers["Content-Type"] == "image/png")
      #expect(file.headers["X-Content-Type-Options"] == "nosniff")
      #expect(file.headers["Cache-Control"]?.contains("immutable") == true)
      #expect(file.headers["Content-Disposition"] == "inline; filename=\"caf_.png\"; filename*=UTF-8''caf%C3%A9.png")
      let tag = try #require(file.headers["ETag"])
      #expect(try await server.send("GET", url, headers: ["If-None-Match": tag]).status == 304)
      #expect(try await server.send("GET", url + "?token=owner", token: nil).status == 200)
      #expect(try await server.send("GET", url + "?token=other", token: nil).status == 401)
      #expect(try stored(server) == [sha256])
      // In chunks, without a declared length.
      let pieces = Locked(
        stride(from: 0, to: Self.png.count, by: 100_000).map {
          Array(Self.png[$0..<min($0 + 100_000, Self.png.count)])
        }[...])
      let chunked = try await upload(
        server, "", .stream(ByteStream { () async throws(FerryError) in pieces.withLock { $0.popFirst() } }))
      #expect(chunked.status == 201 && chunked.json["sha256"]?.string == sha256)
    }
  }

  @Test func whatIsRefusedLeavesNoFile() async throws {
    var limits = ChatLimits()
    limits.fileBytes = 1 << 20
    try await withServer(limits: limits) { server async throws in
      #expect(try await upload(server, "", .bytes(Self.png)).status == 413)
      let endless = ByteStream { () async throws(FerryError) in [UInt8](repeating: 1, count: 65_536) }
      // Refused while it is being sent: by an answer, or by the connection ending.
      let outcome = try? await upload(server, "", .stream(endless))
      #expect(outcome == nil || outcome?.status == 413)
      let sum = String(repeating: "0", count: 64)
      #expect(try await upload(server, "?sha256=\(sum)", .bytes([1, 2, 3])).status == 400)
      #expect(try await upload(server, "", .bytes([1]), type: "multipart/form-data; boundary=x").status == 415)
      #expect(try await upload(server, "?name=\(String(repeating: "n", count: 300))", .bytes([1])).status == 400)
      let left = Locked(3)
      let cut = ByteStream(size: 500_000) { () async throws(FerryError) in
        let isLeft = left.withLock { left in
          left -= 1
          return left >= 0
        }
        guard isLeft else { throw FerryError(.cancelled, "cut") }
        return [UInt8](repeating: 1, count: 1000)
      }
      await #expect(throws: FerryError.self) { _ = try await upload(server, "", .stream(cut)) }
      // The server notices a moment later; a request after it on the same loop comes later still.
      var unfinished = [""]
      while !unfinished.isEmpty {
        #expect(try await server.send("GET", "/healthz").status == 200)
        unfinished = try FileManager.default.contentsOfDirectory(atPath: server.folder + "/files/unfinished")
      }
      #expect(try stored(server).isEmpty)
    }
  }

  @Test(arguments: [
    ("text/html", "<script>alert(1)</script>", "attachment"), ("image/svg+xml", "<svg onload='x()'/>", "attachment"),
    ("text/plain", "hello", "inline"), ("application/pdf", "%PDF", "attachment"), ("video/mp4", "x", "inline"),
    ("image/png", "not a png", "attachment"),
  ])
  func strangersMarkupIsNeverShown(_ type: String, _ bytes: String, _ disposition: String) async throws {
    try await withServer { server async throws in
      let answer = try await upload(server, "?name=%22%0D%0Ax.html", .bytes(Array(bytes.utf8)), type: type)
      let file = try await server.send("GET", try #require(answer.json["url"]?.string))
      #expect(file.headers["Content-Disposition"]?.hasPrefix("\(disposition); filename=") == true)
      #expect(file.headers["Content-Security-Policy"] == "default-src 'none'; sandbox")
      #expect(file.text == bytes)
    }
  }

  @Test func theNameMayComeInAHeader() async throws {
    try await withServer { server async throws in
      for (header, name) in [
        ("attachment; filename=\"a b.txt\"", "a b.txt"), ("attachment; filename*=UTF-8''caf%C3%A9", "café"),
        ("inline; filename=../../x; size=3", "x"), ("attachment", "file"),
      ] {
        let request = ClientRequest(
          method: "POST", url: server.url + "/v1/files",
          headers: ["Authorization": "Bearer owner", "Content-Disposition": header], body: .bytes(Array(header.utf8)))
        let answer = try await server.client.send(request).collect(upTo: 10_000)
        #expect(try Wire.value(JSONValue.self, from: answer)["name"]?.string == name)
      }
    }
  }
}
