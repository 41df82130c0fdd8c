import FerryCore
import FerryRuntime

/// Users' names, looked up once. That a user cannot be looked up is normal: most apps do not permit it.
final class People: Sendable {
  private struct Entry: Sendable {
    var author: Author
    var isFound: Bool
    var looked: Timestamp
  }

  private let api: BackendlessAPI
  private let clock: any FerryClock
  private let entries = Locked<[String: Entry]>([:])

  private static let limit = 5000
  private static let names = ["name", "userName", "username", "displayName", "nickname", "email"]
  /// After this long a user may have a name, or another.
  private static let foundTime = Duration.seconds(3600)
  private static let missingTime = Duration.seconds(300)

  init(api: BackendlessAPI, clock: any FerryClock) {
    self.api = api
    self.clock = clock
  }

  /// As far as is known without asking.
  func known(_ userID: String) -> Author? {
    let now = clock.now()
    return entries.withLock { entries in
      guard let entry = entries[userID] else { return nil }
      return entry.looked.advanced(by: entry.isFound ? Self.foundTime : Self.missingTime) > now ? entry.author : nil
    }
  }

  /// The user, by id alone where no name can be had.
  func author(_ userID: String) async -> Author {
    if let known = known(userID) { return known }
    let user = try? await api.user(userID)
    let name = Self.names.lazy.compactMap { user?[$0]?.text }.first { !$0.isEmpty }
    // Messages know their authors by name only, so that is who the user is here too.
    let author = Author(id: UserID(name ?? userID), name: name ?? userID)
    let entry = Entry(author: author, isFound: name != nil, looked: clock.now())
    entries.withLock { entries in
      if entries.count >= Self.limit { entries = [:] }
      entries[userID] = entry
    }
    return author
  }

  /// Everybody of a channel, by name. Of very many only those are looked up that are known already.
  func everybody(_ presence: Presence) async -> [Author] {
    var all = presence.announced
    for (number, user) in presence.users.sorted().enumerated() {
      let author = number < Self.mostLookedUp ? await author(user) : known(user) ?? Author(id: UserID(user), name: user)
      all[author.name] = author
    }
    return all.values.sorted { $0.name < $1.name }
  }

  private static let mostLookedUp = 200
}
