import FerryRuntime
import Testing

@testable import FerryTransport

@Suite(.timeLimit(.minutes(2))) struct RequestLimitTests {
  private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

  @Test("a client gets twice its rate at once, then its rate, and others are not concerned")
  func rate() throws {
    var limit = RequestLimit(perSecond: 10)
    let (one, other) = (try address("198.51.100.1"), try address("198.51.100.2"))
    var now = ContinuousClock.now
    for _ in 0..<20 {
      let refused = limit.refuse(one, now: now)
      #expect(refused == nil)
    }
    let refusal = limit.refuse(one, now: now)
    let wait = try #require(refusal)
    #expect(wait > .milliseconds(50) && wait <= .milliseconds(100))
    let free = limit.refuse(other, now: now)
    #expect(free == nil)
    // What was refused does not count.
    now += .milliseconds(101)
    let again = [limit.refuse(one, now: now), limit.refuse(one, now: now)]
    #expect(again[0] == nil && again[1] != nil)
    now += .seconds(3600)
    let later = (0..<21).map { _ in limit.refuse(one, now: now) }
    #expect(later.count { $0 != nil } == 1)
  }

  @Test("an IPv6 network of 64 bits is one client, whichever of its addresses it uses")
  func networks() throws {
    var limit = RequestLimit(perSecond: 1)
    let now = ContinuousClock.now
    var refused = 0
    for number in 1...10 {
      let client = try address("2001:db8:1:2::\(number)")
      if limit.refuse(client, now: now) != nil { refused += 1 }
    }
    #expect(refused == 8)
    let neighbour = limit.refuse(try address("2001:db8:1:3::1"), now: now)
    #expect(neighbour == nil)
  }

  @Test("the table is bounded: who is quiet is forgotten, and what does not fit shares one allowance")
  func bounds() throws {
    var limit = RequestLimit(perSecond: 5)
    var now = ContinuousClock.now
    for number in 0..<(RequestLimit.capacity + 100) {
      _ = limit.refuse(try address("10.\(number >> 16).\(number >> 8 & 255).\(number & 255)"), now: now)
    }
    #expect(limit.count <= RequestLimit.capacity + 1)
    // The table is gone through once, not for each of them.
    #expect(limit.sweeps == 1)
    let stranger = limit.refuse(try address("192.0.2.1"), now: now)
    #expect(stranger != nil)
    let known = limit.refuse(try address("10.0.0.1"), now: now)
    #expect(known == nil)
    now += .seconds(3)
    let later = limit.refuse(try address("192.0.2.1"), now: now)
    #expect(later == nil)
    #expect(limit.count < 10)
    #expect(limit.sweeps == 2)
  }

  @Test("this machine is not limited, and speaks for others only by the last that it names")
  func clients() throws {
    let client = { (peer: String, forwarded: String?) -> String? in
      var headers = HTTPHeaders()
      if let forwarded { headers.set("X-Forwarded-For", forwarded) }
      return RequestLimit.client(of: peer, headers)?.text
    }
    for own in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] { #expect(client(own, nil) == nil, "\(own)") }
    #expect(client("192.0.2.1", nil) == "192.0.2.1")
    // Only what a proxy of ours says is believed.
    #expect(client("192.0.2.1", "198.51.100.1") == "192.0.2.1")
    #expect(client("127.0.0.1", "198.51.100.1, 203.0.113.9") == "203.0.113.9")
    #expect(client("127.0.0.1", "203.0.113.9:1234") == "203.0.113.9")
    #expect(client("::1", "2001:db8::1") == "2001:db8::1")
    #expect(client("::1", "[2001:db8::1]:443") == "2001:db8::1")
    for nonsense in ["", "unknown", "_hidden", "127.0.0.1", ", ,", "999.1.1.1"] {
      #expect(client("127.0.0.1", nonsense) == nil, "\(nonsense)")
    }
  }

  @Test("who asks too often is answered 429 with Retry-After, with a body or without, and others are served")
  func server() async throws {
    let served = Locked(0)
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { _ in
      served.withLock { $0 += 1 }
      return .text("served")
    }
    try await withBench(HTTPServer.Settings(requestsPerClient: 1), handler: handler) { bench in
      func ask(_ client: String?, _ body: Int = 0) async throws -> ClientResponse {
        var request = ClientRequest(method: body > 0 ? "POST" : "GET", url: bench.url("/"))
        if let client { request.headers.set("X-Forwarded-For", client) }
        if body > 0 { request.body = .bytes([UInt8](repeating: 1, count: body)) }
        return try await bench.client.send(request)
      }
      for body in [0, 100, 100_000] {
        let client = "198.51.100.\(1 + body % 97)"
        var refusal = try await ask(client, body)
        while refusal.status == 200 { refusal = try await ask(client, body) }
        #expect(refusal.status == 429)
        #expect(refusal.headers["Retry-After"] == "1")
        #expect(String(decoding: try await refusal.collect(upTo: 1000), as: UTF8.self).contains("Too many requests"))
      }
      #expect(try await ask("203.0.113.1").status == 200)
      let before = served.withLock { $0 }
      for _ in 0..<20 { #expect(try await ask(nil).status == 200) }
      #expect(served.withLock { $0 } == before + 20)
    }
  }

  @Test("who asks too often has one length all the same, and is heard out for 1 MiB at most")
  func refused() async throws {
    try await withBench(
      HTTPServer.Settings(bodyBytes: 1 << 30, requestsPerClient: 1), handler: { _ in .text("served") }
    ) { bench in
      let port = bench.port
      let (smuggled, sent) = try await blocking {
        let client = "Host: a\r\nX-Forwarded-For: 203.0.113.7\r\n"
        let first = try RawSocket(port: port)
        try first.write(String(repeating: "GET / HTTP/1.1\r\n\(client)\r\n", count: 20))
        var answers = ""
        while !answers.contains("429") { answers += String(decoding: try first.read(), as: UTF8.self) }
        let second = try RawSocket(port: port)
        try second.write(
          "POST / HTTP/1.1\r\n\(client)Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n")
        let smuggled = try second.readAll()
        // Until the connection is dropped, or for ever.
        let third = try RawSocket(port: port)
        try third.write("POST / HTTP/1.1\r\n\(client)Transfer-Encoding: chunked\r\n\r\n")
        let chunk = "10000\r\n" + String(repeating: "x", count: 1 << 16) + "\r\n"
        var sent = 0
        while sent < 64 << 20, (try? third.write(chunk)) != nil { sent += 1 << 16 }
        return (smuggled, sent)
      }
      #expect(smuggled.hasPrefix("HTTP/1.1 400"), "\(smuggled)")
      #expect(!smuggled.contains("served"))
      #expect(sent < 64 << 20)
    }
  }
}
