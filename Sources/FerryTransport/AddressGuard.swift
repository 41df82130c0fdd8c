/// Which addresses may be reached for a request that a message, and not the operator, named.
///
/// Only public ones: everything the IANA special-purpose registries set aside is refused, because it leads into the
/// machine, its network or a cloud's metadata.
/// Source: https://www.iana.org/assignments/iana-ipv4-special-registry, .../iana-ipv6-special-registry
package struct AddressGuard: Sendable {
  private let allowedHosts: Set<String>

  /// `allowedHosts` are names or addresses as they stand in URLs; they may lead anywhere.
  package init(allowedHosts: [String] = []) {
    self.allowedHosts = Set(allowedHosts.map(Self.normalized))
  }

  package func allows(host: String) -> Bool { allowedHosts.contains(Self.normalized(host)) }

  private static func normalized(_ host: String) -> String {
    var host = host.lowercased()[...]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    if host.hasSuffix(".") { host = host.dropLast() }
    return String(host)
  }

  /// Whether an address, in its usual text form, is a public one.
  package static func isPublic(_ address: String) -> Bool {
    IPAddress(address).map { isPublic($0) } ?? false
  }

  static func isPublic(_ address: IPAddress) -> Bool {
    let bytes = address.bytes
    if bytes.count == 4 { return isPublic(four: bytes) }
    // Ways of writing an IPv4 address inside an IPv6 one: the old compatible form, NAT64, 6to4.
    if bytes[..<12].allSatisfy({ $0 == 0 }) { return false }
    if bytes.starts(with: [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0]) { return isPublic(four: Array(bytes[12...])) }
    if bytes.starts(with: [0x20, 0x02]) { return isPublic(four: Array(bytes[2..<6])) }
    // Only 2000::/3 is handed out; inside it, IETF protocols (Teredo among them) and documentation are set aside.
    guard bytes[0] & 0xe0 == 0x20 else { return false }
    let isProtocol = bytes.starts(with: [0x20, 0x01]) && bytes[2] & 0xfe == 0
    let isDocumentation =
      bytes.starts(with: [0x20, 0x01, 0x0d, 0xb8]) || (bytes[0] == 0x3f && bytes[1] == 0xff && bytes[2] & 0xf0 == 0)
    return !isProtocol && !isDocumentation
  }

  private static func isPublic(four bytes: [UInt8]) -> Bool {
    switch (bytes[0], bytes[1], bytes[2]) {
    case (0, _, _), (10, _, _), (127, _, _), (224..., _, _): false
    case (100, 64...127, _): false
    case (169, 254, _): false
    case (172, 16...31, _): false
    case (192, 168, _), (192, 0, 0), (192, 0, 2), (192, 88, 99): false
    case (198, 18...19, _), (198, 51, 100), (203, 0, 113): false
    default: true
    }
  }
}
