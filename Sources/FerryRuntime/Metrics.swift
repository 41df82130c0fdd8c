/// Counters and gauges, in the Prometheus text format. One value for the process, passed to whoever counts.
package final class Metrics: Sendable {
  private struct Key: Hashable {
    let name: String
    let labels: [String: String]
  }

  private let values = Locked<[Key: Double]>([:])

  package init() {}

  package func add(_ amount: Double = 1, to name: String, _ labels: [String: String] = [:]) {
    values.withLock { $0[Key(name: name, labels: labels), default: 0] += amount }
  }

  package func set(_ name: String, _ labels: [String: String] = [:], to value: Double) {
    values.withLock { $0[Key(name: name, labels: labels)] = value }
  }

  package func value(_ name: String, _ labels: [String: String] = [:]) -> Double {
    values.withLock { $0[Key(name: name, labels: labels)] ?? 0 }
  }

  /// Names that end in `_total` are counters, all others gauges.
  /// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
  package func text() -> String {
    let sorted = values.withLock { $0 }.map { ($0.key.name, Self.text(of: $0.key.labels), $0.value) }
      .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
    var text = ""
    var last = ""
    for (name, labels, value) in sorted {
      if name != last { text += "# TYPE \(name) \(name.hasSuffix("_total") ? "counter" : "gauge")\n" }
      last = name
      let number = value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
      text += "\(name)\(labels) \(number)\n"
    }
    return text
  }

  private static func text(of labels: [String: String]) -> String {
    guard !labels.isEmpty else { return "" }
    let pairs = labels.sorted { $0.key < $1.key }.map { label in
      "\(label.key)=\"\(escaped(label.value))\""
    }
    return "{\(pairs.joined(separator: ","))}"
  }

  private static func escaped(_ value: String) -> String {
    var escaped = ""
    // Scalars, because "\r\n" is one character that is not "\n".
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
