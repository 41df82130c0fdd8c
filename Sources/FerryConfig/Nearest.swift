/// The valid name that the user most likely meant, or nil when none is near.
///
/// Near is: at most a third of the letters wrong, and never more than three.
package func nearest(_ name: String, among valid: some Sequence<String>) -> String? {
  var best: (name: String, distance: Int)?
  for candidate in valid {
    let distance = editDistance(Array(name.lowercased()), Array(candidate.lowercased()))
    let limit = max(1, min(3, max(name.count, candidate.count) / 3))
    guard distance <= limit, distance < best?.distance ?? .max else { continue }
    best = (candidate, distance)
  }
  return best?.name
}

/// `; did you mean "x"?`, or the valid names when none is near, or nothing when there are none.
package func suggestion(_ name: String, among valid: some Collection<String>) -> String {
  if let near = nearest(name, among: valid) { return "; did you mean \"\(near)\"?" }
  return valid.isEmpty ? "" : "; valid here: \(valid.sorted().joined(separator: ", "))"
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other.
private func editDistance(_ left: [Character], _ right: [Character]) -> Int {
  // A name far longer than any key is near none, and must not cost its length squared.
  guard left.count <= 64, right.count <= 64 else { return .max }
  var rows = [Array(0...right.count)]
  for i in 0..<left.count {
    var row = [i + 1]
    for j in 0..<right.count {
      var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (left[i] == right[j] ? 0 : 1))
      if i > 0, j > 0, left[i] == right[j - 1], left[i - 1] == right[j] { least = min(least, rows[i - 1][j - 1] + 1) }
      row.append(least)
    }
    rows.append(row)
  }
  return rows[left.count][right.count]
}
