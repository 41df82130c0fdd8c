import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport
import FoundationEssentials

/// One page of a list as it is asked for.
///
/// A page token names the row at the edge of the page before it, so that rows that come or go elsewhere neither repeat
/// nor hide any.
struct PageRequest: Sendable {
  /// At most the list's maximum: more is cut down, not refused.
  let size: Int
  let number: Int64
  /// The row at which the page begins, exclusive.
  let edge: Int64?
  /// True for the page before `edge`.
  let isBackwards: Bool

  private struct Token: Decodable {
    var after: Int64?
    var before: Int64?
  }

  init(_ query: Form, maximum: Int, standard: Int = 50) throws(TwilioError) {
    var size = min(standard, maximum)
    if let text = query["PageSize"], !text.isEmpty {
      guard let number = Int(text), number > 0 else { throw .invalid("PageSize", "it must be a positive number") }
      size = min(number, maximum)
    }
    self.size = size
    number = max(query["Page"].flatMap { Int64($0) } ?? 0, 0)
    guard let text = query["PageToken"], !text.isEmpty else {
      edge = nil
      isBackwards = false
      return
    }
    guard let token = Self.token(text), let edge = token.after ?? token.before else {
      throw .invalid("PageToken", "it is not one that was given out")
    }
    self.edge = edge
    isBackwards = token.after == nil
  }

  private static func token(_ text: String) -> Token? {
    guard text.hasPrefix("PT") else { return nil }
    var base64 = text.dropFirst(2).replacing("-", with: "+").replacing("_", with: "/")
    base64 += String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
    return Data(base64Encoded: String(base64)).flatMap { JSONText.decode(Token.self, from: $0) }
  }

  private static func text(_ token: Token) -> String {
    let base64 = Data(
      JSON.text(of: token.after.map { ["after": .integer($0)] } ?? ["before": JSONValue(token.before)]).utf8
    ).base64EncodedString()
    return "PT" + base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
  }

  /// A page of rows that `fetch` reads: those after an edge, or before it in reverse order, at most so many.
  func page<Row>(
    edge of: (Row) -> Int64, _ fetch: (_ edge: Int64?, _ isBackwards: Bool, _ limit: Int) throws -> [Row]
  ) rethrows -> Page<Row> {
    var rows = try fetch(edge, isBackwards, size + 1)
    let hasMore = rows.count > size
    if hasMore { rows.removeLast() }
    if isBackwards { rows.reverse() }
    let first = rows.first.map(of)
    let last = rows.last.map(of)
    // The page that one came from is there.
    let previous = isBackwards ? (hasMore ? first : nil) : (edge == nil ? nil : first ?? edge)
    let next = isBackwards ? last : (hasMore ? last : nil)
    return Page(
      rows: rows, previous: previous.map { Self.text(Token(before: $0)) },
      next: next.map { Self.text(Token(after: $0)) })
  }
}

struct Page<Row> {
  var rows: [Row]
  var previous: String?
  var next: String?
}
