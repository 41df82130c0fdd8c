import CCrypto

/// Digests, message authentication and random bytes, all from libcrypto.
package enum Crypto {
  package enum Digest: Sendable {
    case md5, sha1, sha256

    fileprivate var function: OpaquePointer? {
      switch self {
      case .md5: EVP_md5()
      case .sha1: EVP_sha1()
      case .sha256: EVP_sha256()
      }
    }
  }

  package static func digest(_ kind: Digest, of bytes: some Sequence<UInt8>) -> [UInt8] {
    var digest = IncrementalDigest(kind)
    digest.update(Array(bytes))
    return digest.finish()
  }

  package static func hmac(_ kind: Digest, key: some Sequence<UInt8>, _ bytes: some Sequence<UInt8>) -> [UInt8] {
    let key = Array(key)
    let bytes = Array(bytes)
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    HMAC(kind.function, key, Int32(key.count), bytes, bytes.count, &output, &length)
    return Array(output.prefix(Int(length)))
  }

  /// A key made of a password so slowly that passwords cannot be guessed by trying. Takes its time on the calling thread.
  /// Source: RFC 8018, 5.2 (PBKDF2)
  package static func passwordKey(
    _ kind: Digest, password: String, salt: [UInt8], rounds: Int, length: Int = 32
  ) -> [UInt8] {
    var key = [UInt8](repeating: 0, count: length)
    let text = Array(password.utf8.map { CChar(bitPattern: $0) })
    let isMade = PKCS5_PBKDF2_HMAC(
      text, Int32(clamping: text.count), salt, Int32(clamping: salt.count), Int32(clamping: max(rounds, 1)),
      kind.function, Int32(clamping: length), &key)
    precondition(isMade == 1, "libcrypto makes a key of any password")
    return key
  }

  /// In a time that depends on the lengths only.
  package static func areEqual(_ left: some Collection<UInt8>, _ right: some Collection<UInt8>) -> Bool {
    let left = Array(left)
    let right = Array(right)
    return left.count == right.count && CRYPTO_memcmp(left, right, left.count) == 0
  }

  package static func areEqual(_ left: String, _ right: String) -> Bool { areEqual(left.utf8, right.utf8) }

  package static func randomBytes(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    precondition(RAND_bytes(&bytes, Int32(count)) == 1, "the system has no random bytes")
    return bytes
  }

  /// `bytes` random bytes in hexadecimal: unguessable from 16 up.
  package static func randomHex(bytes: Int) -> String { hex(randomBytes(bytes)) }

  /// Lower case.
  package static func hex(_ bytes: some Sequence<UInt8>) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}

/// A digest of data that comes in pieces.
package struct IncrementalDigest: ~Copyable {
  private let context: OpaquePointer?

  package init(_ kind: Crypto.Digest) {
    context = EVP_MD_CTX_new()
    EVP_DigestInit_ex(context, kind.function, nil)
  }

  deinit { EVP_MD_CTX_free(context) }

  package mutating func update(_ bytes: [UInt8]) { EVP_DigestUpdate(context, bytes, bytes.count) }

  /// Of what came so far; more may follow.
  package func current() -> [UInt8] {
    let copy = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(copy) }
    EVP_MD_CTX_copy_ex(copy, context)
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    EVP_DigestFinal_ex(copy, &output, &length)
    return Array(output.prefix(Int(length)))
  }

  /// Once, at the end.
  package mutating func finish() -> [UInt8] {
    var output = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    EVP_DigestFinal_ex(context, &output, &length)
    return Array(output.prefix(Int(length)))
  }
}
