import FerryChat
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import FoundationEssentials
import Testing

@testable import BackendlessProvider

@Suite(.timeLimit(.minutes(5))) struct FacadeFilesTests {
  static let png: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]

  private func form(_ bytes: [UInt8], name: String = "pic.png", type: String = "image/png") -> [UInt8] {
    Array(
      """
      --XX\r\nContent-Disposition: form-data; name="other"\r\n\r\nnot this\r\n--XX\r\n\
      Content-Disposition: form-data; name="file"; filename="\(name)"\r\nContent-Type: \(type)\r\n\r\n
      """.utf8.dropLast(1)) + [0x0a] + bytes + Array("\r\n--XX--\r\n".utf8)
  }

  private func upload(
    _ service: Service, _ path: String, _ bytes: [UInt8], type: String = "image/png", overwrite: Bool = false
  ) async throws -> Service.Answer {
    try await service.raw(
      "POST", "/APPID/KEY/files/\(path)\(overwrite ? "?overwrite=true" : "")", body: form(bytes, type: type),
      type: "multipart/form-data; boundary=XX")
  }

  @Test func `a picture is uploaded, listed, fetched and deleted under the address it was given`() async throws {
    try await Service.serving { service in
      let answer = try await upload(service, "tmpChatFiles/pic.png", Self.png)
      let url = try unwrap(answer.json["fileURL"]?.string, answer.text)
      #expect(url == "\(service.server.url)/APPID/KEY/files/tmpChatFiles/pic.png")
      let fetched = try await service.raw("GET", url)
      #expect(fetched.bytes == Self.png && fetched.headers["Content-Type"] == "image/png")
      #expect(fetched.headers["Content-Disposition"]?.hasPrefix("inline") == true)
      #expect(fetched.headers["X-Content-Type-Options"] == "nosniff")
      let listed = try await service.call("GET", "/files/tmpChatFiles?pattern=*.png&sub=false&pagesize=100&offset=0")
        .json
      let created = listed.array?.first?["createdOn"] ?? .null
      #expect(
        listed == [
          [
            "name": "pic.png", "createdOn": created, "publicUrl": .string(url), "url": "tmpChatFiles/pic.png",
            "size": 11,
          ]
        ])
      #expect(try await upload(service, "tmpChatFiles/pic.png", [1]).code == 6003)
      #expect(try await upload(service, "tmpChatFiles/pic.png", [1], overwrite: true).status == 200)
      #expect(try await service.raw("GET", url).bytes == [1])
      #expect(try await service.raw("DELETE", url).text == "1")
      #expect(try await service.raw("GET", url).code == 6000)
      #expect(try await service.raw("DELETE", url).code == 6000)
    }
  }

  @Test func `bytes are saved as Base64, with odd names`() async throws {
    try await Service.serving { service in
      let path = "/APPID/KEY/files/binary/tmpChatFiles/a%20b%23%C3%A9.png?overwrite=true"
      let saved = try await service.raw("PUT", path, body: Array("iVBORw0KGgoBAgM=".utf8), type: "text/plain")
      let url = try unwrap(saved.json.string, saved.text)
      #expect(url.hasSuffix("/files/tmpChatFiles/a%20b%23%C3%A9.png"))
      let fetched = try await service.raw("GET", url)
      #expect(fetched.bytes == Self.png && fetched.headers["Content-Type"] == "image/png")
      #expect(try await service.raw("GET", url + "?action=exists").text == "true")
      #expect(try await service.call("GET", "/files/tmpChatFiles/none?action=exists").text == "false")
      #expect(try await service.raw("PUT", path, body: Array("not base64!".utf8), type: "text/plain").code == 8000)
      let big = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      let text = Array(Data(big).base64EncodedString().utf8)
      _ = try await service.raw("PUT", "/APPID/KEY/files/binary/big.bin", body: text, type: "text/plain")
      #expect(try await service.call("GET", "/files/big.bin").bytes == big)
    }
  }

  @Test func `Base64 is decoded wherever it is cut`() async throws {
    let bytes = (0..<50).map { UInt8($0) }
    let text = Array(Data(bytes).base64EncodedString().utf8) + [0x0d, 0x0a]
    for size in 1...9 {
      let pieces = Locked(
        stride(from: 0, to: text.count, by: size).map { Array(text[$0..<min($0 + size, text.count)]) })
      let stream = ByteStream { () async throws(FerryError) in pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
      #expect(try await stream.decodingBase64().collect(upTo: 100) == bytes)
    }
  }

  @Test func `a form is read wherever it is cut`() async throws {
    let content: [UInt8] = Array("a\r\n--X\r\n-XXbut no\r\r\n--X".utf8)
    let body = form(content)
    for size in [1, 2, 3, 7, 50, 1000] {
      let pieces = Locked(
        stride(from: 0, to: body.count, by: size).map { Array(body[$0..<min($0 + size, body.count)]) })
      let stream = ByteStream { () async throws(FerryError) in pieces.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
      let reader = try MultipartReader(stream, contentType: "multipart/form-data; charset=utf-8; boundary=XX")
      let (part, file) = try await reader.file(named: "file")
      #expect(part.fileName == "pic.png" && part.mediaType == "image/png")
      #expect(try await file.collect(upTo: 1000) == content)
    }
    for broken in ["", "--XX\r\n", "--XX\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nabc", "--XX--"] {
      let reader = try MultipartReader(.bytes(Array(broken.utf8)), contentType: "multipart/form-data; boundary=XX")
      await #expect(throws: FerryError.self) { try await reader.file(named: "file").content.collect(upTo: 100) }
    }
    #expect(throws: FerryError.self) { try MultipartReader(.none, contentType: "multipart/form-data") }
  }

  @Test func `files are appended to`() async throws {
    try await Service.serving { service in
      func put(_ path: String, _ text: String) async throws -> Service.Answer {
        try await service.raw("PUT", "/APPID/KEY/files/\(path)", body: Array(text.utf8), type: "text/plain")
      }
      #expect(try await put("append/log.txt", "one ").status == 200)
      #expect(try await put("append/log.txt", "two ").json.string?.hasSuffix("/files/log.txt") == true)
      #expect(try await put("append/binary/log.txt", "dGhyZWU=").status == 200)
      let posted = try await service.raw(
        "POST", "/APPID/KEY/files/append/log.txt", body: form(Array(" four".utf8), type: "text/plain"),
        type: "multipart/form-data; boundary=XX")
      #expect(posted.json["fileURL"] != nil)
      #expect(try await service.call("GET", "/files/log.txt").text == "one two three four")
    }
  }

  @Test func `folders are made, counted, listed deeply and removed with what is in them`() async throws {
    try await Service.serving { service in
      #expect(try await service.call("POST", "/files/a/b/").status == 200)
      for name in ["a/1.png", "a/2.txt", "a/b/3.png", "a/b/c/4.png"] { _ = try await upload(service, name, [1]) }
      func count(_ query: String) async throws -> String {
        try await service.call("GET", "/files/a?action=count&\(query)").text
      }
      #expect(try await count("pattern=*") == "2")
      #expect(try await count("pattern=*&countDirectories=true") == "3")
      #expect(try await count("pattern=*.png&sub=true") == "3")
      #expect(try await count("pattern=*&sub=true&countDirectories=true") == "6")
      let names = try await service.call("GET", "/files/a?sub=true&pattern=*.p%3Fg").json.array?.map { $0["url"] }
      #expect(names == ["a/1.png", "a/b/3.png", "a/b/c/4.png"])
      let page = try await service.call("GET", "/files/a?pagesize=1&offset=1").json.array ?? []
      #expect(page.count == 1 && page[0]["name"] == "1.png")
      let folder = try await service.call("GET", "/files/a/").json.array?.first
      #expect(folder?["name"] == "b" && folder?["size"] == nil)
      #expect(try await service.call("GET", "/files").json.array?.map { $0["name"] } == ["a"])
      #expect(try await upload(service, "a/b", [1], overwrite: true).code == 6018)
      #expect(try await upload(service, "a/1.png/x", [1]).code == 6018)
      #expect(try await service.call("DELETE", "/files/a?pattern=*&sub=false").text == "7")
      #expect(try await service.call("GET", "/files/a/b").code == 6000)
      #expect(try await service.call("GET", "/files").json == [])
    }
  }

  @Test func `files and folders are renamed, copied and moved`() async throws {
    try await Service.serving { service in
      _ = try await upload(service, "a/b.txt", [1, 2])
      let renamed = try await service.call("PUT", "/files/rename", ["oldPathName": "/a/b.txt", "newName": "c.txt"])
      #expect(renamed.json.string == "\(service.server.url)/APPID/KEY/files/a/c.txt")
      #expect(try await service.call("GET", "/files/a/c.txt").bytes == [1, 2])
      #expect(try await service.call("GET", "/files/a/b.txt").code == 6000)
      let copied = try await service.call("PUT", "/files/copy", ["sourcePath": "/a", "targetPath": "/y/z"])
      #expect(copied.json.string?.hasSuffix("/files/y/z") == true)
      #expect(try await service.call("GET", "/files/y/z/c.txt").bytes == [1, 2])
      let moved = try await service.call("PUT", "/files/move", ["sourcePath": "a/c.txt", "targetPath": "y"])
      #expect(moved.json.string?.hasSuffix("/files/y/c.txt") == true)
      func code(_ action: String, _ body: JSONValue) async throws -> Int64? {
        try await service.call("PUT", "/files/\(action)", body).code
      }
      #expect(try await code("move", ["sourcePath": "a/c.txt", "targetPath": "y"]) == 6007)
      #expect(try await code("copy", ["sourcePath": "y/c.txt", "targetPath": "y"]) == 6023)
      #expect(try await code("copy", ["sourcePath": "y", "targetPath": "y/z/q"]) == 6023)
      #expect(try await code("copy", ["sourcePath": "y/z", "targetPath": "y/c.txt"]) == 6021)
      #expect(try await code("rename", ["oldPathName": "y/c.txt", "newName": "z"]) == 6018)
      #expect(try await code("rename", ["oldPathName": "y/c.txt", "newName": "../x"]) == 6006)
      #expect(try await code("rename", ["newName": "x"]) == 8010)
      #expect(try await code("move", ["sourcePath": "y"]) == 8010)
    }
  }

  @Test(arguments: ["..%2F..%2Fetc%2Fpasswd", "a/%2e%2e/b", "a/..%5Cb", "a%00b", "%2e"])
  func `no path leads out`(path: String) async throws {
    try await Service.serving { service in
      let answer = try await upload(service, path, [1])
      #expect(answer.status == 400, "\(answer.text)")
      #expect([400, 404].contains(try await service.call("GET", "/files/\(path)").status))
    }
  }

  @Test func `pages of strangers are never shown`() async throws {
    try await Service.serving { service in
      for (name, type) in [("x.svg", "image/svg+xml"), ("x.html", "text/html"), ("x.png", "text/html"), ("x", "")] {
        _ = try await upload(service, name, Array("<script>alert(1)</script>".utf8), type: type)
        let answer = try await service.call("GET", "/files/\(name)")
        #expect(answer.headers["Content-Disposition"]?.hasPrefix("attachment") == true, "\(name)")
        #expect(answer.headers["Content-Security-Policy"]?.contains("sandbox") == true)
      }
    }
  }

  @Test func `a file has a limit however it comes`() async throws {
    try await Service.serving(adjust: { $0.fileBytes = 1000 }) { service in
      let large = [UInt8](repeating: 65, count: 3000)
      #expect(try await upload(service, "x.txt", large).status == 413)
      let saved = try await service.raw("PUT", "/APPID/KEY/files/binary/x.txt", body: large, type: "text/plain")
      #expect(saved.status == 413)
      _ = try await upload(service, "y.txt", [UInt8](repeating: 65, count: 600), type: "text/plain")
      let path = "/APPID/KEY/files/append/y.txt"
      #expect(
        try await service.raw("PUT", path, body: [UInt8](repeating: 65, count: 600), type: "text/plain").status == 413)
      #expect(try await service.call("GET", "/files/x.txt?action=exists").text == "false")
      #expect(try await service.call("GET", "/files/y.txt").bytes.count == 600)
    }
  }

  @Test func `an address that is named is fetched only outside of this machine`() async throws {
    try await Service.serving { service in
      for url in [
        service.server.url + "/APPID/KEY/info", "http://localhost:1/x", "http://169.254.169.254/", "file:///etc/passwd",
      ] {
        let answer = try await service.call("POST", "/files/x.txt", ["url": .string(url)])
        #expect(answer.status == 400 && answer.code == 8000, "\(url): \(answer.text)")
      }
      #expect(try await service.call("POST", "/files/x.txt", [:]).code == 8010)
    }
  }

  @Test func `an address outside is fetched`() async throws {
    try await Service.serving { service in
      let allowed = BackendlessFacade(
        settings: service.facade.settings, chat: service.chat,
        client: HTTPClient(loop: service.loop, guard: AddressGuard(allowedHosts: ["127.0.0.1"]), logger: .silent),
        rehearsal: nil, clock: service.clock, logger: .silent, metrics: nil)
      _ = try await upload(service, "from.png", Self.png)
      var request = HTTPRequest(
        method: "POST", path: "/APPID/KEY/files/to.png", headers: ["Content-Type": "application/json"])
      let url = service.server.url + "/APPID/KEY/files/from.png"
      request.body = .bytes(JSONText.bytes(of: ["url": .string(url)]))
      #expect(await allowed.handle(request).status == 200)
      #expect(try await service.call("GET", "/files/to.png").bytes == Self.png)
    }
  }
}
