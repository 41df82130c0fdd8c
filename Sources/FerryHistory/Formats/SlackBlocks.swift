import FerryCore

/// The text of a message that has none of its own: from its blocks, else from its attachments, in Slack's markup.
enum SlackBlocks {
  static func text(of message: [String: JSONValue]) -> String {
    let blocks = lines(message["blocks"]?.array ?? [])
    if !blocks.isEmpty { return blocks }
    return (message["attachments"]?.array ?? []).map(text(ofAttachment:)).filter { !$0.isEmpty }.joined(separator: "\n")
  }

  private static func text(ofAttachment attachment: JSONValue) -> String {
    var parts = ["pretext", "title", "text"].compactMap { attachment[$0]?.string }
    for field in attachment["fields"]?.array ?? [] {
      parts.append([field["title"]?.string, field["value"]?.string].compactMap { $0 }.joined(separator: ": "))
    }
    parts.append(lines(attachment["blocks"]?.array ?? []))
    let text = parts.filter { !$0.isEmpty }.joined(separator: "\n")
    return text.isEmpty ? attachment["fallback"]?.string ?? "" : text
  }

  private static func lines(_ blocks: [JSONValue]) -> String {
    blocks.map(text(ofBlock:)).filter { !$0.isEmpty }.joined(separator: "\n")
  }

  private static func text(ofBlock block: JSONValue) -> String {
    switch block["type"]?.string {
    case "rich_text", "rich_text_list": lines(block["elements"]?.array ?? [])
    case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
      (block["elements"]?.array ?? []).map(text(ofElement:)).joined()
    case "context": (block["elements"]?.array ?? []).map(text(ofObject:)).filter { !$0.isEmpty }.joined(separator: " ")
    case "image", "video": block["alt_text"]?.string ?? ""
    default:
      ([block["text"]].compactMap { $0 } + (block["fields"]?.array ?? [])).map(text(ofObject:))
        .filter { !$0.isEmpty }.joined(separator: "\n")
    }
  }

  /// `{"type":"mrkdwn","text":…}`; a plain one is escaped, because everything here is markup.
  private static func text(ofObject object: JSONValue) -> String {
    let text = object["text"]?.string ?? object["alt_text"]?.string ?? ""
    return object["type"]?.string == "plain_text" ? escaped(text) : text
  }

  private static func text(ofElement element: JSONValue) -> String {
    let id = element["user_id"]?.string ?? element["channel_id"]?.string ?? element["usergroup_id"]?.string ?? ""
    return switch element["type"]?.string {
    case "user": "<@\(id)>"
    case "channel": "<#\(id)>"
    case "usergroup": "<!subteam^\(id)>"
    case "broadcast": "<!\(element["range"]?.string ?? "here")>"
    case "emoji": ":\(element["name"]?.string ?? ""):"
    case "link":
      element["text"]?.string.map { "<\(element["url"]?.string ?? "")|\(escaped($0))>" }
        ?? "<\(element["url"]?.string ?? "")>"
    default: escaped(element["text"]?.string ?? element["fallback"]?.string ?? "")
    }
  }

  static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
      switch character {
      case "&": escaped += "&amp;"
      case "<": escaped += "&lt;"
      case ">": escaped += "&gt;"
      default: escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }
}
