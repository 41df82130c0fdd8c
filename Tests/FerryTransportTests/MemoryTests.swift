import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials
import Testing

/// What is measured of the whole process, and so means something only while no other test runs: `make test` runs
/// this suite by itself, with FERRY_MEASURE set.
@Suite(
  .serialized, .timeLimit(.minutes(2)),
  .enabled(if: ProcessInfo.processInfo.environment["FERRY_MEASURE"] != nil, "run alone, with FERRY_MEASURE=1"))
struct MemoryTests {
  @Test("a large body is streamed in, and a large response out, with memory flat", arguments: [nil, 64 << 20 as Int64])
  func streaming(size: Int64?) async throws {
    let total = 64 << 20
    let handler: @Sendable (HTTPRequest) async -> HTTPResponse = { request in
      do throws(FerryError) {
        var count = 0
        while let piece = try await request.body.next() { count += piece.count }
        let sent = Locked(0)
        let stream = ByteStream(size: size) { () async throws(FerryError) -> [UInt8]? in
          sent.withLock { sent in
            guard sent < total else { return nil }
            sent += 65536
            return [UInt8](repeating: 7, count: 65536)
          }
        }
        return HTTPResponse(status: 200, headers: ["Got": String(count)], body: .stream(stream))
      } catch {
        return .error(error)
      }
    }
    var settings = HTTPServer.Settings()
    settings.bodyBytes = total
    try await withBench(settings, handler: handler) { bench in
      let before = Machine.residentMemory
      let left = Locked(total)
      let upload = ByteStream(size: size) { () async throws(FerryError) -> [UInt8]? in
        left.withLock { left in
          guard left > 0 else { return nil }
          left -= 65536
          return [UInt8](repeating: 9, count: 65536)
        }
      }
      let response = try await bench.client.send(
        ClientRequest(method: "POST", url: bench.url("/"), body: .stream(upload)))
      #expect(response.status == 200)
      #expect(response.headers["Got"] == String(total))
      #expect(response.body.size == size)
      var count = 0
      while let piece = try await response.body.next() { count += piece.count }
      #expect(count == total)
      #expect(Machine.residentMemory - before < 24 << 20)
    }
  }

  @Test("two thousand sockets come and go, and memory and descriptors are where they were")
  func comeAndGo() async throws {
    try await withBench(handler: WebSocketTests.echo) { bench in
      let port = bench.port
      let round: @Sendable () async throws -> Int = {
        let sockets = try await blocking {
          let sockets = try (0..<2000).map { _ in try RawSocket(port: port) }
          for socket in sockets { _ = try socket.openWebSocket() }
          return sockets
        }
        try await eventually("all are open") { await bench.server.connections == 2000 }
        let memory = Machine.residentMemory
        for socket in sockets.prefix(1000) { try socket.write(RawSocket.frame(0x88, [3, 232])) }
        return memory
      }
      _ = try await round()
      try await eventually("all are gone") { await bench.server.connections == 0 }
      let descriptors = Machine.openDescriptors
      let before = Machine.residentMemory
      let during = try await round()
      try await eventually("all are gone again") { await bench.server.connections == 0 }
      #expect(abs(Machine.openDescriptors - descriptors) < 16)
      #expect(Machine.residentMemory - before < 6 << 20)
      #expect((during - before) / 2000 < 6 << 10, "\((during - before) / 2000) bytes a socket")
    }
  }
}
