import FerryCore
import FerryRuntime
import FerryTransport

/// The tasks of a session: one that polls, one that reads the WebSocket, one that writes.
extension EngineLink {
  // MARK: Polling

  func poll() async {
    await take(first, over: .polling)
    while !Task.isCancelled {
      let (mayPoll, isDone, sid, version) = state.withLock { state in
        let session = state.session
        return (
          session.mayPoll, session.isEnded || session.transport == .webSocket, session.handshake?.sid, session.version
        )
      }
      if isDone { return }
      guard let sid else { return await perform { $0.receivedRubbish() } }
      guard mayPoll else {
        // About to go over to the WebSocket, once nothing is being posted.
        await waitUntilWritten()
        await perform { $0.pollingEnded() }
        continue
      }
      await pollOnce(place.url(version, .polling, sid: sid), version)
    }
  }

  private func pollOnce(_ url: String, _ version: EngineVersion) async {
    do throws(FerryError) {
      let wait = state.withLock { $0.session.handshake.map { $0.pingInterval + $0.pingTimeout } } ?? .seconds(45)
      let response = try await client.send(ClientRequest(url: url, deadline: wait + .seconds(30)))
      let body = try await response.collect(upTo: Self.payload.bytes)
      guard response.isSuccess else {
        fail("the server refused to go on with status \(response.status)")
        return await perform { $0.pollingFailed() }
      }
      await take(try EnginePayload.decode(body, version: version, limits: Self.payload), over: .polling)
    } catch {
      guard !Task.isCancelled else { return }
      fail(error.message)
      await perform { error.code == .badData || error.code == .tooLarge ? $0.receivedRubbish() : $0.pollingFailed() }
    }
  }

  private func take(_ packets: [EnginePacket], over transport: EngineClientSession.Transport) async {
    for packet in packets {
      let now = clock.now()
      await perform { $0.receive(packet, over: transport, now: now) }
    }
  }

  // MARK: The WebSocket

  /// Goes over to a WebSocket where the server offers one. Without it the session goes on polling.
  func upgrade() async {
    guard await socketWanted.next() != nil else { return }
    let (sid, version) = state.withLock { ($0.session.handshake?.sid, $0.session.version) }
    guard let socket = try? await Self.openSocket(place.url(version, .webSocket, sid: sid), client) else {
      return await perform { $0.socketClosed() }
    }
    state.withLock { $0.socket = socket }
    await perform { $0.socketOpened() }
    // A way that lets a WebSocket be opened and nothing through must not keep the session waiting.
    await read(socket, closingAfter: Self.probeDeadline) { self.transport == .polling }
  }

  func readFirstSocket() async {
    guard let socket = state.withLock({ $0.socket }) else { return }
    await read(socket, closingAfter: Self.openDeadline) {
      let isSilent = self.state.withLock { $0.session.handshake == nil }
      if isSilent { self.fail("the server does not greet") }
      return isSilent
    }
  }

  /// Reads to the end, and closes the socket when something has not happened in time.
  private func read(
    _ socket: WebSocket, closingAfter deadline: Duration, if isLate: @escaping @Sendable () -> Bool
  ) async {
    await withTaskGroup(of: Bool.self) { group in
      group.addTask {
        await self.read(socket)
        return true
      }
      group.addTask {
        guard (try? await self.clock.sleep(for: deadline)) != nil else { return false }
        if isLate() { socket.close() }
        return false
      }
      while let isRead = await group.next(), !isRead {}
      group.cancelAll()
    }
  }

  private func read(_ socket: WebSocket) async {
    while let message = await socket.next() {
      let version = version
      let packet: EnginePacket? =
        switch message {
        case .text(let text): try? EnginePacket(text: text, version: version)
        case .binary(let bytes): try? EnginePacket(frame: bytes, version: version)
        }
      guard let packet else {
        await perform { $0.receivedRubbish() }
        return
      }
      await take([packet], over: .webSocket)
    }
    guard !Task.isCancelled else { return }
    await perform { $0.socketClosed() }
  }

  // MARK: Writing

  func write() async {
    while await writing.next() != nil {
      while let batch = takeBatch() {
        switch batch {
        case .mark(let mark): mark.finish()
        case .socket(let texts):
          guard let socket = state.withLock({ $0.socket }) else { continue }
          for text in texts { _ = await socket.sendWaiting(text) }
        case .post(let packets, let sid, let version): await post(packets, sid, version)
        }
      }
    }
  }

  private enum Batch: Sendable {
    case mark(BoundedChannel<Void>)
    case socket([String])
    case post([EnginePacket], sid: String, EngineVersion)
  }

  /// What is first in line, with what follows over the same transport as far as it fits into one body.
  private func takeBatch() -> Batch? {
    state.withLock { state in
      guard let first = state.outgoing.first else { return nil }
      guard case .packet(_, let transport) = first else {
        state.outgoing.removeFirst()
        if case .mark(let mark) = first { return .mark(mark) }
        return nil
      }
      let limit = min(state.session.handshake?.maxPayload ?? 100_000, 1_000_000)
      var packets: [EnginePacket] = []
      var bytes = 0
      for case .packet(let packet, transport) in state.outgoing.prefix(while: { $0.isPacket(over: transport) }) {
        bytes += packet.text.utf8.count + 16
        if !packets.isEmpty, bytes > limit { break }
        packets.append(packet)
      }
      state.outgoing.removeFirst(packets.count)
      let version = state.session.version
      guard transport == .polling else { return .socket(packets.map { $0.encoded(version) }) }
      return .post(packets, sid: state.session.handshake?.sid ?? "", version)
    }
  }

  private func post(_ packets: [EnginePacket], _ sid: String, _ version: EngineVersion) async {
    let body = EnginePayload.encode(packets, version: version)
    let request = ClientRequest(
      method: "POST", url: place.url(version, .polling, sid: sid),
      headers: ["Content-Type": "text/plain;charset=UTF-8"],
      body: .bytes(Array(body.utf8)), deadline: Self.postDeadline)
    do throws(FerryError) {
      let response = try await client.send(request)
      _ = try? await response.collect(upTo: 1 << 16)
      if response.isSuccess { return }
      fail("the server refused what was sent with status \(response.status)")
    } catch {
      if Task.isCancelled { return }
      fail(error.message)
    }
    await perform { $0.pollingFailed() }
  }

  func waitUntilWritten() async {
    let mark = BoundedChannel<Void>(capacity: 1)
    state.withLock { $0.outgoing.append(.mark(mark)) }
    _ = writing.offer(())
    _ = await mark.next()
  }
}

extension EngineLink.Outgoing {
  func isPacket(over wanted: EngineClientSession.Transport) -> Bool {
    if case .packet(_, let transport) = self { transport == wanted } else { false }
  }
}
