import FerryRuntime
import Testing

@Suite struct CryptoTests {
  @Test(
    "digests are those of the standards",
    arguments: [
      (Crypto.Digest.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
      (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
      (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
      (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    ])
  func digests(kind: Crypto.Digest, text: String, hex: String) {
    #expect(Crypto.hex(Crypto.digest(kind, of: text.utf8)) == hex)
    var pieces = IncrementalDigest(kind)
    for byte in text.utf8 { pieces.update([byte]) }
    #expect(Crypto.hex(pieces.finish()) == hex)
  }

  // Source: RFC 6070; the last was made with Python's hashlib.
  @Test(
    "keys made of passwords are those of the RFC",
    arguments: [
      (Crypto.Digest.sha1, "password", "salt", 1, 20, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
      (.sha1, "password", "salt", 4096, 20, "4b007901b765489abead49d926f721d065a429c1"),
      (.sha256, "", "salt", 2, 16, "62384466264daadc4144018c6bd86464"),
    ])
  func passwordKeys(kind: Crypto.Digest, password: String, salt: String, rounds: Int, length: Int, hex: String) {
    let key = Crypto.passwordKey(kind, password: password, salt: Array(salt.utf8), rounds: rounds, length: length)
    #expect(Crypto.hex(key) == hex)
  }

  // Source: RFC 4231, cases 1, 2 and 6, and RFC 2202, case 2.
  @Test("message authentication codes are those of the RFCs, with long and empty keys too")
  func codes() {
    let long = [UInt8](repeating: 0xaa, count: 131)
    let cases: [(Crypto.Digest, [UInt8], String, String)] = [
      (
        .sha256, [UInt8](repeating: 0x0b, count: 20), "Hi There",
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
      ),
      (
        .sha256, Array("Jefe".utf8), "what do ya want for nothing?",
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
      ),
      (
        .sha256, long, "Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
      ),
      (.sha1, Array("Jefe".utf8), "what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
      (.sha256, [], "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ]
    for (kind, key, text, hex) in cases { #expect(Crypto.hex(Crypto.hmac(kind, key: key, text.utf8)) == hex) }
  }

  @Test("equal means equal in every byte")
  func equality() {
    #expect(Crypto.areEqual("secret", "secret"))
    #expect(!Crypto.areEqual("secret", "secreT"))
    #expect(!Crypto.areEqual("secret", "secret "))
    #expect(Crypto.areEqual("", ""))
    #expect(!Crypto.areEqual("e\u{301}", "\u{e9}"), "what merely looks alike is not equal")
  }

  @Test("random bytes are as many as asked for, and other ones every time")
  func random() {
    #expect(Crypto.randomBytes(0).isEmpty)
    #expect(Crypto.randomHex(bytes: 16).count == 32)
    #expect(Set((0..<100).map { _ in Crypto.randomHex(bytes: 16) }).count == 100)
  }
}
