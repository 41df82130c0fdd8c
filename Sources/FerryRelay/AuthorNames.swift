import FerryCore
import FerryRuntime
import FerryStorage

/// Sees to it that nobody who is copied to an address can be taken for somebody else there.
///
/// Whoever is at home at an address keeps their name. A copy's author whose name looks like theirs, or like that of an
/// author who was copied there before, gets the account's name behind it, and where that is not enough their id. Who came
/// first is in the journal, so that a restart changes nobody's name.
final class AuthorNames: Sendable {
  private struct Key: Hashable {
    let place: Address
    let account: AccountName?
    let id: UserID
    let name: String
  }

  /// Names that were settled; emptied when full, as the journal has them all.
  private let settled = Locked<[Key: String]>([:])
  private static let capacity = 8192
  /// More people than this who look the same at one place and say so in their ids are not told apart.
  private static let numbered = 2...9

  private let journal: Journal
  private let identities: Identities

  init(journal: Journal, identities: Identities) {
    self.journal = journal
    self.identities = identities
  }

  /// Reads all names from the journal again when they are next used, which notes there that they still are.
  func refresh() { settled.withLock { $0 = [:] } }

  /// Somebody at home at `place` did something there.
  func saw(_ author: Author, at place: Address) async throws(FerryError) {
    let key = Key(place: place, account: nil, id: author.id, name: author.name)
    guard settled.withLock({ $0[key] }) == nil else { return }
    let skeleton = NameSkeleton.of(ShownText.name(author.name))
    guard !skeleton.isEmpty else { return }
    let owners = try await journal.owners(of: skeleton, at: place, with: NameOwner(account: nil, id: author.id))
    settled.withLock { settled in
      // Those copied here under this name must give way.
      if settled.count >= Self.capacity || owners.contains(where: { $0.account != nil }) { settled = [:] }
      settled[key] = author.name
    }
  }

  /// What the author of a copy is called at `place`; `name` is what the bridge would call them.
  func shown(
    _ name: String, of original: UserID, from account: AccountName, at place: Address
  ) async throws(FerryError) -> String {
    let key = Key(place: place, account: account, id: original, name: name)
    if let known = settled.withLock({ $0[key] }) { return known }
    let me = NameOwner(account: account, id: original)
    var shown = name
    for candidate in Self.candidates(name, original, account) {
      shown = candidate
      let skeleton = NameSkeleton.of(candidate)
      let owners = try await journal.owners(of: skeleton, at: place, with: me)
      if isFree(owners, for: me, at: place) { break }
    }
    settled.withLock { settled in
      if settled.count >= Self.capacity { settled = [:] }
      settled[key] = shown
    }
    return shown
  }

  /// The same without waiting, for typing: as settled, or as the bridge would call them.
  func shownNow(_ name: String, of original: UserID, from account: AccountName, at place: Address) -> String {
    settled.withLock { $0[Key(place: place, account: account, id: original, name: name)] } ?? name
  }

  private static func candidates(_ name: String, _ id: UserID, _ account: AccountName) -> [String] {
    let whole = "\(name) (\(ShownText.name("\(account):\(id)")))"
    return [name, "\(name) (\(account))", whole] + numbered.map { "\(whole) \($0)" }
  }

  private func isFree(_ owners: [NameOwner], for me: NameOwner, at place: Address) -> Bool {
    let others = owners.filter { !isSamePerson($0, me, at: place) }
    if others.contains(where: { $0.account == nil }) { return false }
    guard let first = owners.first(where: { $0.account != nil }) else { return true }
    return isSamePerson(first, me, at: place)
  }

  private func isSamePerson(_ one: NameOwner, _ other: NameOwner, at place: Address) -> Bool {
    if one == other { return true }
    guard let person = identities.person(one.id, at: one.account ?? place.account) else { return false }
    return person == identities.person(other.id, at: other.account ?? place.account)
  }
}
