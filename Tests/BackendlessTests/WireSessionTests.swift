import FerryCore
import FerryRuntime
import Testing

@testable import BackendlessProvider

@Suite struct WireSessionTests {
  private let start = Timestamp(milliseconds: 1_000_000)

  private func server(
    _ version: EngineVersion, _ transport: EngineServerSession.Transport = .polling, queueBytes: Int = 1000
  ) -> EngineServerSession {
    EngineServerSession(
      version: version, transport: transport, sid: "s",
      settings: EngineServerSession.Settings(payloadBytes: 500, queueBytes: queueBytes), now: start)
  }

  private func at(_ seconds: Int) -> Timestamp { start.advanced(by: .seconds(seconds)) }

  private let probe = EnginePacket(.ping, "probe")
  private let hello = EnginePacket(.message, "hello")

  // MARK: The server

  @Test func `the first poll is answered with the greeting`() {
    var four = server(.four)
    #expect(four.begin().isEmpty)
    #expect(four.poll(now: start) == [.answer([EnginePacket(.open, four.handshake.text)])])
    var three = server(.three)
    _ = three.begin()
    let greeting = [EnginePacket(.open, three.handshake.text), EnginePacket(.message, "0")]
    #expect(three.poll(now: start) == [.answer(greeting)])
    #expect(three.handshake.maxPayload == nil && four.handshake.maxPayload == 500)
  }

  @Test func `over a WebSocket the greeting is written at once`() {
    var session = server(.four, .webSocket)
    #expect(session.begin() == [.write(EnginePacket(.open, session.handshake.text))])
    #expect(!session.handshake.canUpgrade)
  }

  @Test func `a poll that waits is answered by what is said next`() {
    var session = server(.four)
    #expect(session.poll(now: start).isEmpty)
    #expect(session.send(hello) == [.answer([hello])])
    #expect(session.send(hello).isEmpty)
    #expect(session.poll(now: start) == [.answer([hello])])
  }

  @Test func `the upgrade frees the poll that waits and hands on what waits`() {
    var session = server(.four)
    _ = session.poll(now: start)
    #expect(
      session.receive(probe, over: .webSocket, now: start)
        == [.write(EnginePacket(.pong, "probe")), .answer([EnginePacket(.noop)])])
    #expect(session.poll(now: start) == [.answer([EnginePacket(.noop)])])
    #expect(session.send(hello).isEmpty)
    #expect(session.receive(hello, over: .polling, now: start) == [.deliver(.text("hello"))])
    #expect(session.receive(EnginePacket(.upgrade), over: .webSocket, now: start) == [.write(hello)])
    #expect(session.transport == .webSocket)
    #expect(session.send(hello) == [.write(hello)])
    #expect(session.poll(now: start) == [.answer([EnginePacket(.noop)])])
  }

  @Test func `an upgrade without a probe changes nothing`() {
    var session = server(.four)
    #expect(session.receive(EnginePacket(.upgrade), over: .webSocket, now: start).isEmpty)
    #expect(session.receive(EnginePacket(.upgrade), over: .polling, now: start).isEmpty)
    #expect(session.transport == .polling)
  }

  @Test func `a probe that leads to nothing is given up, and polling goes on`() {
    var session = server(.four)
    _ = session.receive(probe, over: .webSocket, now: start)
    #expect(session.nextDue == at(10))
    #expect(session.tick(now: at(10)) == [.closeSocket])
    #expect(session.socketClosed().isEmpty)
    #expect(session.poll(now: at(10)).isEmpty)
    #expect(session.send(hello) == [.answer([hello])])
  }

  @Test func `in version 4 the server asks, and a client that is silent is let go`() {
    var session = server(.four, .webSocket)
    #expect(session.nextDue == at(25))
    #expect(session.tick(now: at(24)).isEmpty)
    #expect(session.tick(now: at(25)) == [.write(EnginePacket(.ping))])
    #expect(session.receive(EnginePacket(.pong), over: .webSocket, now: at(26)).isEmpty)
    #expect(session.tick(now: at(50)) == [.write(EnginePacket(.ping))])
    #expect(session.tick(now: at(70)).isEmpty)
    #expect(session.tick(now: at(71)) == [.end(.pingTimeout)])
    #expect(session.nextDue == nil)
  }

  @Test func `in version 3 the client asks`() {
    var session = server(.three, .webSocket)
    #expect(session.nextDue == at(45))
    #expect(
      session.receive(EnginePacket(.ping, "x"), over: .webSocket, now: at(25)) == [.write(EnginePacket(.pong, "x"))])
    #expect(session.tick(now: at(45)).isEmpty)
    #expect(session.tick(now: at(70)) == [.end(.pingTimeout)])
  }

  @Test func `one answer holds what a body may hold`() {
    var session = server(.four, queueBytes: 100_000)
    let long = EnginePacket(.message, String(repeating: "x", count: 200))
    for _ in 0..<5 { _ = session.send(long) }
    #expect(session.poll(now: start) == [.answer([long, long])])
    let longest = EnginePacket(.message, String(repeating: "x", count: 2000))
    for _ in 0..<2 { _ = session.poll(now: start) }
    #expect(session.send(longest).isEmpty)
    #expect(session.poll(now: start) == [.answer([longest])], "a packet that is too long goes alone")
  }

  @Test func `a client that does not fetch what is said is let go`() {
    var session = server(.three)
    let long = EnginePacket(.message, String(repeating: "x", count: 400))
    #expect(session.send(long).isEmpty)
    #expect(session.send(long).isEmpty)
    #expect(session.send(long) == [.end(.tooSlow)])
    #expect(session.poll(now: start).isEmpty)
  }

  @Test func `a second poll beside the first ends the session`() {
    var session = server(.four)
    _ = session.poll(now: start)
    #expect(session.poll(now: start) == [.answer([EnginePacket(.close)]), .end(.pollTwice)])
    var lost = server(.four)
    _ = lost.poll(now: start)
    lost.pollLost()
    #expect(lost.poll(now: start).isEmpty)
  }

  @Test func `a client that closes frees its poll`() {
    var session = server(.four)
    _ = session.poll(now: start)
    #expect(
      session.receive(EnginePacket(.close), over: .polling, now: start)
        == [.answer([EnginePacket(.noop)]), .end(.closedByClient)])
    var socket = server(.four, .webSocket)
    #expect(socket.socketClosed() == [.end(.transportGone)])
    #expect(socket.socketClosed().isEmpty)
  }

  // MARK: The client

  private func opened(
    _ version: EngineVersion, _ transport: EngineServerSession.Transport = .polling, maxPayload: Int? = nil
  ) -> EngineClientSession {
    var client = EngineClientSession(version: version, transport: transport, now: start)
    let handshake = EngineHandshake(sid: "s", canUpgrade: transport == .polling, maxPayload: maxPayload)
    let actions = client.receive(EnginePacket(.open, handshake.text), over: transport, now: start)
    #expect(actions == (transport == .polling ? [.opened, .openSocket] : [.opened]))
    return client
  }

  @Test func `a client goes from polling to a WebSocket`() {
    var client = opened(.four, maxPayload: 1000)
    #expect(client.send(hello) == [.write(hello, over: .polling)])
    #expect(client.socketOpened() == [.write(probe, over: .webSocket)])
    #expect(client.mayPoll)
    #expect(client.receive(EnginePacket(.pong, "probe"), over: .webSocket, now: start) == [.endPolling])
    #expect(!client.mayPoll)
    #expect(client.send(hello).isEmpty)
    #expect(client.receive(hello, over: .polling, now: start) == [.deliver(.text("hello"))])
    #expect(
      client.pollingEnded() == [.write(EnginePacket(.upgrade), over: .webSocket), .write(hello, over: .webSocket)])
    #expect(client.transport == .webSocket)
    #expect(client.pollingFailed().isEmpty)
    #expect(client.socketClosed() == [.end(.transportGone)])
  }

  @Test func `a client that gets no WebSocket goes on polling`() {
    var client = opened(.four)
    #expect(client.socketClosed().isEmpty)
    #expect(client.mayPoll && client.send(hello) == [.write(hello, over: .polling)])
    var late = opened(.four)
    _ = late.socketOpened()
    _ = late.receive(EnginePacket(.pong, "probe"), over: .webSocket, now: start)
    _ = late.send(hello)
    #expect(late.socketClosed() == [.write(hello, over: .polling)])
    #expect(late.mayPoll && late.pollingEnded().isEmpty)
    #expect(late.pollingFailed() == [.end(.transportGone)])
  }

  @Test func `in version 4 the client answers, in version 3 it asks`() {
    var four = opened(.four, .webSocket, maxPayload: 1000)
    #expect(
      four.receive(EnginePacket(.ping), over: .webSocket, now: at(25))
        == [.write(EnginePacket(.pong), over: .webSocket)])
    #expect(four.nextDue == at(70))
    #expect(four.tick(now: at(69)).isEmpty)
    #expect(four.tick(now: at(70)) == [.end(.silence)])
    var three = opened(.three, .webSocket)
    #expect(three.nextDue == at(25))
    #expect(three.tick(now: at(25)) == [.write(EnginePacket(.ping), over: .webSocket)])
    #expect(three.receive(EnginePacket(.pong), over: .webSocket, now: at(26)).isEmpty)
    #expect(three.nextDue == at(50))
  }

  @Test func `an older server is known by its greeting, or by not asking`() {
    var greeted = opened(.four, .webSocket)
    #expect(greeted.receive(EnginePacket(.message, "0"), over: .webSocket, now: start) == [.deliver(.text("0"))])
    #expect(greeted.version == .three && greeted.nextDue == at(25))
    var silent = opened(.four, .webSocket)
    #expect(silent.nextDue == at(30))
    #expect(silent.tick(now: at(30)) == [.write(EnginePacket(.ping), over: .webSocket)])
    #expect(silent.version == .three)
    var newer = opened(.four, .webSocket, maxPayload: 1000)
    _ = newer.receive(EnginePacket(.message, "0"), over: .webSocket, now: start)
    #expect(newer.version == .four)
    var asked = opened(.four, .webSocket)
    _ = asked.receive(EnginePacket(.ping), over: .webSocket, now: at(25))
    #expect(asked.version == .four && asked.nextDue == at(70))
  }

  @Test func `what is to be said before the session stands is kept back`() {
    var client = EngineClientSession(version: .four, transport: .webSocket, now: start)
    #expect(client.send(hello).isEmpty)
    let greeting = EnginePacket(.open, EngineHandshake(sid: "s", canUpgrade: false).text)
    #expect(client.receive(greeting, over: .webSocket, now: start) == [.opened, .write(hello, over: .webSocket)])
  }

  @Test func `what is said before the session stands ends it when it is no greeting`() {
    var client = EngineClientSession(version: .four, transport: .webSocket, now: start)
    #expect(client.nextDue == nil)
    #expect(client.receive(EnginePacket(.open, "{}"), over: .webSocket, now: start) == [.end(.badPacket)])
    var twice = opened(.four, .webSocket)
    let again = EnginePacket(.open, EngineHandshake(sid: "t", canUpgrade: false).text)
    #expect(twice.receive(again, over: .webSocket, now: start) == [.end(.badPacket)])
    var closed = opened(.four, .webSocket)
    #expect(closed.receive(EnginePacket(.close), over: .webSocket, now: start) == [.end(.closedByServer)])
  }
}
