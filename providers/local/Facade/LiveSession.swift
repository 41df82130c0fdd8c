import FerryChat
import FerryCore
import FerryRuntime
import FerryTransport

extension LocalServer {
  /// Upgrades to a WebSocket on which the client subscribes to rooms.
  func live(_ caller: Caller) -> HTTPResponse {
    var settings = WebSocketSettings()
    settings.messageBytes = 64 * 1024
    settings.pingAfter = .seconds(30)
    settings.pongTimeout = .seconds(15)
    return HTTPResponse(
      status: 101, headers: [:],
      body: .webSocket(subprotocol: nil, settings: settings) { [chat, logger] socket in
        await LiveSession(chat: chat, caller: caller, socket: socket, logger: logger).run()
      })
  }
}

/// One client's WebSocket. Each subscription is a reader of the chat's feed with a task that hands on what it reads;
/// a client that does not keep up holds up its own tasks only, and nobody else's.
struct LiveSession: Sendable {
  /// What a client sends.
  struct Request: Decodable {
    var type: String?
    var room: String?
    /// Every room there is and will be, instead of one.
    var all: Bool?
    var after: Int64?
    var by: Wire.Author?
    var on: Bool?
    var stamp: Stamp?
  }

  /// Subscriptions of one socket.
  private static let limit = 1024

  let chat: ChatService
  let caller: Caller
  let socket: WebSocket
  let logger: Logger
  /// By room, in UTF-8 bytes, so that two spellings of a letter stay two rooms.
  private let readers = Locked<[[UInt8]: FeedReader]>([:])

  init(chat: ChatService, caller: Caller, socket: WebSocket, logger: Logger) {
    self.chat = chat
    self.caller = caller
    self.socket = socket
    self.logger = logger
  }

  /// Until the socket closes.
  func run() async {
    await withDiscardingTaskGroup { group in
      while let message = await socket.next() {
        do throws(FerryError) {
          guard let reader = try await take(message) else { continue }
          group.addTask { await handOn(reader) }
        } catch {
          await refuse(error, room: nil)
        }
      }
      let open = readers.withLock { readers in
        defer { readers = [:] }
        return Array(readers.values)
      }
      for reader in open { reader.close() }
    }
  }

  /// Does what a client asks. Returns the reader of a new subscription, which has been answered.
  private func take(_ message: WebSocket.Message) async throws(FerryError) -> FeedReader? {
    guard case .text(let text) = message else { throw FerryError(.badRequest, "Send text messages.") }
    let request = try Wire.value(Request.self, from: text.utf8)
    switch request.type {
    case "subscribe": return try await subscribe(request)
    case "unsubscribe":
      let place = try place(request)
      readers.withLock { $0.removeValue(forKey: Array(place.utf8)) }?.close()
    case "typing":
      let typing = Typing(
        channel: ChannelID(try need(request.room)), by: try caller.author(request.by?.author), on: request.on ?? true,
        stamp: request.stamp)
      try chat.setTyping(typing, by: caller)
    default: throw FerryError(.badRequest, "\"type\" is subscribe, unsubscribe or typing.")
    }
    return nil
  }

  private func subscribe(_ request: Request) async throws(FerryError) -> FeedReader? {
    let place = try place(request)
    let room = request.all == true ? nil : request.room
    let reader: FeedReader
    do throws(FerryError) {
      guard readers.withLock({ $0.count }) < Self.limit else {
        throw FerryError(.tooLarge, "One socket subscribes to at most \(Self.limit) rooms. Open another.")
      }
      reader = try await chat.reader(of: room.map { ChannelID($0) }, after: request.after)
    } catch {
      await refuse(error, room: room)
      return nil
    }
    // Subscribing again moves the subscription to another place in the log.
    readers.withLock { $0.updateValue(reader, forKey: Array(place.utf8)) }?.close()
    await send(Subscribed(room: room, all: room == nil ? true : nil, sequence: reader.position))
    return reader
  }

  private func handOn(_ reader: FeedReader) async {
    defer { reader.close() }
    do throws(FerryError) {
      while true {
        let items = try await reader.next()
        if items.isEmpty { return }
        for item in items {
          // Waits while the client does not keep up: then the reader lags, and reads the log later.
          guard await socket.sendWaiting(try Self.text(of: item)) else { return }
        }
      }
    } catch {
      logger.warning("the log could not be read for a live client: \(error)")
      // The client comes back and resumes where it was.
      socket.close(code: 1011, reason: "the log cannot be read now")
    }
  }

  private static func text(of item: FeedItem) throws(FerryError) -> String {
    switch item {
    case .event(let event):
      event.encoding { "{\"type\":\"event\",\"sequence\":\(event.sequence),\"event\":\(event.json)}" }
    case .typing(let typing): try Wire.json(TypingFrame(typing))
    }
  }

  /// What a subscription is filed under. No room has the empty name: that is all of them.
  private func place(_ request: Request) throws(FerryError) -> String {
    request.all == true ? "" : try need(request.room)
  }

  private func need(_ room: String?) throws(FerryError) -> String {
    guard let room else { throw FerryError(.badRequest, "Name the \"room\".") }
    return room
  }

  private func refuse(_ error: FerryError, room: String?) async {
    await send(Refused(code: error.code.label, message: error.message, room: room))
  }

  private func send(_ frame: some Encodable) async {
    guard let text = try? Wire.json(frame) else { return }
    _ = await socket.sendWaiting(text)
  }
}

/// What a client receives besides events.
private struct Subscribed: Encodable {
  let type = "subscribed"
  let room: String?
  let all: Bool?
  let sequence: Int64
}

private struct TypingFrame: Encodable {
  let type = "typing"
  let room: String
  let by: Wire.Author
  let on: Bool
  let stamp: Stamp?

  init(_ typing: Typing) {
    room = typing.channel.rawValue
    by = Wire.Author(typing.by)
    on = typing.on
    stamp = typing.stamp
  }
}

private struct Refused: Encodable {
  let type = "error"
  let code: String
  let message: String
  let room: String?
}
