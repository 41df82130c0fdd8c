import FerryCore
import FoundationEssentials
import Testing

@Suite struct IdentifierTests {
  @Test(
    "an address divides at its first colon",
    arguments: [
      ("here:lobby", "here", "lobby"), ("a:b:c", "a", "b:c"), ("site:presence-room@1", "site", "presence-room@1"),
      ("a: b", "a", " b"), ("a:ü", "a", "ü"),
    ])
  func addresses(text: String, account: String, channel: String) throws {
    let address = try #require(Address(text))
    #expect(address.account == AccountName(account))
    #expect(address.channel == ChannelID(channel))
    #expect(address.description == text)
  }

  @Test("an address needs something on both sides of a colon", arguments: ["", ":", "a", "a:", ":b"])
  func badAddresses(text: String) {
    #expect(Address(text) == nil)
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(Address.self, from: JSONEncoder().encode(text))
    }
  }

  @Test("identifiers and addresses are plain strings in JSON")
  func coding() throws {
    struct Sample: Codable, Equatable {
      var id: MessageID
      var address: Address
      var time: Timestamp
    }
    let sample = Sample(
      id: "7|\"x\"", address: Address(account: "here", channel: "a:b"), time: Timestamp(milliseconds: -1))
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    let data = try encoder.encode(sample)
    #expect(String(decoding: data, as: UTF8.self) == #"{"address":"here:a:b","id":"7|\"x\"","time":-1}"#)
    #expect(try JSONDecoder().decode(Sample.self, from: data) == sample)
  }

  @Test("addresses are ordered by account, then channel")
  func order() {
    let sorted = ["b:a", "a:b", "a:a"].compactMap { Address($0) }.sorted()
    #expect(sorted.map(\.description) == ["a:a", "a:b", "b:a"])
  }
}

@Suite struct StampTests {
  @Test("a send's key is the same on every retry and differs by every part of the stamp")
  func keys() {
    let stamp = Stamp(bridge: "lobby", origin: Address(account: "here", channel: "x"), id: "17")
    #expect(stamp.key == "lobby|here:x|17|0|0")
    var others = [stamp, stamp, stamp, stamp, stamp]
    others[0].bridge = "news"
    others[1].origin = Address(account: "here", channel: "y")
    others[2].id = "18"
    others[3].revision = 1
    others[4].part = 1
    #expect(Set(others.map(\.key) + [stamp.key]).count == 6)
  }

  @Test("ids and channels that contain the divider make no two stamps alike")
  func dividers() {
    let stamps = [
      ("b|c", "d"), ("b", "c|d"), ("b\\", "c|d"), ("b\\|c", "d"), ("b|c|d", "e"), ("b", "c|d|e"), ("b|c", "d|e"),
    ]
    .map { Stamp(bridge: "l", origin: Address(account: "a", channel: ChannelID($0)), id: MessageID($1)) }
    #expect(Set(stamps.map(\.key)).count == stamps.count)
  }
}
