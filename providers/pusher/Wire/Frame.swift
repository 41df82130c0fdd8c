package import FerryCore
import FerryRuntime

/// One text frame of the socket, as either side receives it.
package struct Frame: Sendable, Decodable {
  package let event: String
  package let channel: String?
  package let data: FrameData?
  /// On client events of presence channels.
  package let userID: String?

  enum CodingKeys: String, CodingKey {
    case event, channel, data
    case userID = "user_id"
  }

  package init(event: String, channel: String?, data: FrameData?, userID: String? = nil) {
    self.event = event
    self.channel = channel
    self.data = data
    self.userID = userID
  }

  /// A user id may be a number: many services have no others.
  package init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: CodingKeys.self)
    event = try members.decode(String.self, forKey: .event)
    channel = try members.decodeIfPresent(String.self, forKey: .channel)
    data = try members.decodeIfPresent(FrameData.self, forKey: .data)
    userID = members.contains(.userID) ? (try? members.decode(JSONValue.self, forKey: .userID))?.text : nil
  }

  /// Nil when the text is not a JSON object with an event's name.
  package init?(text: String) {
    guard let frame = JSONText.decode(Frame.self, from: text) else { return nil }
    self = frame
  }
}

/// Text frames to send, byte for byte as clients of every kind accept them.
package enum FrameText {
  /// An event for subscribers: `data` is a JSON string, which is what the strictest client requires.
  package static func event(_ event: String, channel: String?, data: String, userID: String? = nil) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(event.utf8.count + data.utf8.count * 5 / 4 + 96)
    bytes.append(contentsOf: #"{"event":"#.utf8)
    JSONText.append(event, to: &bytes)
    if let channel {
      bytes.append(contentsOf: #","channel":"#.utf8)
      JSONText.append(channel, to: &bytes)
    }
    bytes.append(contentsOf: #","data":"#.utf8)
    JSONText.append(data, to: &bytes)
    if let userID {
      bytes.append(contentsOf: #","user_id":"#.utf8)
      JSONText.append(userID, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
    return String(decoding: bytes, as: UTF8.self)
  }

  /// An event from a client: `data` is JSON text and travels as the value that it is.
  package static func client(_ event: String, channel: String, json data: String) -> String {
    #"{"event":\#(JSONText.quoted(event)),"channel":\#(JSONText.quoted(channel)),"data":\#(data)}"#
  }

  /// What a client sends to say who it is.
  package static func signIn(auth: String, userData: String) -> String {
    object("pusher:signin", ["auth": .string(auth), "user_data": .string(userData)])
  }

  /// A frame whose `data` is an object: what clients send, and errors.
  package static func object(_ event: String, _ data: JSONValue) -> String {
    #"{"event":\#(JSONText.quoted(event)),"data":\#(JSON.text(of: data))}"#
  }

  /// The one server event whose `data` must be an object. Code null is how subscription failures are told.
  package static func error(_ code: ErrorCode?, _ message: String) -> String {
    let number = code.map { String($0.rawValue) } ?? "null"
    return #"{"event":"pusher:error","data":{"code":\#(number),"message":\#(JSONText.quoted(message))}}"#
  }

  package static func established(socketID: String, activityTimeout: Int) -> String {
    event(
      "pusher:connection_established", channel: nil,
      data: #"{"socket_id":\#(JSONText.quoted(socketID)),"activity_timeout":\#(activityTimeout)}"#)
  }

  package static let ping = #"{"event":"pusher:ping","data":{}}"#
  package static let pong = #"{"event":"pusher:pong","data":"{}"}"#

  /// What a client sends to listen to a channel.
  package static func subscribe(to channel: String, auth: String? = nil, channelData: String? = nil) -> String {
    var data: [String: JSONValue] = ["channel": .string(channel)]
    data["auth"] = auth.map(JSONValue.string)
    data["channel_data"] = channelData.map(JSONValue.string)
    return object("pusher:subscribe", .object(data))
  }
}
