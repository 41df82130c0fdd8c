import FerryCore

extension ConfigNode {
  /// What a value comes to, variables and files put in, whatever it looks like in the file: equal for two readings that
  /// say the same. Holds secrets, hence a `Secret`.
  ///
  /// Order matters in lists only. A file that cannot be read counts as its name; whoever needs it will say so.
  package var meaning: Secret {
    var text = ""
    write(to: &text)
    return Secret(text)
  }

  private func write(to text: inout String) {
    switch content {
    case .scalar(let written, _):
      var value = (try? expanded(written)) ?? written
      if written.hasPrefix("file:"), let content = try? fileContent(source.resolve(String(value.dropFirst(5)))) {
        value = content
      }
      // With or without quotes: of the two only one is valid, or they are the same.
      text += "\(value.utf8.count):\(value)"
    case .list(let nodes):
      text += "["
      for node in nodes { node.write(to: &text) }
      text += "]"
    case .mapping(let entries):
      text += "{"
      for entry in entries.sorted(by: { $0.key < $1.key }) {
        text += "\(entry.key.utf8.count):\(entry.key)="
        entry.node.write(to: &text)
      }
      text += "}"
    }
  }
}
