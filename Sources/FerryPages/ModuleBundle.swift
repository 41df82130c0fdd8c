/// The modules that a page needs at once, as one: a browser takes some milliseconds for each file that it loads.
///
/// They are put one after the other without their imports of each other, so that their outermost names are to differ
/// (the tests look). Modules that are loaded later import from the bundle what they import from one of its parts. The files
/// are written for it: an import begins a line with `import {` and ends one with the name of a module in its folder.
struct ModuleBundle {
  /// The file's name in the folder, as an import writes it.
  private let name: String
  private let parts: [(name: String, source: [UInt8])]

  /// `parts` in the order in which they are to run: what a module imports stands before it.
  init(_ name: String, of parts: [(name: String, source: [UInt8])]) {
    self.name = name
    self.parts = parts
  }

  var source: [UInt8] {
    var kept: [Substring] = []
    for part in parts {
      var isImport = false
      for line in String(decoding: part.source, as: UTF8.self).split(separator: "\n") {
        isImport = isImport || line.hasPrefix("import {")
        if !isImport { kept.append(line) }
        isImport = isImport && !line.hasSuffix(".js';")
      }
    }
    return Array(kept.joined(separator: "\n").utf8)
  }

  /// A module that is loaded later, with its imports from the bundle.
  func importing(_ source: [UInt8]) -> [UInt8] {
    var text = String(decoding: source, as: UTF8.self)
    for part in parts { text = text.replacing("from './\(part.name)';", with: "from './\(name)';") }
    return Array(text.utf8)
  }
}
