import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

/// Socket.IO in the namespace `/{appId}`: subscriptions and methods.
extension BackendlessFacade {
  /// What clients sent, in order.
  func take(_ bodies: [EnginePacket.Body], from connection: RealTimeConnection) async {
    for body in bodies {
      guard case .text(let text) = body, let packet = try? SocketPacket(text) else {
        connection.receivedRubbish()
        return
      }
      switch packet.content {
      case .connect: await join(packet, connection)
      case .disconnect where packet.namespace == namespace: hub.withLock { $0.leave(connection.sid) }
      case .event(let name, let argument) where packet.namespace == namespace:
        guard hub.withLock({ $0.clients[connection.sid]?.isJoined }) == true else { continue }
        await take(name, argument ?? .null, connection)
      case .disconnect, .event, .ack, .refused: break
      }
    }
  }

  private func join(_ packet: SocketPacket, _ connection: RealTimeConnection) async {
    let version = connection.version
    if packet.namespace == SocketPacket.root {
      // Nothing is ever said there. Version 3 has joined everybody already.
      guard version == .four else { return }
      return connection.send(SocketPacket.connected(to: packet.namespace, version: version, sid: connection.sid).text)
    }
    let query = PercentEncoding.pairs(packet.query ?? "")
    func asked(_ name: String) -> String? { query.first { $0.name == name }?.value }
    guard packet.namespace == namespace else {
      return connection.send(SocketPacket.refused("Invalid namespace", in: packet.namespace, version: version).text)
    }
    guard isKey(connection.apiKey) || isKey(asked("apiKey") ?? "") else {
      return connection.send(SocketPacket.refused("Invalid api key", in: packet.namespace, version: version).text)
    }
    // Whoever comes with a token that is no good any more comes as nobody: the libraries would retry for ever.
    let token = connection.userToken ?? UserToken.given(asked("userToken"))
    let user = try? await self.user(token: token)
    hub.withLock { hub in
      hub.join(connection.sid, as: user ?? nil)
      connection.send(SocketPacket.connected(to: namespace, version: version, sid: connection.sid).text)
    }
    metrics?.add(to: "ferry_backendless_facade_connections_total")
  }

  private func take(_ event: String, _ argument: JSONValue, _ connection: RealTimeConnection) async {
    guard let id = argument["id"]?.text, !id.isEmpty, id.utf8.count <= 256 else { return }
    let name = argument["name"]?.string ?? ""
    let options = argument["options"] ?? .null
    switch event {
    case "SUB_ON":
      let fault: Fault?
      do throws(Fault) {
        let subscription = try Self.subscription(name, options)
        fault = hub.withLock { $0.subscribe(connection.sid, id, to: subscription, limit: settings.subscriptions) }
      } catch {
        fault = error
      }
      if let fault { refuse("SUB_RES", id, code: String(fault.code), fault.message, connection) }
    case "SUB_OFF": hub.withLock { $0.unsubscribe(connection.sid, id) }
    case "MET_REQ":
      do throws(Fault) {
        try await call(name, options, id, connection)
      } catch {
        refuse("MET_RES", id, code: "\"\(error.code)\"", error.message, connection)
      }
    default: break
    }
  }

  /// Without data: there are clients that look for it first. The code is a number for subscriptions and a string for
  /// methods, as the strictest client expects.
  private func refuse(_ event: String, _ id: String, code: String, _ message: String, _ connection: RealTimeConnection)
  {
    let error = #"{"code":\#(code),"message":\#(JSONText.quoted(message))}"#
    connection.send(
      SocketPacket.event(event, json: #"{"id":\#(JSONText.quoted(id)),"error":\#(error)}"#, in: namespace))
  }

  // MARK: Subscriptions

  private static let changes: Set<String> = [
    "created", "updated", "deleted", "upserted", "bulk-created", "bulk-updated", "bulk-deleted", "bulk-upserted",
  ]

  private static func subscription(_ name: String, _ options: JSONValue) throws(Fault) -> Subscription {
    switch name {
    case "PUB_SUB_CONNECT": return Subscription(target: .connect(try channel(options)))
    case "PUB_SUB_MESSAGES":
      return Subscription(target: .messages(try channel(options)), condition: try condition(options["selector"]))
    case "PUB_SUB_COMMANDS": return Subscription(target: .commands(try channel(options)))
    case "PUB_SUB_USERS": return Subscription(target: .users(try channel(options)))
    case "OBJECTS_CHANGES":
      guard let event = options["event"]?.string, changes.contains(event) else {
        throw Fault(400, 5002, "The event must be one of \(changes.sorted().joined(separator: ", "))")
      }
      guard let table = options["tableName"]?.string, TableName.isValid(table) else {
        throw Fault(400, 5002, "The tableName is missing or not valid")
      }
      return Subscription(
        target: .changes(Hub.TableEvent(table: table, event: event)),
        condition: try condition(options["whereClause"]))
    default: throw Fault(400, 5002, "The subscription \"\(name.prefix(64))\" is not supported by this server")
    }
  }

  private static func channel(_ options: JSONValue) throws(Fault) -> String {
    guard let channel = options["channel"]?.string, ChannelName.isValid(channel) else {
      throw Fault(400, 5002, "The channel is missing or not valid")
    }
    return channel
  }

  private static func condition(_ value: JSONValue?) throws(Fault) -> SQLCondition? {
    guard let text = value?.string, !text.isEmpty else { return nil }
    do throws(FerryError) { return try SQLCondition(text) } catch { throw Fault(400, 5002, error.message) }
  }

  // MARK: Methods

  private func call(
    _ name: String, _ options: JSONValue, _ id: String, _ connection: RealTimeConnection
  ) async throws(Fault) {
    let done = SocketPacket.event("MET_RES", json: #"{"id":\#(JSONText.quoted(id)),"result":null}"#, in: namespace)
    switch name {
    case "SET_USER_TOKEN":
      let user = try await self.user(token: UserToken.given(options["userToken"]?.string))
      hub.withLock { hub in
        hub.setUser(user, of: connection.sid)
        connection.send(done)
      }
    case "PUB_SUB_COMMAND":
      guard let channel = options["channel"]?.string, ChannelName.isValid(channel), let type = options["type"]?.string
      else { throw Fault(400, 5003, "A command needs a channel and a type") }
      let user = hub.withLock { $0.clients[connection.sid]?.user }
      let data = options["data"].map { #","data":\#(JSON.text(of: $0))"# } ?? ""
      let command =
        #"{"type":\#(JSONText.quoted(type))\#(data),"connectionId":\#(JSONText.quoted(connection.sid)),"#
        + #""userId":\#(user.map { JSONText.quoted($0.id) } ?? "null")}"#
      hub.withLock { hub in
        connection.send(done)
        hub.deliver(command: command, to: channel)
      }
      setTyping(type, options["data"], in: channel, by: user, sid: connection.sid)
    default: throw Fault(400, 5003, "The method \"\(name.prefix(64))\" is not supported by this server")
    }
  }
}

enum ChannelName {
  /// What is fit for a room: rooms are what channels are kept in.
  static func isValid(_ name: String) -> Bool {
    (1...256).contains(name.utf8.count) && !name.utf8.contains { $0 < 0x20 || $0 == 0x7f }
  }
}

enum TableName {
  static func isValid(_ name: String) -> Bool {
    (1...64).contains(name.utf8.count)
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
          true
        default: false
        }
      }
  }
}
