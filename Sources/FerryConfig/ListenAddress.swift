package import FerryCore

/// Where a service listens. Port 0 lets the system choose.
package struct ListenAddress: Sendable, Hashable, CustomStringConvertible {
  package let host: String
  package let port: UInt16

  package init(host: String, port: UInt16) {
    self.host = host
    self.port = port
  }

  /// `host:port`; an IPv6 address stands in brackets, which are not part of `host`.
  package init?(_ text: String) {
    guard let colon = text.lastIndex(of: ":") else { return nil }
    var host = text[..<colon]
    let digits = text[text.index(after: colon)...]
    guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits) else { return nil }
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty, !host.contains(where: { $0.isWhitespace || $0 == "/" }) else { return nil }
    self.init(host: String(host), port: port)
  }

  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension ConfigNode {
  package func listenAddress() throws(FerryError) -> ListenAddress {
    guard let address = ListenAddress(try nonEmptyString()) else {
      throw error("\"\(name)\" must be host:port, such as 127.0.0.1:8090")
    }
    return address
  }

  /// An absolute `http` or `https` URL, without a slash at its end.
  package func webAddress() throws(FerryError) -> String {
    var text = try nonEmptyString()
    while text.hasSuffix("/") { text.removeLast() }
    let rest =
      text.hasPrefix("https://") ? text.dropFirst(8) : text.hasPrefix("http://") ? text.dropFirst(7) : ""
    guard let first = rest.first, first != ":", !rest.contains(where: { $0.isWhitespace || "?#@".contains($0) }) else {
      throw error("\"\(name)\" must be a URL that starts with https:// or http://")
    }
    return text
  }
}
