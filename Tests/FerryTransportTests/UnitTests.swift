import FerryCore
import FerryRuntime
import Testing

@testable import FerryTransport

struct AddressGuardTests {
  @Test(
    "addresses that are not public are refused",
    arguments: [
      "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.255",
      "169.254.169.254",
      "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
      "198.19.255.255",
      "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
      "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
      "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::",
      "2002:a00:1::1",
      "3fff::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "5f00::1",
      "", "localhost", "1.2.3", "1.2.3.4.5",
    ])
  func refused(address: String) { #expect(!AddressGuard.isPublic(address)) }

  @Test(
    "public addresses are allowed",
    arguments: [
      "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
      "128.0.0.1",
      "169.253.1.1", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.1.1", "198.17.1.1", "198.20.0.0",
      "223.255.255.255",
      "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:200::1",
    ])
  func allowed(address: String) { #expect(AddressGuard.isPublic(address)) }

  @Test("a host is allowed however it is written")
  func hosts() {
    let addressGuard = AddressGuard(allowedHosts: ["Files.Example", "::1"])
    #expect(addressGuard.allows(host: "files.example."))
    #expect(addressGuard.allows(host: "[::1]"))
    #expect(!addressGuard.allows(host: "other.files.example"))
  }
}

struct HTTPTypesTests {
  @Test("header names are compared without case and keep their order")
  func headers() {
    var headers: HTTPHeaders = ["A": "1", "b": "2"]
    headers.add("a", "3")
    #expect(headers["a"] == "1")
    #expect(headers.all("A") == ["1", "3"])
    headers.set("a", "4")
    #expect(headers.fields.map(\.value) == ["4", "2"])
    headers["B"] = nil
    #expect(headers.fields.count == 1)
    #expect(headers["missing"] == nil)
  }

  @Test("lists in headers are searched token by token")
  func lists() {
    let headers: HTTPHeaders = ["Connection": "keep-alive, Upgrade"]
    #expect(headers.list("connection", contains: "upgrade"))
    #expect(!headers.list("connection", contains: "up"))
  }

  @Test("paths and queries are decoded, broken escapes kept")
  func decoding() {
    let request = HTTPRequest(method: "GET", path: "/a%20b//c%2Fd/%zz%4", rawQuery: "x=1+2&y&x=%C3%BC&=v&z=a=b")
    #expect(request.segments == ["a b", "c/d", "%zz%4"])
    #expect(request.queryItems.map(\.name) == ["x", "y", "x", "", "z"])
    #expect(request.queryItems.map(\.value) == ["1 2", "", "ü", "v", "a=b"])
    #expect(request.query("x") == "1 2")
    #expect(PercentEncoding.encode("a b/ü~") == "a%20b%2F%C3%BC~")
    #expect(PercentEncoding.decode("%FF") == "\u{FFFD}")
  }

  @Test("a status says whether to retry and whether it acted")
  func statuses() {
    func error(_ status: Int, _ wait: String? = nil) -> FerryError {
      .from(status: status, retryAfter: wait, doing: "post")
    }
    #expect(error(401).code == .badCredentials && error(401).retry == .never)
    #expect(error(403).code == .forbidden)
    #expect(error(429, "7").retry == .after(.seconds(7)) && error(429, "7").didNotAct)
    #expect(error(429).retry == .now)
    #expect(error(503, "3").retry == .after(.seconds(3)) && error(503, "3").didNotAct)
    #expect(error(503).retry == .now && !error(503).didNotAct)
    #expect(error(500).code == .unavailable && !error(500).didNotAct)
    #expect(error(413).code == .tooLarge && error(413).didNotAct)
    #expect(error(302).retry == .after(.seconds(10)) && error(302).didNotAct, "a redirect is no verdict on a message")
  }
}

struct RetryAfterTests {
  @Test(
    "whatever the other side asks for, the wait is between nothing and a day",
    arguments: [
      ("9223372036854775807", 86_400), ("86401", 86_400), ("-9223372036854775808", 0), (" 7 ", 7), ("0", 0),
    ])
  func clamped(text: String, seconds: Int) {
    for status in [429, 503, 500, 302] {
      let error = FerryError.from(status: status, retryAfter: text, doing: "post")
      #expect(error.retry == .after(.seconds(seconds)))
      guard case .after(let wait) = error.retry else { continue }
      #expect(Timestamp(milliseconds: 1).advanced(by: wait).milliseconds == Int64(seconds) * 1000 + 1)
    }
  }
}

struct ReconnectPolicyTests {
  @Test("delays double under full jitter up to the limit, and begin anew only after a stable connection")
  func delays() {
    var policy = ReconnectPolicy(base: .seconds(1), limit: .seconds(8), stableAfter: .seconds(30))
    var random = Highest()
    func next(_ failure: ReconnectPolicy.Failure, _ connected: Duration? = nil) -> Duration? {
      policy.delay(after: failure, connectedFor: connected, using: &random)
    }
    #expect((0..<5).map { _ in next(.unknown) } == [1, 2, 4, 8, 8].map { .seconds($0) })
    #expect(next(.unknown, .seconds(29)) == .seconds(8))
    #expect(next(.unknown, .seconds(30)) == .seconds(1))
    #expect(next(.permanent) == nil)
    #expect(next(.quick) == .milliseconds(250))
    #expect(next(.after(.seconds(9))) == .milliseconds(9250))
    _ = next(.quick)
    _ = next(.quick)
    #expect(next(.quick) == .seconds(2))
  }

  /// Makes `Int64.random` return its upper bound.
  private struct Highest: RandomNumberGenerator {
    // With nothing stored it has no address, and the thread sanitizer stumbles over one that is passed inout.
    private var bits = UInt64.max
    mutating func next() -> UInt64 { bits }
  }
}

@Suite(.timeLimit(.minutes(1)))
struct BytePipeTests {
  @Test("a full pipe stops its source and wakes it when half has been read")
  func fromCallback() async throws {
    let wakes = Locked(0)
    let pipe = BytePipe(limit: 4) { wakes.withLock { $0 += 1 } }
    func offer(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { pipe.offer($0) } }
    #expect(offer([1, 2]))
    #expect(offer([3, 4]))
    #expect(!offer([5]))
    #expect(try await pipe.next() == [1, 2])
    #expect(wakes.withLock { $0 } == 1)
    #expect(offer([5]))
    pipe.finish()
    #expect(try await pipe.next() == [3, 4])
    #expect(try await pipe.next() == [5])
    #expect(try await pipe.next() == nil)
  }

  @Test("an empty pipe wakes its sink when something is written, or at the end")
  func toCallback() async {
    let wakes = Locked(0)
    let pipe = BytePipe(limit: 4) { wakes.withLock { $0 += 1 } }
    var buffer = [UInt8](repeating: 0, count: 3)
    func take() -> BytePipe.Taken { buffer.withUnsafeMutableBytes { pipe.take(into: $0) } }
    #expect(take() == .empty)
    #expect(await pipe.write([1, 2, 3, 4, 5]))
    #expect(wakes.withLock { $0 } == 1)
    #expect(take() == .bytes(3))
    #expect(take() == .bytes(2))
    #expect(take() == .empty)
    pipe.finish()
    #expect(wakes.withLock { $0 } == 2)
    #expect(take() == .finished)
    #expect(await !pipe.write([1]))
  }

  @Test("a cancelled reader and writer return at once")
  func cancellation() async throws {
    let pipe = BytePipe(limit: 1) {}
    let reader = Task { try await pipe.next() }
    reader.cancel()
    await #expect(throws: FerryError.self) { try await reader.value }
    #expect(await pipe.write([1]))
    let writer = Task { await pipe.write([2]) }
    writer.cancel()
    #expect(await !writer.value)
  }

  @Test("a failure reaches the reader instead of what was left")
  func failure() async throws {
    let pipe = BytePipe(limit: 10) {}
    _ = [1 as UInt8].withUnsafeBytes { pipe.offer($0) }
    pipe.finish(FerryError(.storage, "Gone."))
    let error = await #expect(throws: FerryError.self) { try await pipe.next() }
    #expect(error?.code == .storage)
  }
}
