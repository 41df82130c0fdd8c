import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTestKit
import FoundationEssentials
import Testing

/// Random conversations over random bridges with random faults, against a plain model of what each account must show
/// in the end. A seed that fails is printed; `FERRY_SEED=N` plays it alone, `FERRY_SEEDS=N` plays so many.
@Suite(.timeLimit(.minutes(10))) struct ModelTests {
  private static var seeds: [UInt64] {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["FERRY_SEED"].flatMap({ UInt64($0) }) { return [seed] }
    return Array(0..<(environment["FERRY_SEEDS"].flatMap { UInt64($0) } ?? 60))
  }

  @Test("every account shows in the end what the model says", arguments: seeds)
  func converges(seed: UInt64) async throws {
    let world = try World(seed: seed)
    for _ in 0..<world.restarts { try await world.live() }
    try await world.settle()
    try await world.check()
  }
}

/// Who says what where, and what was said.
private actor World {
  /// A message that a person wrote.
  private struct Said {
    let account: AccountName
    let id: MessageID
    var text: String
    var isDeleted = false
    var reactions: Set<String> = []
    /// Each reads up to one message.
    var readers: [Author] = []
  }

  /// Somebody who comes to one account, and goes again perhaps.
  private struct Guest {
    let account: AccountName
    let author: Author
    var isPresent = true
  }

  private let seed: UInt64
  private let ann = Author(id: "ann", name: "Ann")
  private var random: SeededGenerator
  private let rig: Rig
  private let bridges: [Bridge]
  private let names: [AccountName]
  private var said: [Said] = []
  private var guests: [Guest] = []
  let restarts: Int

  init(seed: UInt64) throws {
    self.seed = seed
    var random = SeededGenerator(seed: seed)
    names = ["a", "b", "c", "d"].prefix(2 + Int(random.next() % 3)).map { AccountName($0) }
    var accounts: [AccountName: MemoryProvider] = [:]
    for name in names {
      let (batch, short, apart) = (random.next() % 2, random.next() % 3, random.next() % 3)
      accounts[name] = MemoryProvider { capabilities in
        capabilities.batch = batch == 0 ? 1 : 7
        if short == 0 { capabilities.bodyCharacters = 9 }
        if apart == 0 {
          capabilities.attachmentsPerMessage = 1
          capabilities.captions = false
        }
      }
      if random.next() % 2 == 0 {
        let generator = Locked(SeededGenerator(seed: random.next()))
        accounts[name]?.scrambleEvents { events in
          generator.withLock { Self.scrambled(events, with: &$0) }
        }
      }
    }
    bridges = Self.topology(names, with: &random)
    rig = try Rig(accounts, bridges)
    restarts = 1 + Int(random.next() % 3)
    self.random = random
  }

  /// Pairs, stars, rings, chains, one-way streets, bridges that share addresses.
  private static func topology(_ names: [AccountName], with random: inout SeededGenerator) -> [Bridge] {
    let addresses = names.map { Address(account: $0, channel: Rig.room) }
    let all = Set(Bridge.Mirrored.allCases)
    func bridge(_ name: String, _ members: [Address]) -> Bridge {
      Bridge(name: BridgeName(name), routes: Bridge.mesh(members), mirror: all)
    }
    switch random.next() % 4 {
    case 0: return [bridge("mesh", addresses)]
    case 1:
      // Each with the next, and the last with the first: a ring of bridges.
      return addresses.indices.map { index in
        bridge("ring\(index)", [addresses[index], addresses[(index + 1) % addresses.count]])
      }.prefix(addresses.count == 2 ? 1 : addresses.count).map { $0 }
    case 2:
      return addresses.indices.dropLast().map { bridge("chain\($0)", [addresses[$0], addresses[$0 + 1]]) }
    default:
      let hub = Bridge(name: "out", routes: [addresses[0]: Array(addresses.dropFirst())], mirror: all)
      return addresses.count == 2 ? [hub] : [hub, bridge("back", [addresses[1], addresses[0]])]
    }
  }

  /// Posts keep their order, and so do comings and goings; what is about a message may come before it, and anything may
  /// come twice.
  private static func scrambled(_ events: [Event], with random: inout SeededGenerator) -> [Event] {
    var arranged: [Event] = []
    for event in events {
      let keepsOrder =
        switch event.kind {
        case .posted, .joined, .left: true
        case .edited, .deleted, .read, .reacted: false
        }
      let place = keepsOrder ? arranged.count : Int(random.next() % UInt64(arranged.count + 1))
      arranged.insert(event, at: place)
      if random.next() % 4 == 0 { arranged.append(event) }
    }
    return arranged
  }

  // MARK: Living

  /// A relay runs while people talk and services fail, and is ended at some moment. They go on after it has ended.
  func live() async throws {
    let steps = 3 + Int(random.next() % 9)
    try await rig.relaying { _ in
      for _ in 0..<steps { try await self.actAndPause() }
    }
    for _ in 0..<(steps / 2) { act() }
  }

  private func actAndPause() async throws {
    act()
    if random.next() % 3 == 0 { try await SystemClock().sleep(for: .milliseconds(1)) }
  }

  private func pick<Element>(_ elements: [Element]) -> Element? {
    elements.isEmpty ? nil : elements[Int(random.next() % UInt64(elements.count))]
  }

  private func act() {
    guard let name = pick(names) else { return }
    let index = pick(said.indices.filter { !said[$0].isDeleted })
    switch (random.next() % 13, index) {
    case (5...6, .some(let index)):
      said[index].text = "edit \(random.next() % 1000) of \(said[index].id)"
      rig[said[index].account].change(said[index].id, to: said[index].text, in: Rig.room)
    case (7, .some(let index)):
      said[index].isDeleted = true
      rig[said[index].account].remove(said[index].id, in: Rig.room, by: ann)
    case (8, .some(let index)):
      let emoji = pick(["+", "-", "*"]) ?? "+"
      said[index].reactions.insert(emoji)
      rig[said[index].account].react(emoji, to: said[index].id, in: Rig.room, by: ann)
    case (9, .some(let index)):
      let reader = Author(id: UserID("reader\(said[index].readers.count)"), name: "Reader")
      said[index].readers.append(reader)
      rig[said[index].account].read(said[index].id, in: Rig.room, by: reader)
    case (10, _): comeOrGo(at: name)
    case (11, _): fail(at: name)
    default: say(at: name)
    }
  }

  private func say(at name: AccountName) {
    let number = said.count
    let text = random.next() % 5 == 0 ? "a longer text, number \(number), in parts" : "text \(number)"
    let bytes: [UInt8] = [UInt8(truncatingIfNeeded: number), 1]
    let files =
      random.next() % 6 == 0
      ? [FerryCore.Attachment(name: "f.bin", mediaType: "image/png", reference: rig[name].store(bytes))] : []
    let id = rig[name].say(text, by: ann, in: Rig.room, attachments: files)
    said.append(Said(account: name, id: id, text: text))
  }

  private func comeOrGo(at name: AccountName) {
    if random.next() % 3 == 0, let index = pick(guests.indices.filter { guests[$0].isPresent }) {
      guests[index].isPresent = false
      rig[guests[index].account].enter(guests[index].author, isPresent: false, in: Rig.room)
    } else {
      let author = Author(id: UserID("guest\(guests.count)"), name: "Guest \(guests.count)")
      guests.append(Guest(account: name, author: author))
      rig[name].enter(author, isPresent: true, in: Rig.room)
    }
  }

  private func fail(at name: AccountName) {
    let write = pick(MemoryProvider.Write.allCases.filter { $0 != .typing }) ?? .post
    let count = 1 + Int(random.next() % 3)
    let error = FerryError(.unavailable, "It fails now and then.", retry: .now)
    rig[name].failNext(count, write, with: error, afterActing: random.next() % 2 == 0)
  }

  // MARK: The end

  /// A last relay that is left alone until it has heard of everything, and every lane is empty.
  func settle() async throws {
    let (seed, rig) = (seed, rig)
    let sources = Set(bridges.flatMap(\.routes.keys).map(\.account))
    try await rig.relaying(gracefully: true) { journal in
      var quiet = 0
      while quiet < 3 {
        var isHeard = true
        for source in sources {
          let place = try await journal.cursors(of: source)[Rig.room]?.0
          isHeard = isHeard && place == Cursor(String(rig[source].events(in: Rig.room).count))
        }
        let counts = try await journal.counts().values
        quiet = isHeard && counts.allSatisfy { $0.pending == 0 } ? quiet + 1 : 0
        try await SystemClock().sleep(for: .milliseconds(4))
      }
      #expect(try await journal.deadLetters().isEmpty, "seed \(seed)")
    }
  }

  func check() async throws {
    for name in names {
      let shown = rig[name].messages(in: Rig.room)
      #expect(shown.filter { $0.stamp == nil }.map(\.text) == own(name).map(\.text), "seed \(seed): \(name)")
      var copies = shown.filter { $0.stamp != nil }
      for (bridge, source) in sources(of: name) {
        let parts = copies.filter { $0.stamp?.bridge == bridge && $0.stamp?.origin == source }
        copies.removeAll { parts.contains($0) }
        #expect(texts(of: parts) == own(source.account).map(\.text), "seed \(seed): \(source) at \(name) by \(bridge)")
      }
      #expect(copies.isEmpty, "seed \(seed): \(name) shows copies that no bridge makes")
      checkMarks(at: name)
      try await checkMembers(at: name)
    }
  }

  /// The accounts from which an account is written to, and by which bridge.
  private func sources(of name: AccountName) -> [(bridge: BridgeName, source: Address)] {
    bridges.flatMap { bridge in
      bridge.routes.filter { $0.value.contains(Address(account: name, channel: Rig.room)) }
        .map { (bridge.name, $0.key) }
    }
  }

  /// Each reaction and read mark has come, be it before or after its message; twice is harmless.
  private func checkMarks(at name: AccountName) {
    let come = rig[name].events(in: Rig.room).compactMap { event -> Stamped? in
      switch event.kind {
      case .reacted(let reaction): reaction.stamp.map { Stamped($0, reaction.emoji) }
      case .read(let mark): mark.stamp.map { Stamped($0, mark.by?.id.rawValue ?? "") }
      default: nil
      }
    }
    for (bridge, source) in sources(of: name) {
      for message in own(source.account) {
        let readers = message.readers.map { Self.shown($0, of: source).rawValue }
        for mark in message.reactions.union(readers) {
          let wanted = Stamped(Stamp(bridge: bridge, origin: source, id: message.id, revision: 0, part: 0), mark)
          #expect(come.contains(wanted), "seed \(seed): \(mark) on \(message.id) of \(source) at \(name)")
        }
      }
    }
  }

  /// Who is there at a source is there, and who has gone is not.
  private func checkMembers(at name: AccountName) async throws {
    let members = try await rig[name].members(of: Rig.room).map(\.id)
    for (bridge, source) in sources(of: name) {
      for guest in guests where guest.account == source.account {
        #expect(
          members.contains(Self.shown(guest.author, of: source)) == guest.isPresent,
          "seed \(seed): \(guest.author.id) of \(source) at \(name) by \(bridge)")
      }
    }
  }

  /// The id that a copy's author has.
  private static func shown(_ author: Author, of source: Address) -> UserID {
    UserID("\(source.account):\(author.id)")
  }

  private struct Stamped: Hashable {
    let bridge: BridgeName
    let origin: Address
    let id: MessageID
    /// An emoji, or who has read.
    let mark: String

    init(_ stamp: Stamp, _ mark: String) {
      (bridge, origin, id, self.mark) = (stamp.bridge, stamp.origin, stamp.id, mark)
    }
  }

  private func own(_ account: AccountName) -> [Said] { said.filter { $0.account == account && !$0.isDeleted } }

  /// The copies' texts, one for each original: parts joined, pictures that travel apart left out.
  private func texts(of copies: [Message]) -> [String] {
    var order: [MessageID] = []
    var texts: [MessageID: [Message]] = [:]
    for copy in copies {
      guard let origin = copy.stamp?.id else { continue }
      if texts[origin] == nil { order.append(origin) }
      texts[origin, default: []].append(copy)
    }
    return order.map { origin in
      let whole = (texts[origin] ?? []).sorted { ($0.stamp?.part ?? 0) < ($1.stamp?.part ?? 0) }.map(\.text).joined()
      // A picture that fails too often leaves a note (G7).
      return String(whole.split(separator: "\n[f.bin could not be copied", maxSplits: 1).first ?? "")
    }
  }
}
