import FerryCore
import FerryRuntime

/// One connection to Twilio's realtime socket, decided in a value: what a packet means and what is to be done about it.
///
/// The socket is what Twilio's own client libraries use, and no public contract. Ferry uses it for typing alone.
struct RealtimeSession: Sendable {
  enum Action: Sendable, Hashable {
    case send(TwilsockPacket)
    /// The service has let us in.
    case ready
    /// The answer to a request of ours.
    case reply(id: String, TwilsockPacket)
    case typing(conversation: String, identity: String, seconds: Int64)
    /// The token ends soon: another one is wanted.
    case renew
    case end(Ending)
  }

  /// Why a connection is over.
  struct Ending: Hashable, Sendable {
    enum Advice: Hashable, Sendable {
      case reconnect
      /// Not before so many milliseconds.
      case later(Int64)
      /// The token is not accepted; another one may be.
      case denied
    }
    var reason: String
    var advice: Advice
  }

  static let typingIndicator = "twilio.ipmsg.typing_indicator"

  private(set) var isReady = false
  private var initID: String?
  private var updateID: String?
  private var last = 0
  /// Makes ids unique among connections.
  private let salt: String

  init(salt: String) { self.salt = salt }

  // MARK: What we send

  private mutating func nextID() -> String {
    last += 1
    let digits = String(last, radix: 16)
    let tail = String(repeating: "0", count: max(12 - digits.count, 0)) + digits
    return "TM\(salt)-\(tail)"
  }

  mutating func begin(token: String) -> TwilsockPacket {
    let id = nextID()
    initID = id
    return TwilsockPacket(header: [
      "id": .string(id), "method": "init", "token": .string(token), "continuation_token": .null,
      "metadata": ["ver": "1.0", "type": "conversations", "sdk": "ferry", "sdkv": "1.0"],
      "registrations": [
        [
          "product": "ip_messaging", "type": "ers", "notification_protocol_version": 0,
          "message_types": [.string(Self.typingIndicator)],
        ]
      ],
      "tweaks": .null, "capabilities": ["client_update"],
    ])
  }

  mutating func renew(token: String) -> TwilsockPacket {
    let id = nextID()
    updateID = id
    return TwilsockPacket(header: ["id": .string(id), "method": "update", "token": .string(token)])
  }

  /// A request to a service behind the socket, and the id under which its answer comes.
  mutating func request(
    _ method: String, host: String, path: String, form: Form = []
  ) -> (id: String, packet: TwilsockPacket) {
    let id = nextID()
    let type = method == "GET" ? "application/json" : "application/x-www-form-urlencoded"
    let packet = TwilsockPacket(
      header: [
        "id": .string(id), "method": "message", "active_grant": "ip_messaging", "payload_type": .string(type),
        "http_request": [
          "host": .string(host), "path": .string(path), "method": .string(method), "params": [:],
          "headers": ["Content-Type": .string(type)],
        ],
      ],
      payload: Array(form.encoded.utf8))
    return (id, packet)
  }

  // MARK: What we hear

  mutating func receive(_ bytes: [UInt8]) -> [Action] {
    guard let packet = try? TwilsockPacket(bytes) else { return [] }
    switch packet.method {
    case "reply": return reply(packet)
    case "notification": return confirm(packet) + notification(packet)
    case "client_update":
      let isRenewal = packet.header["client_update_type"]?.string == "token_about_to_expire"
      return confirm(packet) + (isRenewal ? [.renew] : [])
    case "close": return confirm(packet) + [.end(closing(packet))]
    case nil: return []
    default: return confirm(packet)
    }
  }

  /// Every packet that is no reply is confirmed, `ping` and `close` included.
  private func confirm(_ packet: TwilsockPacket) -> [Action] {
    guard let id = packet.id else { return [] }
    return [
      .send(
        TwilsockPacket(header: [
          "id": .string(id), "method": "reply", "payload_type": "application/json",
          "status": ["code": 200, "status": "OK"],
        ]))
    ]
  }

  private mutating func reply(_ packet: TwilsockPacket) -> [Action] {
    guard let id = packet.id else { return [] }
    let code = Self.code(packet)
    switch id {
    case initID:
      initID = nil
      guard (200...299).contains(code) else { return [.end(refused(packet, code))] }
      isReady = true
      return [.ready]
    case updateID:
      updateID = nil
      return (200...299).contains(code) ? [] : [.end(refused(packet, code))]
    default: return [.reply(id: id, packet)]
    }
  }

  private func refused(_ packet: TwilsockPacket, _ code: Int64) -> Ending {
    let number = packet.header["status"]?["errorCode"]?.text.map { ", error \($0)" } ?? ""
    let reason = "the realtime socket refused the token (\(code)\(number))"
    return switch code {
    case 401, 403: Ending(reason: reason, advice: .denied)
    case 429: Ending(reason: "the realtime socket asks to come back later", advice: .later(Self.backOff(packet)))
    default: Ending(reason: reason, advice: .reconnect)
    }
  }

  private func closing(_ packet: TwilsockPacket) -> Ending {
    let code = Self.code(packet)
    let reason = "the realtime socket was closed (\(code))"
    return switch code {
    case 401, 406, 417: Ending(reason: reason, advice: .denied)
    case 308: Ending(reason: reason, advice: .later(Self.backOff(packet)))
    default: Ending(reason: reason, advice: .reconnect)
    }
  }

  private func notification(_ packet: TwilsockPacket) -> [Action] {
    guard packet.header["message_type"]?.string == Self.typingIndicator, let payload = packet.json,
      let conversation = payload["channel_sid"]?.string, let identity = payload["identity"]?.text
    else { return [] }
    let seconds = payload["typing_timeout"]?.integer ?? 6
    return [.typing(conversation: conversation, identity: identity, seconds: min(max(seconds, 1), 60))]
  }

  private static func code(_ packet: TwilsockPacket) -> Int64 { packet.header["status"]?["code"]?.integer ?? 0 }

  private static func backOff(_ packet: TwilsockPacket) -> Int64 {
    min(max(packet.json?["backoff_policy"]?["reconnect_min_ms"]?.integer ?? 0, 0), 600_000)
  }
}
