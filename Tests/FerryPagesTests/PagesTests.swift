import FerryPages
import FerryTransport
import Testing

@Suite struct PagesTests {
  private let pages = {
    let pages = Pages()
    pages.show(
      [
        Pages.Pane(title: "local", port: 8080, room: "lobby", token: "secret"),
        Pages.Pane(title: "pusher", port: 8082, room: "x"),
      ],
      onPort: 8080)
    return pages
  }()

  private func get(
    _ path: String, host: String = "127.0.0.1:8080", peer: String = "127.0.0.1", method: String = "GET",
    tag: String? = nil,
    withStart: Bool = true
  ) -> HTTPResponse? {
    var headers: HTTPHeaders = ["Host": host]
    if let tag { headers.set("If-None-Match", tag) }
    return pages.answer(HTTPRequest(method: method, path: path, headers: headers, peer: peer), withStart: withStart)
  }

  private func text(_ response: HTTPResponse?) -> String {
    guard case .bytes(let bytes)? = response?.body else { return "" }
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("every file that a page names is there, with its type")
  func files() throws {
    for page in ["/chat", "/"] {
      var asked: Set<String> = []
      var waiting = [page]
      while let path = waiting.popLast() {
        guard asked.insert(path).inserted else { continue }
        let answer = try #require(get(path))
        #expect(answer.status == 200, "\(path)")
        let type = answer.headers["Content-Type"]
        switch path.split(separator: ".").last {
        case "js": #expect(type == "text/javascript; charset=utf-8")
        case "css": #expect(type == "text/css; charset=utf-8")
        case "svg": #expect(type == "image/svg+xml")
        default: #expect(type == "text/html; charset=utf-8")
        }
        let folder = path.hasPrefix("/chat") ? "/chat" : "/start"
        for part in text(answer).split(whereSeparator: { "\"'".contains($0) }) {
          if ["/chat/", "/start/"].contains(where: { part.hasPrefix($0) }), part.contains("."), !part.hasSuffix(".json")
          {
            waiting.append(String(part))
          } else if part.hasPrefix("./"), part.hasSuffix(".js") {
            waiting.append(folder + part.dropFirst())
          }
        }
      }
      #expect(asked.count >= (page == "/chat" ? 14 : 3))
    }
  }

  @Test("pages run nothing but their own scripts, and only the start page frames them")
  func policy() throws {
    let chat = try #require(get("/chat", host: "ferry.example:8082")?.headers["Content-Security-Policy"])
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "trusted-types 'none'"] {
      #expect(chat.contains(part))
    }
    #expect(chat.contains("frame-ancestors http://ferry.example:8080"))
    #expect(!chat.contains("unsafe") && !chat.contains("*"))
    let start = try #require(get("/")?.headers["Content-Security-Policy"])
    #expect(start.contains("frame-src http://127.0.0.1:8080 http://127.0.0.1:8082;"))
    #expect(start.contains("frame-ancestors 'none'"))
    #expect(get("/chat")?.headers["X-Content-Type-Options"] == "nosniff")
    #expect(get("/chat")?.headers["Referrer-Policy"] == "no-referrer")
    let alone = Pages().answer(HTTPRequest(method: "GET", path: "/chat"), withStart: false)
    #expect(alone?.headers["Content-Security-Policy"]?.contains("frame-ancestors 'none'") == true)
  }

  @Test(
    "a host that is none does not get into the policy",
    arguments: ["evil.example; script-src *", "a b", "x'y", "", "*", "a,b", "[::1]:80; x"])
  func badHosts(_ host: String) throws {
    let policy = try #require(get("/chat", host: host)?.headers["Content-Security-Policy"])
    #expect(policy.contains("frame-ancestors http://127.0.0.1:8080"))
    #expect(!policy.contains("*"))
  }

  @Test("tokens are for browsers on this machine that know it by its own name")
  func tokens() {
    for host in ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"] {
      #expect(text(get("/start/panes.json", host: host)).contains("secret"))
    }
    #expect(!text(get("/start/panes.json", host: "rebound.example:8080")).contains("secret"))
    #expect(!text(get("/start/panes.json", peer: "192.0.2.7")).contains("secret"))
    #expect(text(get("/start/panes.json", peer: "192.0.2.7")).contains("http://127.0.0.1:8082"))
    #expect(get("/start/panes.json")?.headers["Cache-Control"] == "no-store")
  }

  @Test("what is no page is left to the service")
  func others() {
    for path in ["/v1/rooms", "/chats", "/apps/1/events", "/healthz", ""] { #expect(get(path) == nil, "\(path)") }
    for path in ["/", "/start/start.js", "/start/panes.json"] { #expect(get(path, withStart: false) == nil, "\(path)") }
    #expect(get("/chat/../../etc/passwd")?.status == 404)
    #expect(get("/chat/nothing.js")?.status == 404)
    #expect(get("/chat", method: "POST")?.status == 405)
    #expect(get("/chat", method: "HEAD")?.status == 200)
  }

  @Test("a file that the browser has is not sent again")
  func notModified() throws {
    let tag = try #require(get("/chat/main.js")?.headers["ETag"])
    let again = try #require(get("/chat/main.js", tag: tag))
    #expect(again.status == 304 && text(again).isEmpty)
    #expect(again.headers["Content-Security-Policy"] != nil)
    #expect(get("/chat/main.js", tag: "\"other\"")?.status == 200)
    #expect(get("/chat/menu.js")?.headers["ETag"] != tag)
  }

  @Test("what the chat page needs at once is one module, without imports and without a name that is there twice")
  func bundle() throws {
    let lines = text(get("/chat/main.js")).split(separator: "\n")
    #expect(!lines.contains { $0.hasPrefix("import ") || $0.hasPrefix("import{") })
    let words: Set<Substring> = ["export", "async", "function", "class", "const", "let"]
    let names = lines.compactMap { line -> Substring? in
      let parts = line.split { " ({=;".contains($0) }
      guard let first = parts.first, words.contains(first) else { return nil }
      return parts.first { !words.contains($0) }
    }
    for name in ["Api", "RoomView", "translate", "Timeline"] { #expect(names.contains(Substring(name))) }
    for path in ["/chat/menu.js", "/chat/sign-in.js", "/chat/tray.js"] {
      #expect(text(get(path)).contains("from './main.js'"), "\(path)")
      #expect(!text(get(path)).contains("from './text.js'"), "\(path)")
    }
    #expect(get("/chat/text.js")?.status == 404)
  }

  @Test("a service whose apps write a message when somebody comes says so to its page")
  func joinNotice() throws {
    let request = HTTPRequest(method: "GET", path: "/chat", headers: ["Host": "127.0.0.1:8083"])
    let told = try #require(pages.answer(request, withStart: false, joinNotice: "joined"))
    #expect(text(told).contains(#"<meta name="join-notice" content="joined">"#))
    #expect(told.headers["ETag"] != get("/chat")?.headers["ETag"])
    #expect(text(get("/chat")).contains(#"<meta name="join-notice" content="">"#))
    let bad = try #require(pages.answer(request, withStart: false, joinNotice: #""><script>"#))
    #expect(text(bad) == text(get("/chat")))
  }

  @Test("the chat page needs less than 100 KB")
  func size() throws {
    let html = text(get("/chat"))
    let later = [
      "extra.css", "drops", "jump", "mentions", "menu", "notices", "search", "sign-in", "tray", "viewer", "words-ja",
    ]
    for name in later { #expect(!html.contains("/chat/\(name)"), "\(name) is loaded when it is needed") }
  }
}
