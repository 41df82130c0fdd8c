import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Glibc
import Testing

@testable import BackendlessProvider

/// The adapter against servers of both generations of python-socketio.
@Suite(.timeLimit(.minutes(2))) struct AdapterPeerTests {
  private static let root = #filePath.split(separator: "/").dropLast(3).reduce("") { "\($0)/\($1)" }

  private static func python(_ version: EngineVersion) -> String {
    "\(root)/\(version == .four ? ".venv" : ".venv-eio3")/bin/python"
  }

  static var ways: [(EngineVersion, BackendlessAdapter.Settings.Transport)] {
    let all: [(EngineVersion, BackendlessAdapter.Settings.Transport)] = [
      (.four, .auto), (.four, .websocket), (.four, .polling), (.three, .auto), (.three, .polling),
    ]
    return all.filter { hasLibrary($0.0) }
  }

  /// Whether the virtual environment was made: tools/setup python makes it.
  private static func hasLibrary(_ version: EngineVersion) -> Bool {
    access("\(root)/\(version == .four ? ".venv" : ".venv-eio3")/requirements.txt", F_OK) == 0
  }

  @Test(.enabled(if: !ways.isEmpty, "needs .venv and .venv-eio3: make test makes them"), arguments: ways)
  func `the library's server is understood`(
    version: EngineVersion, transport: BackendlessAdapter.Settings.Transport
  ) async throws {
    let service = try ChildProcess(
      Self.python(version), ["\(Self.root)/Tests/peers/backendless/service.py", "\(version.rawValue)"])
    while !service.output.contains("\n") {
      guard service.isRunning else { throw FerryError(.unavailable, service.errors) }
      try await SystemClock().sleep(for: .milliseconds(20))
    }
    let port = service.output.prefix { $0 != "\n" }
    let loop = try LoopExecutor(name: "peer-test")
    defer { loop.stop() }
    let client = HTTPClient(loop: loop, logger: .silent)
    func adapter(key: String = "KEY") -> BackendlessAdapter {
      var settings = BackendlessAdapter.Settings(server: "http://127.0.0.1:\(port)", appID: "APPID", key: Secret(key))
      settings.table = nil
      settings.transport = transport
      settings.commands.read = "MESSAGE_READ"
      return BackendlessAdapter(settings: settings, client: client, logger: .silent)
    }
    try await talk(adapter())
    let error = await #expect(throws: FerryError.self) {
      try await adapter(key: "stolen").run([FerryCore.Subscription(channel: "room")], into: RecordingInbox())
    }
    #expect(error?.code == .badCredentials)
  }

  private func talk(_ adapter: BackendlessAdapter) async throws {
    let inbox = RecordingInbox()
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await adapter.run([FerryCore.Subscription(channel: "room")], into: inbox) }
      group.addTask {
        await inbox.connected()
        let message = AdapterRig.message("héllo 👩‍👩‍👧 \u{1e}")
        let id = try await adapter.post(message, to: "room")
        let heard = await inbox.message(message.text)
        #expect(heard?.id == id)
        #expect(heard?.stamp == message.stamp)
        try await adapter.setTyping(Typing(channel: "room", by: AdapterRig.ann, on: true))
        #expect(await inbox.wait { $0.typing.first }?.by == AdapterRig.ann)
        try await adapter.mark(ReadMark(upTo: id, by: AdapterRig.ann, state: .read), in: "room")
        #expect(await inbox.story(2).last == "r\(id)")
        // Past several heartbeats of either kind: the service wants them every second.
        _ = try await adapter.api.call(
          "POST", "/messaging/room", ["message": "after a silence", "delay": 4], doing: "have it published later")
        _ = await inbox.message("after a silence")
        #expect(inbox.now.connections.count { $0.phase == .connected } == 1)
      }
      try await group.next()
      group.cancelAll()
    }
  }
}
