package import FerryCore
import FerryRuntime

/// The stamps and keys of what an import writes: the same on every run.
package enum ImportStamps {
  /// Stands where a relay's stamp has its bridge.
  package static let bridge: BridgeName = "import"

  /// The stamp of a message that bears none yet.
  static func own(_ id: MessageID, from source: Address) -> Stamp {
    Stamp(bridge: bridge, origin: source, id: id)
  }

  /// What a message of the source brings with it, so that after several moves its first origin is still known. Nil when
  /// there is none, or it would be taken for that of another message of this source.
  static func brought(_ record: MessageRecord, from source: Address) -> Stamp? {
    guard let stamp = record.message.stamp, stamp.origin != source else { return nil }
    return Stamp(bridge: bridge, origin: stamp.origin, id: stamp.id, part: stamp.part)
  }

  static func part(_ number: Int, of stamp: Stamp) -> Stamp {
    // A message that is a part itself keeps its number as long as it is not split further.
    var stamp = stamp
    if number != 0 { stamp.part = number }
    return stamp
  }

  /// The key of an item that is no message.
  static func key(_ kind: String, _ words: [String], from source: Address) -> SendKey {
    let plain = ([kind] + words).map { $0.replacing("|", with: "\\|") }.joined(separator: "|")
    let key = "\(bridge)|\(source)|\(plain)"
    guard key.utf8.count > 200 else { return SendKey(key) }
    return SendKey("\(bridge)|\(kind)|\(Crypto.hex(Crypto.digest(.sha256, of: key.utf8)))")
  }

  /// What a reader sees of a message, as a number that differs when it does.
  static func hash(_ record: MessageRecord) -> Int64 {
    // FNV-1a: quick, and no attacker gains by a collision but an edit of their own that is not copied.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    func add(_ text: String) {
      var text = text
      text.withUTF8 { bytes in for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 } }
      hash = (hash ^ 0xff) &* 0x100_0000_01b3
    }
    let message = record.message
    add(message.text)
    add(message.author.name)
    add(message.format.rawValue)
    add(message.replyTo?.rawValue ?? "")
    for (index, attachment) in message.attachments.enumerated() {
      add(attachment.name)
      add(attachment.sha256 ?? attachment.size.map { String($0) } ?? "")
      add(record.file(at: index).status?.rawValue ?? "")
    }
    return Int64(bitPattern: hash)
  }
}
