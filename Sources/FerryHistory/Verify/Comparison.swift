import FerryCore

/// What differs between a record and its counterpart: what TO cannot hold, and what it should have held.
struct Comparison {
  let projection: Projection
  /// The finest unit of each side's times, in milliseconds.
  let fromUnit: Int64
  let toUnit: Int64
  let zoneOffset: Int64
  private(set) var losses: [String] = []
  private(set) var faults: [String] = []

  init(_ projection: Projection, fromUnit: Int64, toUnit: Int64, zoneOffset: Int64) {
    self.projection = projection
    self.fromUnit = fromUnit
    self.toUnit = toUnit
    self.zoneOffset = zoneOffset
  }

  /// The texts of a pair, read where the hashes differ.
  struct Texts {
    /// Of FROM's message and of those that were joined with it.
    var from: [String]
    /// Of TO's message and its further parts.
    var to: [String]
    /// TO holds what FROM held before an edit, or the other way about.
    var isEarlier = false
    var isLater = false
  }

  private mutating func lose(_ what: String) { if !losses.contains(what) { losses.append(what) } }
  private mutating func fault(_ what: String) { if !faults.contains(what) { faults.append(what) } }

  /// A loss where TO can hold less than FROM, a fault where it can hold everything.
  private mutating func differ(_ what: String) { if projection.isExact { fault(what) } else { lose(what) } }

  // MARK: Whole records

  mutating func compare(
    _ from: SideRow, _ to: SideRow, files: (from: [SideFile], to: [SideFile], apart: Bool), texts: Texts?
  ) {
    compareTimes(from, to)
    compareAuthors(from, to)
    guard from.kind == .message else { return }
    switch (from.flags.contains(.deleted), to.flags.contains(.deleted)) {
    case (true, true): return
    case (true, false): return fault("delete lost")
    case (false, true): return fault("deleted")
    case (false, false): break
    }
    var notes: [String] = []
    if let texts { notes = compare(texts, from, to, files.from) }
    compareFiles(files.from, files.to, apart: files.apart, notes: notes)
    compareEdits(from, to)
    compareRest(from, to)
  }

  /// What FROM holds and TO does not.
  mutating func missing(_ row: SideRow) -> VerifyOutcome {
    switch row.kind {
    case .join where !projection.keepsJoins: lose("joins")
    case .leave where !projection.keepsJoins: lose("leaves")
    case .read where !projection.keepsReads: lose("reads")
    case .message where row.flags.contains(.deleted) && !projection.keepsSkeletons: lose("deleted")
    default: return .missing
    }
    return .converted
  }

  var outcome: VerifyOutcome { !faults.isEmpty ? .altered : !losses.isEmpty ? .converted : .identical }

  // MARK: Fields

  private mutating func compareTimes(_ from: SideRow, _ to: SideRow) {
    if zoneOffset != 0 {
      let minutes = zoneOffset / 60_000
      let clock = "\(minutes < 0 ? "-" : "+")\(Self.padded(abs(minutes) / 60)):\(Self.padded(abs(minutes) % 60))"
      let isAssumed = !from.flags.union(to.flags).isDisjoint(with: .zoneAssumed)
      if isAssumed { lose("zone:\(clock)") } else { fault("zone:\(clock)") }
    }
    guard projection.keepsTime else {
      if from.time != to.time { lose("time") }
      return
    }
    switch timeLoss(from.time, to.time &- zoneOffset, max(from.unit, 1), max(to.unit, toUnit)) {
    case .none: break
    case .some(let loss): if let loss { lose(loss) } else { fault("time") }
    }
  }

  private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

  /// Nil when the times are equal at FROM's precision; else the loss, or nil within when nothing explains it.
  private func timeLoss(_ from: Int64, _ to: Int64, _ fromUnit: Int64, _ toUnit: Int64) -> String?? {
    if from == to { return .none }
    let apart = (from &- to).magnitude
    let unit = max(fromUnit, toUnit)
    if unit > 1, apart < UInt64(unit) || floorDivide(from, unit) == floorDivide(to, unit) {
      return toUnit > fromUnit ? .some(.some("time:\(Self.name(ofUnit: toUnit))")) : .none
    }
    return apart <= UInt64(Matcher.bump) ? .some(.some("time:bumped")) : .some(.none)
  }

  private static func name(ofUnit unit: Int64) -> String {
    switch unit {
    case 86_400_000...: "day"
    case 60_000...: "min"
    case 1000...: "s"
    default: "ms"
    }
  }

  private mutating func compareAuthors(_ from: SideRow, _ to: SideRow) {
    if from.author != to.author {
      if projection.keepsAuthor { fault("author") } else { lose("author") }
    } else if to.flags.contains(.prefixed) {
      lose("author:prefix")
    } else if projection.isExact, from.authorID != to.authorID {
      fault("author id")
    }
  }

  /// Returns the lines behind the text that name attachments.
  private mutating func compare(_ texts: Texts, _ from: SideRow, _ to: SideRow, _ files: [SideFile]) -> [String] {
    if texts.from.count > 1 {
      // Several became one again: nothing is lost.
      lose("joined:\(texts.from.count)")
      let pieces = texts.from.enumerated().filter { !$1.isEmpty }
        .map { Matcher.Loose(ordinal: $0, time: 0, body: $1) }
      if texts.to.count > 1 || !Self.isWhole(texts.to[0], pieces) { fault("text") }
      return []
    }
    let whole = texts.from[0]
    let bodies = texts.to.filter { !$0.isEmpty }
    if bodies.count > 1 { return compareParts(whole, bodies, files) }
    let body = bodies.first ?? ""
    if whole == body, whole.utf8.elementsEqual(body.utf8) { return [] }
    if let notes = Self.notes(in: body, after: whole, files) { return notes }
    if TextForm.normalHash(whole) == TextForm.normalHash(body) {
      differ("text:normal")
    } else if texts.isEarlier {
      fault("edit lost")
    } else if texts.isLater {
      fault("edited")
    } else if from.flags.intersection(.formats) != to.flags.intersection(.formats) || from.flags.contains(.converted)
      || to.flags.contains(.converted), TextForm.skeleton(whole) == TextForm.skeleton(body)
    {
      differ("text:format")
    } else {
      fault("text")
    }
    return []
  }

  /// Whether these pieces, all of them, are the text.
  private static func isWhole(_ text: String, _ pieces: [Matcher.Loose]) -> Bool {
    if pieces.count <= 1 { return (pieces.first?.body ?? "") == text }
    guard let chain = Matcher.chain(of: text, pieces) else { return false }
    return chain.isWhole && chain.pieces.count == pieces.count
  }

  private mutating func compareParts(_ whole: String, _ bodies: [String], _ files: [SideFile]) -> [String] {
    let pieces = bodies.enumerated().map { Matcher.Loose(ordinal: $0, time: 0, body: $1) }
    let loss = "split:\(bodies.count)"
    if projection.parts(of: whole) > 1 || !files.isEmpty && !projection.isExact { lose(loss) } else { fault(loss) }
    if Self.isWhole(whole, pieces) { return [] }
    // Lines that name attachments lie behind the text.
    let joined = bodies.joined()
    if let notes = Self.notes(in: joined, after: whole, files) { return notes }
    fault("text")
    return []
  }

  /// The lines behind `text` in `body`, when there is nothing else and each may be about an attachment.
  private static func notes(in body: String, after text: String, _ files: [SideFile]) -> [String]? {
    let (body, text) = (Array(body.utf8), Array(text.utf8))
    guard !files.isEmpty, body.count > text.count, body.starts(with: text),
      text.isEmpty || body[text.count] == 0x0a
    else { return nil }
    let rest = String(decoding: body[(text.isEmpty ? 0 : text.count + 1)...], as: UTF8.self)
    let lines = rest.split(separator: "\n").map { String($0) }
    guard lines.count <= files.count, lines.allSatisfy({ line in files.contains { line.contains($0.name) } }) else {
      return nil
    }
    return lines
  }

  private mutating func compareFiles(_ from: [SideFile], _ to: [SideFile], apart: Bool, notes: [String]) {
    var rest = to
    for file in from {
      if let index = rest.firstIndex(where: { file.isLike($0) }) {
        let found = rest.remove(at: index)
        if found.name != file.name { differ("attachment:name") }
        if file.isThere, !found.isThere { fault("attachment") }
      } else if notes.contains(where: { $0.contains(file.name) }) {
        if projection.isLink(file.size) || !file.isThere { lose("attachment:link") } else { fault("attachment") }
      } else if !file.isThere {
        differ("attachment:\(file.status ?? "unknown")")
      } else {
        fault("attachment")
      }
    }
    if !rest.isEmpty { fault("attachment added") }
    if apart { if projection.sendsApart { lose("attachments:apart") } else { differ("attachments:apart") } }
  }

  private mutating func compareEdits(_ from: SideRow, _ to: SideRow) {
    switch (from.edited, to.edited) {
    case (nil, nil): break
    case (.some, nil): if projection.keepsEdited { fault("edited") } else { lose("edited") }
    case (nil, .some): fault("edited")
    case (.some(let before), .some(let after)):
      switch timeLoss(before, after &- zoneOffset, max(from.unit, 1), max(to.unit, toUnit)) {
      case .none: break
      case .some(let loss): if let loss { lose(loss) } else { fault("edited time") }
      }
    }
    if projection.isExact {
      if from.revision != to.revision || from.earlier != to.earlier { fault("revisions") }
    } else if from.earlier != to.earlier, from.earlier > 0 {
      if projection.keepsRevisions { fault("revisions") } else { lose("revisions") }
    }
  }

  private mutating func compareRest(_ from: SideRow, _ to: SideRow) {
    if from.reactions != to.reactions {
      if projection.keepsReactions { fault("reactions") } else { lose("reactions") }
    } else if projection.isExact, from.reactors != to.reactors {
      fault("reactions")
    }
    if from.flags.intersection(.formats) != to.flags.intersection(.formats) { differ("format") }
    if from.mentions != to.mentions, projection.isExact || to.mentions == 0 { differ("mentions") }
    let names: [(SideRow.Flags, String)] = [
      (.action, "action"), (.broadcast, "broadcast"), (.system, "system"), (.threaded, "thread"),
    ]
    for (flag, name) in names where from.flags.contains(flag) && !to.flags.contains(flag) { differ(name) }
    if projection.isExact, from.rest != to.rest { fault("attributes") }
  }

  /// `isRight` is whether the reply's target is the counterpart of FROM's; nil when FROM's target is not in FROM.
  mutating func compareReplies(_ from: SideRow, _ to: SideRow, isRight: Bool?) {
    switch (from.reply, to.reply, isRight) {
    case (nil, nil, _), (_, _, .some(true)): break
    case (.some, nil, nil): lose("reply:orphan")
    case (.some, .some, nil): break
    default: fault("reply")
    }
  }
}
