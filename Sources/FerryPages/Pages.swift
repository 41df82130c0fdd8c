import FerryRuntime
package import FerryTransport

/// The pages that people look at: the chat page on every service's port, and the start page that shows them side by
/// side. Their files are part of the program.
///
/// What they do is in their own modules; here is only what a browser must be told about them.
package final class Pages: Sendable {
  /// One service on the start page.
  package struct Pane: Sendable, Hashable {
    package var title: String
    package var port: UInt16
    package var room: String
    /// With which the pane signs in by itself; nil lets people do it.
    package var token: String?

    package init(title: String, port: UInt16, room: String, token: String? = nil) {
      self.title = title
      self.port = port
      self.room = room
      self.token = token
    }
  }

  private struct Start {
    var port: UInt16
    var panes: [Pane]
  }

  private let start = Locked<Start?>(nil)

  package init() {}

  /// Where the start page is, and what it shows. Called once the ports are known.
  package func show(_ panes: [Pane], onPort port: UInt16) {
    start.withLock { $0 = Start(port: port, panes: panes) }
  }

  /// Answers what asks for a page; nil when it asks for something else. The start page is on one port only.
  /// `joinNotice`: the text by which the service's apps say in a message that somebody has come.
  package func answer(_ request: HTTPRequest, withStart: Bool, joinNotice: String? = nil) -> HTTPResponse? {
    let path = request.path
    let isStart = path == "/" || path.hasPrefix("/start/")
    guard path == "/chat" || path.hasPrefix("/chat/") || (isStart && withStart) else { return nil }
    guard request.method == "GET" || request.method == "HEAD" else {
      var refusal = HTTPResponse.text("Pages are only read.\n", status: 405)
      refusal.headers.set("Allow", "GET, HEAD")
      return refusal
    }
    let origin = Origin(request)
    let start = start.withLock { $0 }
    if path == "/start/panes.json" { return panes(start, for: request, origin) }
    guard let known = PageFile.all[path] else { return .text("There is no such page.\n", status: 404) }
    let file = joinNotice.map(known.withJoinNotice) ?? known
    let policy =
      isStart
      ? ContentPolicy.start(frames: (start?.panes ?? []).map { origin.onPort($0.port) })
      : ContentPolicy.chat(ancestor: start.map { origin.onPort($0.port) })
    return file.answer(request, policy: policy)
  }

  /// The panes, with their tokens for a browser on this machine alone: the name it used is checked too, so that no
  /// page of another site can have the name resolved to here and read them.
  private func panes(_ start: Start?, for request: HTTPRequest, _ origin: Origin) -> HTTPResponse {
    let mayHaveTokens = Self.isThisMachine(request.peer) && origin.isLoopback
    let panes = (start?.panes ?? []).map { pane in
      PaneLine(
        title: pane.title, url: origin.onPort(pane.port), room: pane.room, token: mayHaveTokens ? pane.token : nil)
    }
    var response = HTTPResponse.json(["panes": panes])
    response.headers.set("Cache-Control", "no-store")
    response.headers.set("X-Content-Type-Options", "nosniff")
    return response
  }

  private static func isThisMachine(_ peer: String) -> Bool {
    ["127.", "::ffff:127."].contains { peer.hasPrefix($0) } || peer == "::1"
  }

  private struct PaneLine: Encodable {
    let title: String
    let url: String
    let room: String
    let token: String?
  }
}

/// Scheme and host as the browser named them. Other services of this program are on the same host.
struct Origin {
  private let scheme: String
  private let host: String

  init(_ request: HTTPRequest) {
    scheme = request.isSecure ? "https" : "http"
    let named = request.headers["Host"] ?? ""
    var host = named[...]
    if let colon = host.lastIndex(of: ":"), host[colon...].dropFirst().allSatisfy({ ("0"..."9").contains($0) }) {
      host = host[..<colon]
    }
    // It goes into a policy: what is no name or address is left out of it.
    let isName = !host.isEmpty && host.utf8.allSatisfy(Self.belongsInName)
    self.host = isName ? String(host) : "127.0.0.1"
  }

  func onPort(_ port: UInt16) -> String { "\(scheme)://\(host):\(port)" }

  var isLoopback: Bool { ["127.0.0.1", "localhost", "[::1]"].contains(host.lowercased()) }

  private static func belongsInName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
      UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: ":"):
      true
    default: false
    }
  }
}
