/// What a person reads in a message that is HTML, and text as HTML.
///
/// For the small HTML of chat messages: it knows tags, entities and which elements are no part of what was said, and
/// takes everything else for text. It never fails, and takes time in proportion to the length.
struct HTMLText: Hashable, Sendable {
  private(set) var text = ""
  /// The message's id, where the HTML carries it.
  private(set) var id: String?
  /// Addresses of images, in order.
  private(set) var images: [String] = []

  /// Of an element whose white space is kept as it is: what Ferry wrote.
  static let verbatim = "ferry-text"
  /// Of the element that names the author to those who see one account write for many.
  static let author = "ferry-author"

  /// Names of classes whose elements a person does not read as the message.
  private static let unread: Set<Substring> = ["message-time", "actions", Substring(author)]
  private static let unreadTags: Set<String> = ["script", "style", "head", "title", "template"]
  private static let voidTags: Set<String> = ["br", "img", "input", "hr", "meta", "link", "wbr", "source"]
  private static let blocks: Set<String> = [
    "p", "div", "li", "ul", "ol", "tr", "table", "blockquote", "h1", "h2", "h3",
  ]

  /// The text with the signs replaced that mean something in HTML.
  static func escaped(_ text: String) -> String {
    var escaped = ""
    escaped.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      case "\"": escaped += "&quot;"
      case "'": escaped += "&#39;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  /// The same for what stands between tags only, where quotes are harmless and may stay short.
  static func escapedContent(_ text: String) -> String {
    var escaped = ""
    escaped.reserveCapacity(text.utf8.count)
    for scalar in text.unicodeScalars {
      switch scalar {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }

  init(_ html: String) {
    var output = Output()
    var scanner = HTMLScanner(html)
    /// Elements within the outermost one that is not read, or whose white space is kept: their names, as a stack.
    var hidden: [String] = []
    var kept: [String] = []
    while let token = scanner.next() {
      switch token {
      case .text(let bytes) where hidden.isEmpty: output.append(bytes, isVerbatim: !kept.isEmpty)
      case .scalar(let scalar) where hidden.isEmpty: output.append(scalar)
      case .text, .scalar: break
      case .open(let tag):
        if !hidden.isEmpty {
          if !tag.isVoid(Self.voidTags) { hidden.append(tag.name) }
          continue
        }
        if id == nil, let value = tag["data-id"], !value.isEmpty { id = value }
        if let image = tag.image, !images.contains(image) { images.append(image) }
        let classes = (tag["class"] ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" || $0 == "\t" })
        if tag.name == "br" { output.breakLine() }
        if Self.blocks.contains(tag.name) { output.separate() }
        guard !tag.isVoid(Self.voidTags) else { continue }
        if Self.unreadTags.contains(tag.name) || classes.contains(where: Self.unread.contains) {
          hidden.append(tag.name)
        } else if !kept.isEmpty || tag.name == "pre" || classes.contains(where: { $0 == Self.verbatim }) {
          kept.append(tag.name)
        }
      case .close(let name):
        guard hidden.isEmpty else {
          Self.close(name, &hidden)
          continue
        }
        if Self.blocks.contains(name) { output.separate() }
        Self.close(name, &kept)
      }
    }
    text = output.text
  }

  /// Closes an element and all that is still open within it; an end without a beginning is nothing.
  private static func close(_ name: String, _ stack: inout [String]) {
    // Not deeper than anybody nests by intention: an end must not cost a search of everything.
    guard let index = stack.suffix(32).lastIndex(of: name) else { return }
    stack.removeSubrange(index...)
  }

  /// Text as it grows, white space drawn together as HTML does.
  private struct Output {
    private var bytes: [UInt8] = []
    private var hasSpace = false
    private var hasBreak = false

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func append(_ piece: ArraySlice<UInt8>, isVerbatim: Bool) {
      guard !isVerbatim else {
        settle()
        bytes.append(contentsOf: piece)
        return
      }
      for byte in piece {
        switch byte {
        case 0x20, 0x09, 0x0a, 0x0d, 0x0c: hasSpace = true
        default:
          settle()
          bytes.append(byte)
        }
      }
    }

    mutating func append(_ scalar: Unicode.Scalar) {
      settle()
      bytes.append(contentsOf: Array(String(scalar).utf8))
    }

    mutating func breakLine() {
      if hasBreak { settle() }
      bytes.append(0x0a)
      hasSpace = false
    }

    /// Before what comes next, if anything does, a new line begins.
    mutating func separate() { if !bytes.isEmpty, bytes.last != 0x0a { hasBreak = true } }

    private mutating func settle() {
      if hasBreak {
        bytes.append(0x0a)
      } else if hasSpace, let last = bytes.last, last != 0x0a {
        bytes.append(0x20)
      }
      hasBreak = false
      hasSpace = false
    }
  }
}
