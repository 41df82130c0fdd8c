package import FerryCore

/// Single steps on documents. What belongs together goes into one `write`.
extension ChatService {
  package func document(_ id: String, in collection: String) async throws(FerryError) -> Document? {
    try await read { try $0.document(id, in: collection) }
  }

  package func documents(
    in collection: String, _ query: DocumentQuery = DocumentQuery()
  ) async throws(FerryError) -> [Document] {
    try await read { try $0.documents(in: collection, query) }
  }

  /// How many documents there are, of those in which the value at the path is the one given.
  package func count(
    in collection: String, where filter: (path: String, value: JSONValue)? = nil
  ) async throws(FerryError) -> Int {
    try await read { try $0.count(in: collection, where: filter) }
  }

  /// Makes or replaces a document and returns its sequence.
  @discardableResult
  package func put(
    _ value: some Encodable & Sendable, as id: String, in collection: String
  ) async throws(FerryError) -> Int64 {
    try await write { try $0.put(value, as: id, in: collection) }
  }

  /// False when there was none.
  @discardableResult
  package func remove(_ id: String, from collection: String) async throws(FerryError) -> Bool {
    try await write { try $0.remove(id, from: collection) }
  }
}
