import FerryCore

/// What went wrong on the way from one side of a bridge to the other, by the guarantee that was broken.
struct Judgement: Sendable {
  private(set) var broken: [Int: [String]] = [:]

  private mutating func blame(_ guarantee: Int, _ what: String) { broken[guarantee, default: []].append(what) }

  var isClean: Bool { broken.isEmpty }

  /// `gaps` are the times in which the source could not be heard and keeps nothing: reported, so not lost. `dead` counts
  /// the deliveries to this side that wait for a person.
  init(
    _ said: [Conversation.Said], from source: Int, to destination: Int, shown: [ShownMessage],
    gaps: [ClosedRange<Timestamp>], dead: Int
  ) {
    let excused = { (one: Conversation.Said) in one.times.contains { time in gaps.contains { $0.overlaps(time) } } }
    let groups = Self.groups(shown, of: source)
    let count = Dictionary(groups.map { ($0.token, 1) }, uniquingKeysWith: +)
    var lost: [String] = []
    for one in said where one.side == source {
      let texts = Array(groups.filter { $0.token == one.token }.map(\.texts).joined())
      if count[one.token, default: 0] > 1 || Set(texts).count < texts.count { blame(2, "\(one.token) is there twice") }
      if one.isDeleted {
        if !texts.isEmpty, !excused(one) { blame(4, "\(one.token) was deleted and is there") }
        continue
      }
      if texts.isEmpty {
        if !excused(one) { lost.append(one.token) }
      } else if count[one.token] == 1, texts.joined(separator: "") != one.text, !excused(one) {
        let what =
          "\(one.token) reads \(texts.joined(separator: "").prefix(120)) in \(texts.count) parts, not \(one.text.suffix(40))"
        blame(one.isLong ? 9 : one.picture != nil ? 7 : 4, what)
      }
      if let picture = one.picture, !texts.isEmpty, !excused(one) {
        let there = shown.reduce(0) { $0 + $1.pictures.count { $0 == picture } }
        if there == 0 {
          blame(
            7, "the picture of \(one.token) is missing: \(shown.map { "\($0.text.prefix(80)) \($0.pictures.count)" })")
        }
        if there > 1 { blame(2, "the picture of \(one.token) is there \(there) times") }
      }
    }
    for token in lost { blame(1, "\(token) is lost") }
    if lost.count > dead { blame(10, "\(lost.count - dead) were lost without a word") }
    judgeOrder(groups)
    judgeNatives(said.filter { $0.side == destination }, Self.groups(shown, of: destination))
    for one in shown where one.text.contains("intruder") { blame(8, "a stranger wrote \(one.text.prefix(40))") }
  }

  private mutating func judgeOrder(_ groups: [Group]) {
    var last = ""
    for group in groups {
      if group.token < last { blame(3, "\(group.token) comes after \(last)") }
      last = max(last, group.token)
    }
  }

  /// What people wrote here themselves is as they left it, and not there again.
  private mutating func judgeNatives(_ own: [Conversation.Said], _ groups: [Group]) {
    for one in own {
      let texts = Array(groups.filter { $0.token == one.token }.map(\.texts).joined())
      if texts.count > 1 { blame(5, "\(one.token) has come back") }
      let wanted = one.isDeleted ? "" : one.text
      if texts.count <= 1, texts.joined(separator: "") != wanted {
        blame(5, "\(one.token) was changed where it was written: \(texts.joined(separator: "").prefix(40))")
      }
    }
  }

  /// Texts of one message, one after the other.
  private struct Group {
    let token: String
    var texts: [String]
  }

  private static func groups(_ shown: [ShownMessage], of side: Int) -> [Group] {
    var groups: [Group] = []
    for one in shown {
      guard let token = Conversation.token(in: one.text, of: side) else { continue }
      if groups.last?.token == token {
        groups[groups.count - 1].texts.append(one.text)
      } else {
        groups.append(Group(token: token, texts: [one.text]))
      }
    }
    return groups
  }
}
