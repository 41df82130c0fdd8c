import FerryRuntime

/// Twilio's identifiers: two letters that say of what, and 32 hexadecimal digits.
package enum SID {
  /// What a SID names, by its first letters.
  package enum Kind: String, Sendable, CaseIterable {
    case account = "AC"
    case apiKey = "SK"
    case service = "IS"
    case conversation = "CH"
    case participant = "MB"
    case message = "IM"
    case user = "US"
    case role = "RL"
    case webhook = "WH"
    case media = "ME"
    case deliveryReceipt = "DY"
    case messagingService = "MG"
    case contentTemplate = "HX"
    case channelMessage = "SM"
    case request = "RQ"
  }

  private static let digits = 32

  /// A new one that no other has.
  package static func make(_ kind: Kind) -> String { kind.rawValue + Crypto.randomHex(bytes: digits / 2) }

  /// Whether the text is a SID of that kind. Digits of either case are taken, as Twilio's own patterns do.
  package static func isOne(_ text: String, of kind: Kind) -> Bool {
    text.utf8.count == digits + 2 && text.hasPrefix(kind.rawValue)
      && text.utf8.dropFirst(2).allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
          UInt8(ascii: "A")...UInt8(ascii: "F"):
          true
        default: false
        }
      }
  }

}
