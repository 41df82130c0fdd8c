package import FerryCore

/// Reads the keys of one mapping, and refuses at the end those that nobody asked for.
///
/// Made afresh for every reading, used by one task.
package final class ConfigMapping {
  /// The mapping itself, for errors about it as a whole.
  package let node: ConfigNode
  private let entries: [ConfigNode.Entry]
  private var asked: [String] = []

  init(_ node: ConfigNode, entries: [ConfigNode.Entry]) {
    self.node = node
    self.entries = entries
  }

  /// The keys as written, in their order: for mappings whose keys are names that the user made.
  package func names() -> [(name: String, key: ConfigNode, value: ConfigNode)] {
    entries.map { entry in
      asked.append(entry.key)
      let key = ConfigNode(
        content: .scalar(entry.key, isPlain: false), mark: entry.mark, name: entry.key, source: node.source)
      return (entry.key, key, entry.node)
    }
  }

  package func optional(_ key: String) -> ConfigNode? {
    if !asked.contains(key) { asked.append(key) }
    return entries.first { $0.key == key }?.node
  }

  package func required(_ key: String) throws(FerryError) -> ConfigNode {
    if let node = optional(key) { return node }
    // A key written nearly like this one is what the user meant by it.
    if let near = unread.first(where: { nearest($0.key, among: [key]) != nil }) {
      throw node.source.error("unknown key \"\(near.key)\"; did you mean \"\(key)\"?", at: near.mark)
    }
    throw node.error("\(place)missing key \"\(key)\"")
  }

  package func secret(_ key: String) throws(FerryError) -> Secret { try required(key).secret() }

  package func optionalSecret(_ key: String) throws(FerryError) -> Secret? { try optional(key)?.secret() }

  /// Refuses the first key that was neither required nor optional, naming the nearest valid one.
  package func finish() throws(FerryError) {
    guard let unknown = unread.first else { return }
    let hint =
      if let near = nearest(unknown.key, among: asked) {
        "did you mean \"\(near)\"?"
      } else {
        asked.isEmpty ? "no key is valid here" : "valid here: \(asked.sorted().joined(separator: ", "))"
      }
    throw node.source.error("unknown key \"\(unknown.key)\"; \(hint)", at: unknown.mark)
  }

  private var unread: [ConfigNode.Entry] { entries.filter { !asked.contains($0.key) } }

  private var place: String { node.name.isEmpty ? "" : "in \"\(node.name)\": " }
}
