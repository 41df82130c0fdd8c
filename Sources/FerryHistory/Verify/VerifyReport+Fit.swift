package import FerryCore

extension VerifyReport {
  /// Whether something between FROM and TO that can hold no more than `capabilities` explains all that differs.
  ///
  /// Judged from the words of the account alone, so it is a reason to compare again, and not a verdict.
  package func mayFit(_ capabilities: Capabilities) -> Bool {
    let projection = Projection(capabilities: capabilities)
    guard !isFull, self[.reordered] == 0 || projection.order != nil, self[.duplicate] == 0 else { return false }
    let lost = missing["message", default: 0]
    guard lost == 0 || lost <= fromTallies.deleted else { return false }
    if !projection.keepsJoins {
      // Who imports becomes a member, which is told as a join.
      guard extra["message", default: 0] == 0, extra["read", default: 0] == 0 else { return false }
    } else {
      guard self[.extra] == 0, missing["join", default: 0] + missing["leave", default: 0] == 0 else { return false }
    }
    if projection.keepsReads, missing["read", default: 0] > 0 { return false }
    return faults.keys.allSatisfy { projection.explains($0) }
  }
}

extension Projection {
  /// Whether it makes a difference of this name.
  fileprivate func explains(_ fault: String) -> Bool {
    guard let capabilities else { return false }
    switch fault.prefix(while: { $0 != ":" }) {
    case "author": return !keepsAuthor
    case "time": return !keepsTime
    case "text": return fault != "text"
    case "split": return capabilities.bodyBytes != nil || capabilities.bodyCharacters != nil || sendsApart
    case "attachment": return fault != "attachment" || capabilities.attachments != .stored
    case "edited": return !keepsEdited
    case "revisions": return !keepsRevisions
    case "reactions": return !keepsReactions
    case "author id", "attachments", "format", "mentions", "action", "broadcast", "system", "thread", "attributes":
      return true
    default: return false
    }
  }
}
