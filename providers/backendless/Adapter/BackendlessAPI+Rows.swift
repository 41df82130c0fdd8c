import FerryCore

/// The data service.
extension BackendlessAPI {
  /// The most that one answer holds.
  static let pageSize = 100

  private static func path(_ table: String, _ parts: String...) -> String {
    "/data/" + ([table] + parts).map { segment($0) }.joined(separator: "/")
  }

  /// Rows of which the condition holds, at most `limit` and never more than a page. A table or column that is not
  /// there throws `notFound`.
  func rows(
    of table: String, where condition: String, sortBy: String, limit: Int = pageSize, offset: Int = 0,
    only columns: [String] = [], doing: String
  ) async throws(FerryError) -> [JSONValue] {
    var body: [String: JSONValue] = [
      "pageSize": .integer(Int64(min(max(limit, 1), Self.pageSize))), "offset": .integer(Int64(offset)),
      "sortBy": .string(sortBy),
    ]
    if !condition.isEmpty { body["where"] = .string(condition) }
    if !columns.isEmpty { body["props"] = .array(columns.map(JSONValue.string)) }
    let answer = try await call("POST", Self.path(table, "find"), .object(body), isReading: true, doing: doing)
    guard let rows = answer.array else {
      throw FerryError(.badData, "Could not \(doing): the answer is no list of rows.", retry: .now)
    }
    return rows
  }

  /// Nil when there is no such row, or no such table yet.
  func row(_ id: String, of table: String, doing: String) async throws(FerryError) -> JSONValue? {
    do throws(FerryError) {
      let row = try await call("GET", Self.path(table, id), doing: doing)
      return row["objectId"]?.text == nil ? nil : row
    } catch  where error.code == .notFound {
      return nil
    }
  }

  /// Those of the ids, at most 100, under which there is a row.
  func present(_ ids: [String], in table: String, doing: String) async throws(FerryError) -> Set<String> {
    let list = ids.compactMap { Condition.quoted($0) }.joined(separator: ", ")
    do throws(FerryError) {
      let rows = try await rows(
        of: table, where: "objectId in (\(list))", sortBy: "created asc", only: ["objectId"], doing: doing)
      return Set(rows.compactMap { $0["objectId"]?.text })
    } catch  where error.code == .notFound {
      return []
    }
  }

  /// Creates the row, or changes it when it is there: repeating it is harmless. Returns it as the service has it.
  func upsert(_ row: JSONValue, in table: String, doing: String) async throws(FerryError) -> JSONValue {
    try await call("PUT", Self.path(table, "upsert"), row, doing: doing)
  }

  /// A row that is gone throws `notFound`.
  func update(_ id: String, of table: String, to changes: JSONValue, doing: String) async throws(FerryError) {
    try await call("PUT", Self.path(table, id), changes, doing: doing)
  }

  /// A row that is gone is deleted already.
  func delete(_ id: String, of table: String, doing: String) async throws(FerryError) {
    do throws(FerryError) {
      try await call("DELETE", Self.path(table, id), doing: doing)
    } catch  where error.code == .notFound {
      return
    }
  }

  /// Creates rows or changes them where they are there, at most 100, in the order given: repeating it is harmless. The
  /// service tells nobody more than their ids.
  /// Source: https://backendless.com/docs/rest/data_bulk_upsert.html
  func upsertAll(_ rows: [JSONValue], in table: String, doing: String) async throws(FerryError) {
    guard rows.count <= Self.pageSize else {
      throw FerryError(.badRequest, "Could not \(doing): one request saves \(Self.pageSize) rows at most.")
    }
    _ = try await call("PUT", "/data/bulkupsert/" + Self.segment(table), .array(rows), doing: doing)
  }
}

/// Messaging.
extension BackendlessAPI {
  /// Publishes, and returns the id that the service gave the message. That it is scheduled is success.
  func publish(
    _ message: JSONValue, to channel: String, as publisher: String?, headers: [String: String] = [:],
    subtopic: String? = nil, doing: String
  ) async throws(FerryError) -> String {
    // Without this a service with push notifications set up might send some.
    var body: [String: JSONValue] = ["message": message, "publishPolicy": "PUBSUB"]
    body["publisherId"] = publisher.map(JSONValue.string)
    body["subtopic"] = subtopic.map(JSONValue.string)
    if !headers.isEmpty { body["headers"] = .object(headers.mapValues(JSONValue.string)) }
    let answer = try await call("POST", "/messaging/" + Self.segment(channel), .object(body), doing: doing)
    let status = answer["status"]?.string?.lowercased()
    guard status != "failed" else {
      let reason = answer["errorMessage"]?.string ?? "no reason given"
      throw FerryError(
        .unavailable, "Could not \(doing): the service took the message and failed with it.", retry: .now,
        cause: String(reason.prefix(300)))
    }
    return answer["messageId"]?.text ?? ""
  }

  /// What became of a message: `scheduled`, `published`, `cancelled`, `failed` or `unknown`. The service asks for the id
  /// that it gave the message: where the answer to `publish` was lost, this cannot tell either.
  func status(of message: MessageID, doing: String) async throws(FerryError) -> String {
    let answer = try await call("GET", "/messaging/" + Self.segment(message.rawValue), doing: doing)
    let status = answer["status"]?.string?.lowercased() ?? "unknown"
    return status == "canceled" ? "cancelled" : status
  }

  /// The receive path that needs no socket: a subscription by which what is published is asked for.
  func subscribe(to channel: String, selector: String? = nil) async throws(FerryError) -> String {
    let doing = "subscribe to \(channel)"
    let body: JSONValue = selector.map { ["selector": .string($0)] } ?? [:]
    let answer = try await call("POST", "/messaging/\(Self.segment(channel))/subscribe", body, doing: doing)
    guard let id = answer["subscriptionId"]?.text, !id.isEmpty else {
      throw FerryError(.badData, "Could not \(doing): the answer names no subscription.", retry: .now)
    }
    return id
  }

  /// What was published since it was asked last, of the last minute.
  func messages(of subscription: String, in channel: String) async throws(FerryError) -> [JSONValue] {
    let path = "/messaging/\(Self.segment(channel))/\(Self.segment(subscription))"
    return try await call("GET", path, doing: "read \(channel)")["messages"]?.array ?? []
  }
}

/// Users.
extension BackendlessAPI {
  func user(_ id: String) async throws(FerryError) -> JSONValue? {
    try await row(id, of: "Users", doing: "look up a user")
  }
}
