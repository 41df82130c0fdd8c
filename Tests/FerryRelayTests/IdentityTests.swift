import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import Testing

private let people = Identities([
  "alice": ["here": "alice@example.org", "there": "alice99"],
  "bob": ["here": "bob", "there": "Bob Marley"],
  "bobby": ["here": "bob-the-builder", "there": "bobby"],
  "carol": ["here": "carol"],
  // Called at one place what somebody else is called in the configuration.
  "dora": ["here": "eve", "there": "dora1"],
  "eve": ["here": "eve2", "there": "eve1"],
])

@Suite struct MentionTests {
  @Test(
    "a mention names the person as the far side does",
    arguments: [
      ("@alice hi", "@alice99 hi"),
      ("hi @ALICE, (@alice@example.org) and @Bob!", "hi @alice99, (@alice99) and @Bob Marley!"),
      ("@bob-the-builder @bob.", "@bobby @Bob Marley."),
      ("@bob's", "@Bob Marley's"),
      // The id at the source comes before another one's name.
      ("@eve @eve2", "@dora1 @eve1"),
      // Somebody without an id over there, and nobody.
      ("@carol @nobody", "@carol @nobody"),
      // Parts of words.
      ("@bobcat @alice2 @bob_x x@bob me@alice @@bob a/@bob @bob-x @bob.x @bob@x", nil),
      ("@ @", nil), ("@", nil), ("no mention", nil), ("", nil),
      // Code and URLs.
      ("`@bob` and ```\n@bob\n``` @bob", "`@bob` and ```\n@bob\n``` @Bob Marley"),
      ("```@bob", nil), ("` @bob", "` @Bob Marley"), ("`a\n@bob`", "`a\n@Bob Marley`"),
      (
        "https://x.org/@bob/ see www.y.org/?@bob (http://z/@bob) @bob",
        "https://x.org/@bob/ see www.y.org/?@bob (http://z/@bob) @Bob Marley"
      ),
      ("日本@bob", nil), ("日本 @bob、", "日本 @Bob Marley、"), ("👋🏽@bob", "👋🏽@Bob Marley"),
    ] as [(String, String?)])
  func rewriting(text: String, expected: String?) {
    #expect(people.rewrite(text, from: "here", to: "there") == expected ?? text)
  }

  @Test func theWayBackNamesThemAsThisSideDoes() {
    #expect(
      people.rewrite("@alice99 @bob marley @bobby", from: "there", to: "here")
        == "@alice@example.org @bob @bob-the-builder")
    #expect(people.rewrite("@alice99", from: "there", to: "there") == "@alice99")
    #expect(people.rewrite("@alice", from: "elsewhere", to: "there") == "@alice")
  }

  /// Not quadratic in the text, nor linear in the people for each mention.
  @Test(.timeLimit(.minutes(1))) func manyPeopleAndALongText() {
    var many: [String: [AccountName: UserID]] = [:]
    for number in 0..<5000 { many["p\(number)"] = ["here": UserID("u\(number)"), "there": UserID("v\(number)")] }
    let text = (0..<5000).map { "@u\($0)" }.joined(separator: " ") + String(repeating: "@", count: 10_000)
    #expect(Identities(many).rewrite(text, from: "here", to: "there").hasPrefix("@v0 @v1 @v2 "))
    #expect(people.rewrite(String(repeating: "`", count: 20_001), from: "here", to: "there").count == 20_001)
  }

  @Test func peopleAreFoundByTheirIdsInAnyCase() {
    #expect(people.person("ALICE99", at: "there") == "alice")
    #expect(people.person("alice", at: "there") == nil)
    #expect(people.person("eve", at: "here") == "dora")
  }
}

@Suite struct ShownTextTests {
  @Test(
    "names stay on their line and show what they are",
    arguments: [
      ("Ann", "Ann"), ("  Ann \t Lee\n", "Ann Lee"), ("a\u{0}b\u{7}c\u{1b}[31m", "abc[31m"),
      ("\u{202e}nnA", "nnA"), ("A\u{200b}nn\u{feff}\u{2066}x", "Annx"), ("a\u{2028}b", "a b"),
      ("👩\u{200d}🚀", "👩\u{200d}🚀"), ("\u{200d}\u{2800}\u{3164}", ""), ("\u{0301}", "\u{0301}"), ("", ""),
      ("نیم\u{200c}فاصله", "نیم\u{200c}فاصله"),
    ])
  func names(text: String, expected: String) {
    let template = AuthorTemplate("{name}")
    let author = template.author(
      for: Author(id: "u1", name: text), at: Address(account: "a", channel: "c"), in: "b")
    #expect(author.name == (expected.isEmpty ? "u1" : expected))
  }

  @Test func endlessNamesAreCut() {
    let template = AuthorTemplate("{name}{name}")
    let place = Address(account: "a", channel: "c")
    for text in [String(repeating: "x", count: 100_000), "a" + String(repeating: "\u{301}", count: 100_000)] {
      let name = template.author(for: Author(id: "u1", name: text), at: place, in: "b").name
      #expect(name.unicodeScalars.count <= 401)
    }
    let nothing = template.author(for: Author(id: "\u{200b}", name: "\u{0}"), at: place, in: "b").name
    #expect(nothing == "somebody")
  }

  @Test func aTemplateShowsThePersonWhereItAsks() {
    let place = Address(account: "there", channel: "c")
    let template = AuthorTemplate("{person} of {account}")
    let alice = template.author(for: Author(id: "Alice99", name: "Al"), at: place, in: "b", identities: people)
    #expect(alice.name == "alice of there")
    let other = template.author(for: Author(id: "zed", name: "{person}"), at: place, in: "b", identities: people)
    #expect(other.name == "{person} of there")
  }

  @Test(
    "what turns the direction of writing ends in its own line",
    arguments: [
      ("plain", "plain"), ("\u{202e}abc", "\u{202e}abc\u{202c}"), ("\u{202b}a\u{202c}b", "\u{202b}a\u{202c}b"),
      ("\u{2067}a\u{202e}b\nc", "\u{2067}a\u{202e}b\u{202c}\u{2069}\nc"),
      ("\u{2066}\u{202e}\u{2069}x", "\u{2066}\u{202e}\u{2069}x"),
      ("\u{202c}\u{2069}…", "\u{202c}\u{2069}…"), ("\u{202a}\u{202a}\r\nx", "\u{202a}\u{202a}\u{202c}\u{202c}\r\nx"),
      ("a\u{0}b\u{200b}…", "a\u{0}b\u{200b}…"),
    ])
  func bodies(text: String, expected: String) async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { _, _ async throws in
      rig.say(text, at: "here")
      let copy = try #require(await rig.wait(for: 1, at: "there").first)
      #expect(Array(copy.text.unicodeScalars) == Array(expected.unicodeScalars))
    }
  }
}

@Suite(.timeLimit(.minutes(2))) struct LookAlikeTests {
  @Test func whoeverLooksLikeANativeIsToldApart() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { _, _ async throws in
      rig.say("I live here", at: "there", by: "Ann")
      await rig.wait(for: 1, at: "here")
      // Cyrillic, full width, an invisible letter, another case, a digit, two letters that look like one.
      let posers = ["Ann", "Аnn", "Ａｎｎ", "A\u{200b}nn", "ANN", "A n n"]
      for name in posers { rig.say("x", at: "here", by: name) }
      let shown = await rig.wait(for: 7, at: "there").dropFirst().map(\.author.name)
      #expect(shown.count == 6)
      for name in shown { #expect(name.contains(" (here"), "\(name)") }
      #expect(Set(shown).count == 6)
      rig.say("y", at: "here", by: "Barnaby")
      #expect(await rig.wait(for: 8, at: "there").last?.author.name == "Barnaby")
    }
  }

  @Test func whoCameFirstIsKnownAfterARestart() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "site": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { _, _ async throws in
      rig.say("1", at: "here", by: "Mia")
      await rig.wait(for: 1, at: "there")
      rig.say("2", at: "site", by: "mia")
      #expect(await rig.wait(for: 2, at: "there").last?.author.name == "mia (site)")
    }
    try await rig.relaying { _, _ async throws in
      rig.say("3", at: "site", by: "mia")
      #expect(await rig.wait(for: 3, at: "there").last?.author.name == "mia (site)")
      rig.say("4", at: "here", by: "Mia")
      #expect(await rig.wait(for: 4, at: "there").last?.author.name == "Mia")
      // At home, both are natives: each keeps the name there, and the other is told apart.
      #expect(rig["here"].messages(in: RelayRig.room).map(\.author.name).contains("mia (site)"))
    }
  }

  @Test func whoPosesAsATellingApartGetsTheId() async throws {
    let rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    try await rig.relaying { _, _ async throws in
      rig.say("1", at: "there", by: "Ann")
      rig.say("2", at: "there", by: "Ann (here)")
      await rig.wait(for: 2, at: "here")
      rig.say("3", at: "here", by: "Ann")
      #expect(await rig.wait(for: 3, at: "there").last?.author.name == "Ann (here:ann)")
    }
  }

  @Test func onePersonOnBothSidesIsNoPoser() async throws {
    let identities = Identities(["ann": ["here": "ann", "there": "ANN"]])
    var rig = try RelayRig(["here": MemoryProvider(), "there": MemoryProvider()])
    rig.identities = identities
    let ready = rig
    try await ready.relaying { _, _ async throws in
      ready.say("1", at: "there", by: "Ann")
      await ready.wait(for: 1, at: "here")
      ready.say("2", at: "here", by: "Ann")
      #expect(await ready.wait(for: 2, at: "there").last?.author.name == "Ann")
      ready.say("3 @ann", at: "here", by: "Zoe")
      #expect(await ready.wait(for: 3, at: "there").last?.text == "3 @ANN")
    }
  }

  @Test func aBridgeMayLeaveNamesAlone() async throws {
    let addresses = ["here", "there"].map { Address(account: $0, channel: RelayRig.room) }
    let rig = try RelayRig(
      ["here": MemoryProvider(), "there": MemoryProvider()],
      [Bridge(name: "pair", routes: Bridge.mesh(addresses), mirror: [.messages], distinguish: false)])
    try await rig.relaying { _, _ async throws in
      rig.say("1", at: "there", by: "Ann")
      await rig.wait(for: 1, at: "here")
      rig.say("2", at: "here", by: "Ann")
      #expect(await rig.wait(for: 2, at: "there").last?.author.name == "Ann")
    }
  }
}
