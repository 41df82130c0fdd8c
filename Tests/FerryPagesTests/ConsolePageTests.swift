import FerryPages
import FerryTransport
import Testing

@Suite struct ConsolePageTests {
  private func get(_ path: String, method: String = "GET") -> HTTPResponse? {
    ConsolePage.answer(HTTPRequest(method: method, path: path, headers: ["Host": "127.0.0.1:8090"]))
  }

  private func text(_ response: HTTPResponse?) -> String {
    guard case .bytes(let bytes)? = response?.body else { return "" }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("every file that the console names is there, and all of them are small")
  func files() throws {
    var asked: Set<String> = []
    var waiting = ["/"]
    var size = 0
    while let path = waiting.popLast() {
      guard asked.insert(path).inserted else { continue }
      let answer = try #require(get(path))
      #expect(answer.status == 200, "\(path)")
      size += text(answer).utf8.count
      for part in text(answer).split(whereSeparator: { "\"'".contains($0) }) {
        if part.hasPrefix("/console/"), part.contains(".") {
          waiting.append(String(part))
        } else if part.hasPrefix("./"), part.hasSuffix(".js") {
          waiting.append("/console" + part.dropFirst())
        }
      }
    }
    #expect(asked.count >= 15)
    #expect(size < 120_000, "the console has \(size) bytes")
  }

  @Test("the policy lets in nothing inline, nothing from elsewhere, and no frame around it")
  func policy() throws {
    let headers = try #require(get("/")).headers
    let policy = try #require(headers["Content-Security-Policy"])
    for part in [
      "default-src 'none'", "script-src 'self'", "style-src 'self'", "form-action 'none'", "frame-ancestors 'none'",
      "require-trusted-types-for 'script'", "trusted-types 'none'",
    ] { #expect(policy.contains(part)) }
    #expect(!policy.contains("unsafe"))
    #expect(headers["X-Content-Type-Options"] == "nosniff")
    #expect(headers["Referrer-Policy"] == "no-referrer")
    #expect(headers["X-Frame-Options"] == "DENY")
    for file in ["/", "/console/console.js", "/console/vocabulary.js"] {
      #expect(!text(get(file)).contains("innerHTML"))
      #expect(!text(get(file)).contains("eval("))
    }
    #expect(!text(get("/")).contains("<style"))
    #expect(!text(get("/")).contains("style="))
  }

  @Test("only the console's own paths are answered, and only to readers")
  func paths() throws {
    #expect(get("/api/status") == nil)
    #expect(get("/metrics") == nil)
    #expect(get("/consoles") == nil)
    #expect(try #require(get("/console/none.js")).status == 404)
    #expect(try #require(get("/console/../chat/main.js")).status == 404)
    #expect(try #require(get("/", method: "POST")).status == 405)
    #expect(try #require(get("/", method: "HEAD")).status == 200)
  }
}
