import FerryCore
import FerryRuntime

/// The names that Twilio's users gave themselves, kept for a while. That one has no profile is normal.
final class DisplayNames: Sendable {
  private struct Entry {
    /// Nil when there is none.
    var name: String?
    var expires: Timestamp
  }

  private let api: TwilioAPI
  private let clock: any FerryClock
  private let entries = Locked(Remembered<String, Entry>(capacity: 10_000))
  /// Those who are being asked about: by how many, and how often their name has changed meanwhile.
  private let underWay = Locked<[String: (askers: Int, changes: Int)]>([:])
  private static let lifetime = Duration.seconds(600)
  private static let lifetimeOfFailure = Duration.seconds(30)
  private let deadline: Duration

  init(api: TwilioAPI, deadline: Duration, clock: any FerryClock) {
    self.api = api
    self.deadline = deadline
    self.clock = clock
  }

  /// What is known, without asking.
  func known(_ identity: String) -> String? { entries.withLock { $0[identity]?.name } }

  func name(of identity: String) async -> String? {
    // Phones and the like have no profile.
    guard !identity.isEmpty, !identity.hasPrefix("+"), !identity.contains(":") else { return nil }
    let now = clock.now()
    let entry = entries.withLock { $0[identity] }
    if let entry, entry.expires > now { return entry.name }
    let changes = begin(identity)
    var name: String?
    var lifetime = Self.lifetime
    do throws(FerryError) {
      let user = try await api.get(api.url("Users", identity), doing: "read a user's name", deadline: deadline)
      name = user["friendly_name"]?.string.flatMap { $0.isEmpty ? nil : $0 }
    } catch {
      if error.code != .notFound {
        name = entry?.name
        lifetime = Self.lifetimeOfFailure
      }
    }
    let found = Entry(name: name, expires: now.advanced(by: lifetime))
    // An answer from before a change would hide it.
    end(identity, ifUnchangedSince: changes) { entries.withLock { $0[identity] = found } }
    return name
  }

  private func begin(_ identity: String) -> Int {
    underWay.withLock { underWay in
      underWay[identity, default: (0, 0)].askers += 1
      return underWay[identity]?.changes ?? 0
    }
  }

  private func end(_ identity: String, ifUnchangedSince changes: Int, _ store: () -> Void) {
    underWay.withLock { underWay in
      guard var asked = underWay[identity] else { return }
      if asked.changes == changes { store() }
      asked.askers -= 1
      underWay[identity] = asked.askers > 0 ? asked : nil
    }
  }

  /// A webhook says that the name is another now. Which it is the service is asked when it is needed: a webhook carries no
  /// time, and may be an old one that somebody sends again.
  func mayHaveChanged(_ identity: String) {
    let now = clock.now()
    underWay.withLock { $0[identity]?.changes += 1 }
    entries.withLock { entries in
      guard var entry = entries[identity] else { return }
      entry.expires = now
      entries[identity] = entry
    }
  }
}
