/// What a page may load and run, as the header `Content-Security-Policy` says it.
///
/// Nothing inline, nothing from elsewhere, no text that becomes markup.
/// Source: https://www.w3.org/TR/CSP3/, https://www.w3.org/TR/trusted-types/
enum ContentPolicy {
  private static let common = [
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
    "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
  ]

  /// `ancestor` is the origin of the start page, which alone may frame the chat page.
  static func chat(ancestor: String?) -> String {
    (common + ["img-src 'self' blob:", "frame-ancestors \(ancestor ?? "'none'")"]).joined(separator: "; ")
  }

  static func start(frames: [String]) -> String {
    let sources = frames.isEmpty ? "'none'" : frames.joined(separator: " ")
    return (common + ["img-src 'self'", "frame-src \(sources)", "frame-ancestors 'none'"]).joined(separator: "; ")
  }

  /// The console loads nothing but itself, and nobody may frame it.
  static let console = (common + ["img-src 'self'", "frame-ancestors 'none'"]).joined(separator: "; ")
}
