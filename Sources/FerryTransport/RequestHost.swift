/// The host part of `Host` headers and URLs.
package enum RequestHost {
  /// In lower case, without port, brackets and the root's dot.
  package static func name(in authority: String) -> String {
    let text = authority.lowercased()
    if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
      return String(text[text.index(after: text.startIndex)..<end])
    }
    let name = text.prefix { $0 != ":" }
    return String(name.hasSuffix(".") ? name.dropLast() : name)
  }

  /// Of a URL, nil when it has none.
  package static func name(ofURL url: String) -> String? {
    guard let scheme = url.firstRange(of: "://") else { return nil }
    let authority = url[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    return name(in: String(authority.split(separator: "@").last ?? ""))
  }

  /// Whether nobody on the internet can make this name lead elsewhere: an IP address, or a name without a dot, which
  /// no public zone holds.
  package static func isOwn(_ name: String) -> Bool {
    IPAddress(name) != nil || !name.contains(".") || name.hasSuffix(".localhost")
  }
}
