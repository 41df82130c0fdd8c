import FerryChat
import FerryCore
import FerryRuntime
import FoundationEssentials
import Testing

/// A folder with a chat service in it, which may be closed and opened again.
final class ChatFolder: Sendable {
  let path: String
  let clock: TestClock
  let limits: ChatLimits

  init(clock: TestClock = TestClock(), limits: ChatLimits = ChatLimits()) throws {
    path = FileManager.default.temporaryDirectory.path + "/ferry-chat-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    self.clock = clock
    self.limits = limits
  }

  func open() throws(FerryError) -> ChatService {
    try ChatService(path: path + "/chat.db", files: path + "/files", clock: clock, logger: .silent, limits: limits)
  }

  func remove() { try? FileManager.default.removeItem(atPath: path) }

  func fileNames() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/files").filter { $0 != "unfinished" }
  }

  func unfinished() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/files/unfinished")
  }
}

/// Runs `body` with a new service in a temporary folder.
func withChat(
  limits: ChatLimits = ChatLimits(), _ body: (ChatService, ChatFolder) async throws -> Void
) async throws {
  let folder = try ChatFolder(limits: limits)
  defer { folder.remove() }
  let chat = try folder.open()
  defer { chat.close() }
  try await body(chat, folder)
}

/// A clock that stands still until it is told otherwise.
final class TestClock: FerryClock {
  private struct State {
    var now: Int64 = 1_796_000_000_000
    var sleepers: [UInt64: (due: Int64, continuation: CheckedContinuation<Bool, Never>)] = [:]
    var cancelled: Set<UInt64> = []
    var next: UInt64 = 0
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Locked(State())

  func now() -> Timestamp { Timestamp(milliseconds: state.withLock { $0.now }) }

  func sleep(for duration: Duration) async throws(CancellationError) {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    let slept = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let watchers = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
          if state.cancelled.contains(id) { return nil }
          state.sleepers[id] = (state.now + duration.milliseconds, continuation)
          defer { state.watchers = [] }
          return state.watchers
        }
        guard let watchers else { return continuation.resume(returning: false) }
        for watcher in watchers { watcher.resume() }
      }
    } onCancel: {
      let sleeper = state.withLock { state in
        state.cancelled.insert(id)
        return state.sleepers.removeValue(forKey: id)
      }
      sleeper?.continuation.resume(returning: false)
    }
    if !slept { throw CancellationError() }
  }

  /// Returns once somebody sleeps.
  func waitForSleeper() async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if !state.sleepers.isEmpty { return true }
        state.watchers.append(continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func advance(by duration: Duration) {
    let due = state.withLock { state in
      state.now += duration.milliseconds
      let now = state.now
      let due = state.sleepers.filter { $0.value.due <= now }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume(returning: true) }
  }
}

let lobby: ChannelID = "lobby"
let ada = Author(id: "ada", name: "Ada")
let bob = Author(id: "bob", name: "Bob")
let asAda = Caller(user: "ada", moderates: false)
let asBob = Caller(user: "bob", moderates: false)
let asModerator = Caller(user: "mo", moderates: true)

func draft(_ text: String, _ key: String? = nil, from author: Author? = ada) -> Draft {
  Draft(clientID: key.map { SendKey($0) }, author: author, text: text)
}

/// Fails unless `body` throws a `FerryError` of this code.
func expect(
  _ code: FerryError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async {
  do {
    try await body()
    Issue.record("nothing was thrown, \(code.label) was expected", sourceLocation: sourceLocation)
  } catch {
    #expect((error as? FerryError)?.code == code, "\(error)", sourceLocation: sourceLocation)
  }
}

/// Reads until `count` events have come, typing left out.
func take(_ count: Int, from reader: FeedReader) async throws -> [LoggedEvent] {
  var events: [LoggedEvent] = []
  while events.count < count {
    let items = try await reader.next()
    if items.isEmpty { break }
    for case .event(let event) in items { events.append(event) }
  }
  return events
}

/// Pieces as a stream; with `failsAtEnd` the connection is cut after the last.
func stream(
  _ pieces: [[UInt8]], size: Int64? = nil, failsAtEnd: Bool = false
) -> ByteStream {
  let left = Locked(pieces[...])
  return ByteStream(size: size) { () async throws(FerryError) in
    let piece = left.withLock { $0.popFirst() }
    if piece == nil, failsAtEnd { throw FerryError(.unavailable, "The connection was cut.") }
    return piece
  }
}
