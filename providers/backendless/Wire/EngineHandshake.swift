package import FerryCore
import FerryRuntime

/// What the first packet of a connection says, as JSON.
package struct EngineHandshake: Hashable, Sendable {
  package var sid: String
  package var canUpgrade: Bool
  package var pingInterval: Duration
  package var pingTimeout: Duration
  /// The largest body the server takes; newer servers of version 4 tell.
  package var maxPayload: Int?

  package init(
    sid: String, canUpgrade: Bool, pingInterval: Duration = .seconds(25), pingTimeout: Duration = .seconds(20),
    maxPayload: Int? = nil
  ) {
    self.sid = sid
    self.canUpgrade = canUpgrade
    self.pingInterval = pingInterval
    self.pingTimeout = pingTimeout
    self.maxPayload = maxPayload
  }

  /// The text of an `open` packet. Times out of all reason are brought back to it, so that no server can make its
  /// client ask all the time, or never.
  package init(_ text: String) throws(FerryError) {
    guard let value = JSONText.value(text), let sid = value["sid"]?.string, !sid.isEmpty, sid.utf8.count <= 256 else {
      throw FerryError(.badData, "The server's first packet names no session.")
    }
    self.init(
      sid: sid, canUpgrade: value["upgrades"]?.array?.contains("websocket") ?? false,
      pingInterval: Self.time(value["pingInterval"], 25_000), pingTimeout: Self.time(value["pingTimeout"], 20_000),
      maxPayload: value["maxPayload"]?.integer.flatMap { $0 > 0 ? Int(clamping: $0) : nil })
  }

  private static func time(_ value: JSONValue?, _ usual: Int64) -> Duration {
    .milliseconds(min(max(value?.integer ?? usual, 100), 600_000))
  }

  package var text: String {
    // In the order in which the services write it, and clients' logs show it.
    let upgrades = canUpgrade ? #"["websocket"]"# : "[]"
    let limit = maxPayload.map { ",\"maxPayload\":\($0)" } ?? ""
    return #"{"sid":\#(JSONText.quoted(sid)),"upgrades":\#(upgrades),"#
      + #""pingInterval":\#(pingInterval.milliseconds),"pingTimeout":\#(pingTimeout.milliseconds)\#(limit)}"#
  }
}
