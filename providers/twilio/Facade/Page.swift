import FerryChat
import FerryCore
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

  private struct Token: Codable {
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
    return Data(base64Encoded: String(base64)).flatMap { try? JSONDecoder().decode(Token.self, from: $0) }
  }

  private static func text(_ token: Token) -> String {
    let base64 = Data(JSONText.text(token).utf8).base64EncodedString()
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

extension Call {
  /// The answer that a list is, under `key`.
  func answer(_ records: [JSONValue], _ page: PageRequest, previous: String?, next: String?, key: String) -> JSONValue {
    let filters = query.fields.filter { !["PageSize", "Page", "PageToken"].contains($0.name) }
    func url(_ number: Int64, _ token: String?) -> JSONValue {
      var form = Form(filters)
      form.add("PageSize", String(page.size))
      form.add("Page", String(max(number, 0)))
      form.add("PageToken", optional: token)
      return .string("\(base)\(path)?\(form.encoded)")
    }
    return [
      key: .array(records),
      "meta": [
        "page": .integer(page.number), "page_size": .integer(Int64(page.size)), "key": .string(key),
        "first_page_url": url(0, nil), "url": url(page.number, query["PageToken"]),
        "previous_page_url": previous.map { url(page.number &- 1, $0) } ?? .null,
        "next_page_url": next.map { url(page.number &+ 1, $0) } ?? .null,
      ],
    ]
  }

  /// A list of documents, each turned into its JSON; nil leaves one out.
  func list(
    _ collection: String, key: String, maximum: Int, _ ledger: Ledger, _ json: (Document) throws -> JSONValue?
  ) throws -> JSONValue {
    let request = try PageRequest(query, maximum: maximum)
    let page = try request.page(edge: { (row: (sequence: Int64, json: JSONValue)) in row.sequence }) {
      edge, isBackwards, limit in
      var rows: [(sequence: Int64, json: JSONValue)] = []
      var edge = edge
      while rows.count < limit {
        let documents = try ledger.chat.documents(
          in: collection,
          DocumentQuery(
            order: isBackwards ? .newestFirst : .oldestFirst, after: isBackwards ? nil : edge,
            before: isBackwards ? edge : nil, limit: limit))
        for document in documents where rows.count < limit {
          if let json = try json(document) { rows.append((document.sequence, json)) }
        }
        guard documents.count == limit, let last = documents.last else { break }
        edge = last.sequence
      }
      return rows
    }
    return answer(page.rows.map(\.json), request, previous: page.previous, next: page.next, key: key)
  }
}
