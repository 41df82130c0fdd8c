import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import Testing

private let here = Address(account: "here", channel: "lobby")
private let site = Address(account: "site", channel: "chatroom")

@Suite struct TextSplitterTests {
  static let texts = [
    "", "a", "hello there, this is a line", String(repeating: "x", count: 100),
    "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family", "e\u{301}e\u{301}e\u{301}e\u{301} accents", "日本語のとても長い文章です、区切りなし",
    "שלום עולם ועוד קצת טקסט", "tabs\tand\nlines\r\nand spaces   ", "🇯🇵🇩🇪🇫🇷🇮🇹🇪🇸",
  ]

  @Test(arguments: texts, [1, 4, 7, 16, 64])
  func thePartsJoinedAreTheTextAndEachFitsInBytes(_ text: String, _ limit: Int) {
    let parts = TextSplitter(bytes: max(limit, 4), characters: nil).parts(of: text)
    #expect(Array(parts.joined().utf8) == Array(text.utf8))
    #expect(parts.allSatisfy { $0.utf8.count <= max(limit, 4) })
    #expect(!parts.isEmpty)
  }

  @Test(arguments: texts, [1, 3, 10])
  func thePartsFitInCharactersAndNoCharacterIsCut(_ text: String, _ limit: Int) {
    let parts = TextSplitter(bytes: nil, characters: limit).parts(of: text)
    #expect(Array(parts.joined().utf8) == Array(text.utf8))
    #expect(parts.allSatisfy { $0.count <= limit })
    #expect(parts.reduce(0) { $0 + $1.count } == text.count)
  }

  @Test func wordsStayWholeWhereTheyCan() {
    let parts = TextSplitter(bytes: 20, characters: nil).parts(of: "the quick brown fox jumps over the lazy dog")
    #expect(parts == ["the quick brown fox ", "jumps over the lazy ", "dog"])
  }

  @Test func whatJSONMakesLongerIsCountedSo() {
    let text = String(repeating: "\"\\\n\u{1}a", count: 10)
    let parts = TextSplitter(bytes: 26, characters: nil, isJSON: true).parts(of: text)
    #expect(parts.joined() == text)
    #expect(parts.count == 5, "two of the five characters' 13 bytes a part")
    #expect(TextSplitter(bytes: 130, characters: nil, isJSON: true).parts(of: text) == [text])
  }

  @Test func aLongCharacterBehindACutFits() {
    let long = "e" + String(repeating: "\u{301}", count: 8)
    let parts = TextSplitter(bytes: 20, characters: nil).parts(of: "a b c d e f g h i j" + long)
    #expect(parts.joined() == "a b c d e f g h i j" + long)
    #expect(parts.allSatisfy { $0.utf8.count <= 20 })
  }

  @Test func aTextThatFitsIsNotTouched() {
    #expect(TextSplitter(bytes: 5, characters: 5).parts(of: "hello") == ["hello"])
    #expect(TextSplitter(bytes: nil, characters: nil).parts(of: Self.texts[4]) == [Self.texts[4]])
  }
}

@Suite struct AuthorTemplateTests {
  let ann = Author(id: "u1", name: "Ann")

  @Test func placeholdersAreReplacedOnceAndNamesAreNotTemplates() {
    let author = AuthorTemplate("{name} ({account})").author(for: ann, at: here, in: "lobby")
    #expect(author.name == "Ann (here)")
    #expect(author.id == "here:u1")
    let tricky = Author(id: "u2", name: "{account} {")
    #expect(AuthorTemplate("{name}").author(for: tricky, at: here, in: "lobby").name == "{account} {")
    #expect(AuthorTemplate("{nick} {name").author(for: ann, at: here, in: "lobby").name == "{nick} {name")
  }

  @Test func anEmptyNameShowsTheId() {
    let nameless = Author(id: "u3", name: "")
    #expect(AuthorTemplate("{name}").author(for: nameless, at: here, in: "lobby").name == "u3")
  }
}

@Suite struct TypingThrottleTests {
  let key = TypingThrottle.Key(source: here, sender: "ann")

  func at(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

  @Test func typingIsPassedOnAtMostOnceASecond() {
    var throttle = TypingThrottle()
    let sent = stride(from: Int64(0), to: 3000, by: 100).filter { throttle.shouldSend(true, by: key, at: at($0)) }
    #expect(sent == [0, 1000, 2000])
  }

  @Test func itsEndIsPassedOnOnceAndOnlyWhenItHadBegun() {
    var throttle = TypingThrottle()
    let sent = [(false, 0), (true, 1), (false, 2), (false, 3)].map { on, time in
      throttle.shouldSend(on, by: key, at: at(time))
    }
    #expect(sent == [false, true, true, false])
  }

  @Test func withoutRenewalItEndsAfterFiveSeconds() {
    var throttle = TypingThrottle()
    _ = throttle.shouldSend(true, by: key, at: at(0))
    _ = throttle.shouldSend(true, by: key, at: at(900))
    let expired = [Int64(5000), 5900, 9000].map { throttle.expired(at: at($0)) }
    #expect(expired == [[], [key], []])
  }

  @Test func theSendersMessageEndsItWithoutAWord() {
    var throttle = TypingThrottle()
    _ = throttle.shouldSend(true, by: key, at: at(0))
    throttle.ended(by: key)
    let expired = throttle.expired(at: at(9000))
    let again = throttle.shouldSend(true, by: key, at: at(10))
    #expect(expired.isEmpty)
    #expect(again)
  }
}

@Suite struct RouterTests {
  @Test func anEventGoesToEveryOtherAddressOfItsBridgesAndOnlyWhereItsKindIsMirrored() {
    let third = Address(account: "app", channel: "x")
    let router = Router([
      Bridge(name: "all", routes: Bridge.mesh([here, site, third]), mirror: [.messages, .edits]),
      Bridge(name: "news", routes: [here: [site]], mirror: [.messages]),
    ])
    let message = Message(id: "1", author: Author(id: "a", name: "A"), text: "t", time: Timestamp(milliseconds: 0))
    let posted = Event(key: "1", channel: "lobby", time: message.time, kind: .posted(message))
    var edited = posted
    edited.kind = .edited(message)
    var deleted = posted
    deleted.kind = .deleted(Deletion(id: "1"))
    func destinations(_ event: Event) -> Set<String> { Set(router.lanes(for: event, from: "here").map(\.description)) }
    #expect(destinations(posted) == ["all>site:chatroom", "all>app:x", "news>site:chatroom"])
    #expect(destinations(edited) == ["all>site:chatroom", "all>app:x"])
    #expect(destinations(deleted).isEmpty)
    #expect(router.lanes(for: posted, from: "elsewhere").isEmpty)
    #expect(router.sources(of: "app") == ["x"])
  }
}
