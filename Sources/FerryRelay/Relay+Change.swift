package import FerryCore
import FerryRuntime
package import FerryStorage

/// What going over to other settings has done.
package struct RelayChanges: Sendable, Equatable {
  /// Accounts that were connected anew, for the first time or again.
  package var connected: [AccountName] = []
  package var disconnected: [AccountName] = []
  /// Those that noticed nothing.
  package var kept: [AccountName] = []
  package var bridgesAdded: [BridgeName] = []
  package var bridgesRemoved: [BridgeName] = []
  package var bridgesChanged: [BridgeName] = []
  /// Lanes that are no more, with the deliveries that they leave in the journal.
  package var parked: [Parked] = []

  package struct Parked: Sendable, Equatable {
    package let lane: LaneID
    package let deliveries: Int
  }
}

extension Relay {
  /// How long a lane may take for the send that it is making. What is cut off then is looked for at the destination
  /// before it is sent again.
  private static let patience = Duration.seconds(10)

  /// Ends what changes, puts the new table in place, and starts what is new.
  func carryOut(_ change: Change, in group: inout DiscardingTaskGroup) async -> RelayChanges {
    let old = table.withLock { $0 }
    let settings = change.settings
    let gone = Set(old.settings.accounts.keys).subtracting(settings.accounts.keys)
    let replaced = change.replaced.union(Set(settings.accounts.keys).subtracting(old.settings.accounts.keys))
    var new = Self.table(for: settings, healths: old.healths.filter { !replaced.contains($0.key) })

    // Lanes that go on as they are, and accounts.
    let keepsText = old.settings.identities == settings.identities && old.settings.publicURL == settings.publicURL
    if keepsText { new.names = old.names }
    for (id, run) in old.lanes where keepsText && old.settings.spool == settings.spool {
      guard new.lanes[id] != nil, let bridge = new.router.bridges[id.bridge], bridge == old.router.bridges[id.bridge],
        bridge.accounts.isDisjoint(with: replaced.union(gone))
      else { continue }
      new.lanes[id] = run
    }
    for (name, running) in old.accounts where settings.accounts[name] != nil && !replaced.contains(name) {
      new.accounts[name] = running
    }
    let ended = old.lanes.filter { new.lanes[$0.key]?.running !== $0.value.running }
    let started = new.lanes.filter { old.lanes[$0.key]?.running !== $0.value.running }

    // Sources first: what they still say is journaled for the lanes of the old table, and lies there for the new ones.
    for name in replaced.union(gone) { old.accounts[name]?.cancel() }
    for name in replaced.union(gone) { await old.accounts[name]?.waitUntilEnded() }
    old.common.cancel()
    for lane in ended.values { lane.end() }
    // All at once: a service that hangs has many of them.
    await withDiscardingTaskGroup { waiting in
      for lane in ended.values {
        waiting.addTask { await lane.running.waitUntilEnded(patience: Self.patience, on: settings.clock) }
      }
    }
    for name in gone { old.healths[name]?.connection(ConnectionState(.stopped, reason: "no longer configured")) }
    let table = new
    let typed = self.table.withLock { current -> Set<LaneID> in
      let typed = table.typing.take(over: current.typing)
      current = table
      return typed
    }
    table.typing.wake(typed)
    start(lanes: started.keys, accounts: replaced.intersection(settings.accounts.keys), common: true, table, in: &group)
    return await report(old, table, connected: replaced, gone: gone)
  }

  private func report(
    _ old: Table, _ new: Table, connected: Set<AccountName>, gone: Set<AccountName>
  ) async -> RelayChanges {
    var changes = RelayChanges()
    let before = old.router.bridges
    let after = new.router.bridges
    changes.connected = connected.sorted()
    changes.disconnected = gone.sorted()
    changes.kept = new.settings.accounts.keys.filter { !connected.contains($0) }.sorted()
    changes.bridgesAdded = after.keys.filter { before[$0] == nil }.sorted()
    changes.bridgesRemoved = before.keys.filter { after[$0] == nil }.sorted()
    changes.bridgesChanged = after.keys.filter { before[$0] != nil && before[$0] != after[$0] }.sorted()
    let counts = (try? await new.settings.journal.counts()) ?? [:]
    changes.parked = old.lanes.keys.filter { new.lanes[$0] == nil }
      .map { RelayChanges.Parked(lane: $0, deliveries: (counts[$0]?.pending ?? 0) + (counts[$0]?.waiting ?? 0)) }
      .sorted { $0.lane.description < $1.lane.description }
    return changes
  }
}

extension Bridge {
  var accounts: Set<AccountName> { Set(routes.flatMap { [$0.key] + $0.value }.map(\.account)) }
}
