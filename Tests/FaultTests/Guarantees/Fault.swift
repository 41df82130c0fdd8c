/// What is done to a relay and its services.
enum Fault: String, CaseIterable, Sendable {
  case lostAnswer = "answer lost after acting"
  case refused = "connection refused"
  case torn = "request cut mid-body"
  case cut = "connections cut"
  case rateLimited = "429 with Retry-After"
  case failing = "503"
  case slow = "1 s slower"
  case repeated = "events and webhooks twice"
  case swapped = "events and webhooks reordered"
  case delayed = "events and webhooks delayed"
  case dropped = "webhooks dropped, sockets cut"
  case garbage = "garbage instead of an answer"
  case clock = "clock jumps"
  case restart = "service restarted"
  case outage3 = "service down for 3 s"
  case outage30 = "service down for 30 s"
  case failpoint = "kill -9 between two durable steps"
  case kill = "kill -9 at any time"
  case disk = "disk full"
  case tornLog = "torn write-ahead log"

  /// Done to a relay in a process of its own, where both services can be reached from there.
  var needsProcess: Bool {
    switch self {
    case .failpoint, .kill, .disk, .tornLog: true
    default: false
    }
  }

  /// Whether it can be had with a service in memory, which a relay of its own cannot reach.
  var isForMemory: Bool { self != .failpoint && self != .disk }

  /// Most runs last for a few seconds.
  var isLong: Bool { self == .outage30 }

  /// How often it strikes in a run: more often when a strike is one fault, and once when it takes long.
  var rounds: Int {
    switch self {
    case .outage30, .slow: 1
    case .outage3: 2
    case .refused, .cut, .dropped, .clock, .restart: 6
    default: 4
    }
  }
}
