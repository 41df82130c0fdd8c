import FerryCore
import FerryStorage

// What goes over the wire under `/api/`. Times are in milliseconds since 1970.

extension ConsoleAPI {
  struct Session: Encodable {
    let version: String
    let mayAct: Bool
  }

  /// What is to be done with dead letters: those named, or all that fit up to the newest that was known.
  struct Decision: Decodable {
    var ids: [Int64]?
    var newest: Int64?
    var bridge: BridgeName?
    var to: Address?
    var text: String?
  }

  struct TestWish: Decodable {
    let bridge: BridgeName
    let from: Address
  }

  struct DeadPage: Encodable {
    /// How many fit in all, and the newest of them.
    let count: Int
    let newest: Int64
    let letters: [DeadLine]
  }

  struct DeadLine: Encodable {
    let id: Int64
    let bridge: BridgeName
    let from: Address
    let to: Address
    let key: EventKey
    let kind: String
    let message: MessageID?
    let attempts: Int
    let reason: String
    let died: Int64
    let accepted: Int64

    init(_ letter: DeadLetterDetail) {
      id = letter.id
      bridge = letter.lane.bridge
      from = letter.source
      to = letter.lane.destination
      key = letter.key
      kind = letter.kind
      message = letter.message
      attempts = letter.attempts
      reason = letter.reason
      died = letter.died.milliseconds
      accepted = letter.accepted.milliseconds
    }
  }

  struct EventLine: Encodable {
    let id: Int64
    let from: Address
    let kind: String
    let message: MessageID?
    let key: EventKey
    let accepted: Int64
    let deliveries: Int
    let settled: Int
    let dead: Int

    init(_ event: EventSummary) {
      id = event.id
      from = event.source
      kind = event.kind
      message = event.message
      key = event.key
      accepted = event.accepted.milliseconds
      deliveries = event.deliveries
      settled = event.settled
      dead = event.dead
    }
  }

  /// What people wrote, told only when somebody asks for it.
  struct BodyLine: Encodable {
    let author: String?
    let text: String?
    let attachments: [String]

    init(_ event: Event) {
      switch event.kind {
      case .posted(let message), .edited(let message):
        author = message.author.name
        // An answer is bounded, whatever was written.
        text = String(decoding: message.text.utf8.prefix(20_000), as: UTF8.self)
        attachments = message.attachments.prefix(20).map { String($0.name.prefix(200)) }
      case .deleted(let deletion):
        author = deletion.by?.name
        text = nil
        attachments = []
      case .joined(let membership), .left(let membership):
        author = membership.member.name
        text = nil
        attachments = []
      case .read(let mark):
        author = mark.by?.name
        text = nil
        attachments = []
      case .reacted(let reaction):
        author = reaction.by.name
        text = reaction.emoji
        attachments = []
      }
    }
  }
}
