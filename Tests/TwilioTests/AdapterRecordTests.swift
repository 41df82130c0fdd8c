import FerryCore
import FerryRuntime
import Testing

@testable import TwilioProvider

@Suite struct ListedMessageTests {
  private let full: JSONValue = [
    "sid": "IM1", "conversation_sid": "CH1", "index": 12, "author": "alice", "participant_sid": "MB1", "body": "hi",
    "attributes": "{\"a\":1}", "date_created": "2026-01-02T03:04:05Z", "date_updated": "2026-01-02T03:04:06Z",
    "media": [["sid": "ME1", "size": 42056, "content_type": "image/jpeg", "filename": "car.jpg"]],
    "delivery": ["delivered": "some", "read": "none"],
  ]

  @Test func `a listed message is read whole`() throws {
    let message = try #require(ListedMessage(json: full))
    #expect(message.index == 12)
    #expect(message.created.iso8601 == "2026-01-02T03:04:05.000Z")
    #expect(message.revision == Int(message.created.milliseconds) + 1000)
    #expect(message.media.first?.name == "car.jpg")
    #expect(message.media.first?.size == 42056)
    #expect(message.media.first?.reference == .provider("ME1"))
    #expect(message.delivered == "some")
    let ours = message.message(name: "Alice", stamp: nil, revision: message.revision)
    #expect(ours.author == Author(id: "alice", name: "Alice"))
    #expect(ours.attributes?["index"]?.integer == 12)
    #expect(ours.attributes?["attributes"]?.string == "{\"a\":1}")
    #expect(ListedMessage.index(of: ours) == 12)
  }

  @Test func `an announced message is read with its milliseconds`() throws {
    let message = try #require(
      ListedMessage(form: [
        ("MessageSid", "IM1"), ("Index", "3"), ("Body", "hi"), ("Author", "a"),
        ("DateCreated", "2026-01-02T03:04:05.678Z"),
        ("Media", #"[{"Sid":"ME1","Filename":null,"ContentType":"image/png","Size":3,"Extra":{}}]"#),
      ]))
    #expect(message.created.iso8601 == "2026-01-02T03:04:05.678Z")
    #expect(message.revision == 0)
    #expect(message.media.first?.name == "file")
    #expect(message.isExact)
  }

  @Test(
    arguments: [
      ["sid": "IM1", "index": "7"], ["sid": "IM1", "index": 7, "body": .null, "media": .null, "attributes": .null],
      ["sid": "IM1", "index": .number(7.5), "author": 12, "media": "none", "date_created": 5, "delivery": []],
      [
        "sid": "IM1", "index": 7, "attributes": ["a": 1], "media": [.null, 1, ["size": 3]], "date_updated": "yesterday",
      ],
    ] as [JSONValue])
  func `odd values are borne with`(value: JSONValue) {
    // A number with a fraction is no index; everything else here has one.
    let isFraction = if case .number? = value["index"] { true } else { false }
    #expect((ListedMessage(json: value)?.index == 7) != isFraction)
  }

  @Test(
    arguments: [
      .null, [], [:], "x", ["sid": "IM1"], ["index": 1], ["sid": "", "index": 1], ["sid": "IM1", "index": -1],
      ["sid": "IM1", "index": 9_223_372_036_854_775_807], ["sid": "IM1", "index": "many"],
    ] as [JSONValue])
  func `what is no message is none`(value: JSONValue) { #expect(ListedMessage(json: value) == nil) }

  @Test func `the time is exact where Ferry wrote it down, and only where it fits`() throws {
    var message = try #require(ListedMessage(json: full))
    func time(_ attributes: String) -> Int64 {
      message.attributes = attributes
      return message.message(name: nil, stamp: nil, revision: 0).time.milliseconds
    }
    let created = message.created.milliseconds
    #expect(time("{\"ferry\":{\"time\":\(created + 678)}}") == created + 678)
    #expect(time("{\"ferry\":{\"time\":\(created - 500_000)}}") == created)
    #expect(time("{}") == created)
  }
}

@Suite struct ListedParticipantTests {
  @Test func `a phone is named by its address`() throws {
    let phone = try #require(
      ListedParticipant(json: [
        "sid": "MB1", "identity": .null,
        "messaging_binding": ["type": "sms", "address": "+1555", "proxy_address": "+1"],
        "last_read_message_index": .null,
      ]))
    #expect(phone.id == "+1555")
    #expect(phone.horizon == nil)
    #expect(
      ListedParticipant(form: [("ParticipantSid", "MB1"), ("MessagingBinding.Address", "+1555")])?.id == "+1555")
    #expect(ListedParticipant(form: [("ParticipantSid", "MB1")])?.id == "MB1")
    #expect(ListedParticipant(json: ["identity": "x"]) == nil)
  }
}

@Suite struct PlaceTests {
  @Test func `a cursor leads back to its place`() {
    for place in [Place(conversation: "CH1"), Place(index: 12, message: "IM1", conversation: "CH1")] {
      #expect(Place(place.cursor) == place)
    }
  }

  @Test(arguments: ["", "12", "12/IM1", "x/IM1/CH1", "-2//CH1", "1/2/3/4", "99999999999999999999/a/b"])
  func `another's cursor is none`(text: String) { #expect(Place(Cursor(text)) == nil) }
}

@Suite struct WebhookEventTests {
  @Test func `events are told apart, and hooks before an action are let pass`() {
    func event(_ type: String) -> WebhookEvent? {
      WebhookEvent([
        ("EventType", type), ("ConversationSid", "CH1"), ("MessageSid", "IM1"), ("Index", "1"),
        ("ParticipantSid", "MB1"),
        ("DeliveryReceiptSid", "DY1"), ("Status", "read"), ("Identity", "bob"), ("FriendlyName", "Bob"),
      ])
    }
    if case .added? = event("onMessageAdded") {} else { Issue.record("added") }
    if case .updated? = event("onMessageUpdated") {} else { Issue.record("updated") }
    if case .removed? = event("onMessageRemoved") {} else { Issue.record("removed") }
    if case .joined? = event("onParticipantAdded") {} else { Issue.record("joined") }
    if case .left? = event("onParticipantRemoved") {} else { Issue.record("left") }
    if case .participantChanged? = event("onParticipantUpdated") {} else { Issue.record("changed") }
    if case .delivery(let receipt)? = event("onDeliveryUpdated") {
      #expect(receipt.state == .read)
    } else {
      Issue.record("delivery")
    }
    #expect(event("onUserUpdated") == .userChanged(identity: "bob"))
    for type in ["onMessageAdd", "onMessageUpdate", "onParticipantAdd", "onConversationAdded", "", "nonsense"] {
      #expect(event(type) == nil)
    }
  }

  @Test func `half an event is none`() {
    for type in [
      "onMessageAdded", "onMessageUpdated", "onMessageRemoved", "onParticipantAdded", "onParticipantRemoved",
      "onParticipantUpdated", "onDeliveryUpdated", "onUserUpdated",
    ] { #expect(WebhookEvent([("EventType", type)]) == nil) }
  }
}
