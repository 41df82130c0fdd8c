import FerryCore
import FerryRelay
import Testing

@Suite struct LegPlanTests {
  private static let here = Address(account: "here", channel: "lobby")
  private static let site = Address(account: "site", channel: "chat")
  private static let app = Address(account: "app", channel: "room")

  private func bridge(
    _ name: BridgeName, _ addresses: [Address], mirror: Set<Bridge.Mirrored> = Set(Bridge.Mirrored.allCases)
  )
    -> Bridge
  { Bridge(name: name, routes: Bridge.mesh(addresses), mirror: mirror) }

  private func outcome(
    _ what: String, mirror: Set<Bridge.Mirrored> = Set(Bridge.Mirrored.allCases),
    from source: (inout Capabilities) -> Void = { _ in }, to destination: (inout Capabilities) -> Void = { _ in }
  ) -> LegPlan.Item? {
    var able = Capabilities()
    able.edits = true
    able.deletes = true
    able.typing = true
    able.members = true
    able.reads = true
    able.reactions = true
    able.attachments = .stored
    able.history = .events
    able.certainty = .always
    var (from, to) = (able, able)
    source(&from)
    destination(&to)
    let bridge = bridge("b", [Self.here, Self.site], mirror: mirror)
    return LegPlan(bridge, from: Self.here, from, to: Self.site, to).items.first { $0.what == what }
  }

  @Test func whatBothCanIsKept() {
    for what in [
      "messages", "authors", "times", "edits", "deletes", "images", "typing", "members", "reads", "reactions",
    ] {
      #expect(outcome(what)?.outcome == .kept, "\(what)")
    }
  }

  @Test func whatTheBridgeDoesNotMirrorIsDropped() {
    #expect(outcome("typing", mirror: [.messages])?.how == "not in the bridge's \"mirror\"")
    #expect(outcome("messages", mirror: [.typing])?.outcome == .dropped)
  }

  @Test func theReasonOfTheProviderIsGiven() {
    let typing = outcome("typing") {
      $0.typing = false
      $0.absent["typing"] = "It needs an API key."
    }
    #expect(
      typing == LegPlan.Item(what: "typing", outcome: .dropped, how: "here does not tell of them: It needs an API key.")
    )
    let reads = outcome("reads", to: { $0.reads = false })
    #expect(reads?.how == "site cannot show them")
  }

  @Test func editsBecomeNotesWhereTheyCannotBeMade() {
    #expect(outcome("edits", to: { $0.edits = false })?.outcome == .converted)
    #expect(outcome("late edits", to: { $0.editWindow = 600 })?.how == "site allows edits for 600 s after posting")
  }

  @Test func limitsAndOutagesAreTold() {
    let limits = outcome("messages") { _ in
    } to: {
      $0.bodyBytes = 100
      $0.bodyCharacters = 10
    }
    #expect(limits?.how == "split beyond 10 characters or 100 bytes")
    #expect(outcome("rate", to: { $0.sendsPerSecond = 30 })?.how.hasPrefix("at most 30 messages a second") == true)
    #expect(outcome("images", to: { $0.attachments = .link })?.outcome == .converted)
    #expect(outcome("images", to: { $0.captions = false })?.how == "each in a message of its own")
    #expect(outcome("said while the relay was down", from: { $0.history = .none })?.outcome == .dropped)
    #expect(outcome("sends with a lost answer", to: { $0.certainty = .none })?.outcome == .converted)
    #expect(outcome("everything", from: { $0.receives = false })?.outcome == .dropped)
  }

  @Test func aPairJoinedTwiceIsWarnedOf() {
    let warnings = BridgeWarnings.of([bridge("a", [Self.here, Self.site]), bridge("b", [Self.site, Self.here])])
    #expect(warnings.contains("here:lobby is copied to site:chat twice: by a and by b"))
    #expect(warnings.count == 2)
  }

  @Test func aChainThatDoesNotCarryOnIsWarnedOf() {
    let warnings = BridgeWarnings.of([bridge("a", [Self.here, Self.site]), bridge("b", [Self.site, Self.app])])
    #expect(warnings.count == 2)
    #expect(
      warnings.first?.hasPrefix("a brings messages to site:chat, and b takes messages from there to app:room") == true)
    #expect(BridgeWarnings.of([bridge("a", [Self.here, Self.site, Self.app])]).isEmpty)
  }
}
