package import FerryCore
package import FerryStorage

/// Which lanes an event goes to. A pure value, made from the bridges at start-up.
package struct Router: Sendable {
  private struct Route {
    let bridge: BridgeName
    let mirror: Set<Bridge.Mirrored>
    let destinations: [Address]
  }

  private let routes: [Address: [Route]]
  package let bridges: [BridgeName: Bridge]

  package init(_ bridges: [Bridge]) {
    var routes: [Address: [Route]] = [:]
    for bridge in bridges {
      for (source, destinations) in bridge.routes {
        routes[source, default: []].append(
          Route(bridge: bridge.name, mirror: bridge.mirror, destinations: destinations))
      }
    }
    self.routes = routes
    self.bridges = Dictionary(uniqueKeysWithValues: bridges.map { ($0.name, $0) })
  }

  /// Every lane there can be.
  package var lanes: Set<LaneID> {
    var lanes: Set<LaneID> = []
    for (_, routes) in routes {
      for route in routes {
        for destination in route.destinations {
          lanes.insert(LaneID(bridge: route.bridge, destination: destination))
        }
      }
    }
    return lanes
  }

  /// The channels of an account that somebody listens to, sorted.
  package func sources(of account: AccountName) -> [ChannelID] {
    routes.keys.filter { $0.account == account }.map(\.channel).sorted()
  }

  package func lanes(for event: Event, from account: AccountName) -> [LaneID] {
    lanes(from: Address(account: account, channel: event.channel), mirroring: Bridge.Mirrored(event.kind))
  }

  package func lanes(from source: Address, mirroring needed: Bridge.Mirrored) -> [LaneID] {
    (routes[source] ?? []).filter { $0.mirror.contains(needed) }.flatMap { route in
      route.destinations.map { LaneID(bridge: route.bridge, destination: $0) }
    }
  }
}

extension Bridge.Mirrored {
  /// What a bridge must mirror for such an event to be carried over.
  init(_ kind: Event.Kind) {
    self =
      switch kind {
      case .posted: .messages
      case .edited: .edits
      case .deleted: .deletes
      case .joined, .left: .members
      case .read: .reads
      case .reacted: .reactions
      }
  }

  /// The same from the kind as the journal names it.
  init?(kindName: String) {
    switch kindName {
    case "message": self = .messages
    case "edit": self = .edits
    case "delete": self = .deletes
    case "join", "leave": self = .members
    case "read": self = .reads
    case "reaction": self = .reactions
    default: return nil
    }
  }
}
