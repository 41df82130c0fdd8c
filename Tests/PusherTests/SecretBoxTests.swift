import FerryCore
import FerryRuntime
import FerryTestKit
import Testing

@testable import PusherProvider

@Suite struct SecretBoxTests {
  static func masterKey() throws -> SecretBox {
    try #require(SecretBox(key: Array("01234567890123456789012345678901".utf8)))
  }

  /// What another implementation of the same algorithm computed.
  @Test func `the reference vector is met, sealing and opening`() throws {
    let box = try Self.masterKey().box(for: "private-encrypted-chat")
    #expect(box.sharedSecret == "A59BkYSvwxqYiUaoEZJqsQSq1t3G4mmuBtrnkn7Y1Bc=")
    let data = box.seal(#"{"text":"hi"}"#, nonce: [UInt8](repeating: 1, count: 24))
    #expect(
      data
        == #"{"nonce":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","ciphertext":"6hkTq+k8EvBSDHeex7/BTfeFZ0LLCb6hzt42RT8="}"#)
    let value = try #require(JSONText.decode(JSONValue.self, from: data))
    #expect(box.open(value) == #"{"text":"hi"}"#)
    #expect(SecretBox(base64: box.sharedSecret) == box)
  }

  @Test func `no two sealings are alike`() throws {
    let box = try Self.masterKey().box(for: "private-encrypted-a")
    #expect(Set((0..<50).map { _ in box.seal("the same") }).count == 50)
  }

  @Test func `only the channel's own key opens, and only what nobody has touched`() throws {
    let box = try Self.masterKey().box(for: "private-encrypted-a")
    let sealed = try #require(JSONText.decode(JSONValue.self, from: box.seal("text")))
    #expect(box.open(sealed) == "text")
    #expect(try Self.masterKey().box(for: "private-encrypted-b").open(sealed) == nil)
    for name in ["nonce", "ciphertext"] {
      var members = try #require(sealed.object)
      var text = try #require(members[name]?.string)
      text.replaceSubrange(text.startIndex...text.startIndex, with: text.first == "A" ? "B" : "A")
      members[name] = .string(text)
      #expect(box.open(.object(members)) == nil)
    }
  }

  @Test(arguments: [
    "null", "[]", "7", #""text""#, "{}", #"{"nonce":"AA==","ciphertext":"AA=="}"#, #"{"nonce":7,"ciphertext":[]}"#,
    #"{"nonce":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","ciphertext":""}"#,
    #"{"nonce":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB","ciphertext":"not base64!"}"#, #"{"text":"in the clear"}"#,
  ])
  func `what was never sealed does not open`(data: String) throws {
    let box = try Self.masterKey().box(for: "private-encrypted-a")
    #expect(box.open(try #require(JSONText.decode(JSONValue.self, from: data))) == nil)
  }

  @Test func `the sealed size is known beforehand, and the longest text is the longest`() throws {
    let box = try Self.masterKey().box(for: "private-encrypted-a")
    for count in [0, 1, 2, 3, 100, SecretBox.longestText, SecretBox.longestText + 1] {
      let size = box.seal(String(repeating: "x", count: count)).utf8.count
      #expect(size == SecretBox.sealedBytes(of: count))
      #expect((size <= Limits.dataBytes) == (count <= SecretBox.longestText))
    }
  }

  @Test(arguments: ["", "AA==", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMw=="])
  func `a key of another length is none`(base64: String) {
    #expect(SecretBox(base64: base64) == nil)
  }

  @Test func `a key shows itself to nobody`() throws {
    let box = try Self.masterKey()
    var dumped = ""
    dump(box, to: &dumped)
    #expect("\(box) \(String(reflecting: box)) \(dumped)".contains("48") == false)
    #expect("\(box)" == "<key>")
  }

  @Test func `texts of every kind come back`() throws {
    let box = try Self.masterKey().box(for: "private-encrypted-a")
    var random = SeededGenerator(seed: 1)
    for _ in 0..<200 {
      let text = Samples.text(using: &random)
      let value = try #require(JSONText.decode(JSONValue.self, from: box.seal(text)))
      #expect(box.open(value).map { Array($0.utf8) } == Array(text.utf8))
    }
  }
}

/// Texts that get mangled by those who do not take care.
enum Samples {
  private static let pieces = [
    "plain words ", "\"", "\\", "\n", "\r\n", "\t", "\u{0}", "\u{1f}", "e\u{301}", "\u{e9}", "👩‍👩‍👧‍👦", "🏳️‍🌈", "\u{202e}",
    "<b>", "&amp;", "&", "<", ">", "'", "%20", "\u{10ffff}", "\u{2028}", "שלום", "{\"a\":[1]}", "  ", "</div>",
  ]

  static func text(using random: inout some RandomNumberGenerator, longest: Int = 60) -> String {
    (0..<Int.random(in: 0...longest, using: &random))
      .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
  }
}
