import FerryCore
import FerryRuntime

/// SIDs that are worked out from the chat's own ids, both ways, so that whatever anybody posts has them at once and no
/// table can get out of step. Their last digits are a check keyed by the account, which makes made-up ones fail.
struct DerivedSID: Sendable {
  let key: String

  init(accountSID: String) { key = accountSID }

  /// Of a message.
  func message(_ id: MessageID) -> String {
    let number = Self.digits(Int64(id.rawValue) ?? 0)
    return "\(SID.Kind.message.rawValue)\(number)\(check("message", number))"
  }

  /// Nil for what no message can have.
  func messageID(_ sid: String) -> MessageID? {
    let sid = sid.lowercasedDigits
    guard SID.isOne(sid, of: .message), let number = Int64(sid.dropFirst(2).prefix(16), radix: 16), number > 0,
      Crypto.areEqual(sid, message(MessageID(String(number))))
    else { return nil }
    return MessageID(String(number))
  }

  /// Of an attachment that did not come in through the media service.
  func media(_ id: MessageID, _ index: Int) -> String {
    let place = Self.digits(Int64(id.rawValue) ?? 0) + Self.digits(Int64(index)).suffix(4)
    return "\(SID.Kind.media.rawValue)\(place)\(check("media", place).prefix(12))"
  }

  func mediaPlace(_ sid: String) -> (id: MessageID, index: Int)? {
    let sid = sid.lowercasedDigits
    guard SID.isOne(sid, of: .media), let number = Int64(sid.dropFirst(2).prefix(16), radix: 16), number > 0,
      let index = Int(sid.dropFirst(18).prefix(4), radix: 16)
    else { return nil }
    let id = MessageID(String(number))
    return Crypto.areEqual(sid, media(id, index)) ? (id, index) : nil
  }

  private func check(_ kind: String, _ text: String) -> String {
    String(Crypto.hex(Crypto.hmac(.sha256, key: key.utf8, "\(kind) \(text)".utf8)).prefix(16))
  }

  private static func digits(_ number: Int64) -> String {
    let text = String(UInt64(bitPattern: number), radix: 16)
    return String(repeating: "0", count: 16 - text.utf8.count) + text
  }
}

extension String {
  /// A SID with its hexadecimal digits in lower case: Twilio takes either.
  fileprivate var lowercasedDigits: String { String(prefix(2)) + dropFirst(2).lowercased() }
}
