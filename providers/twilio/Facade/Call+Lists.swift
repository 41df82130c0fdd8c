import FerryChat
import FerryCore

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
      // A filter may leave out most: what is read at once is not too little.
      let chunk = max(limit, 50)
      while rows.count < limit {
        let documents = try ledger.chat.documents(
          in: collection,
          DocumentQuery(
            order: isBackwards ? .newestFirst : .oldestFirst, after: isBackwards ? nil : edge,
            before: isBackwards ? edge : nil, limit: chunk))
        for document in documents where rows.count < limit {
          if let json = try json(document) { rows.append((document.sequence, json)) }
        }
        guard documents.count == chunk, let last = documents.last else { break }
        edge = last.sequence
      }
      return rows
    }
    return answer(page.rows.map(\.json), request, previous: page.previous, next: page.next, key: key)
  }
}
