package import FerryCore

extension ConfigNode {
  static let fileLimit = 1 << 20
  static let depthLimit = 32

  /// Reads YAML text. Errors carry `name`, line and column; `folder` is what relative paths are relative to.
  package static func parse(
    _ text: String, name: String = "ferry.yaml", folder: String = "", environment: [String: String] = [:]
  ) throws(FerryError) -> ConfigNode {
    try parse(Array(text.utf8), source: ConfigSource(name: name, folder: folder, environment: environment))
  }

  /// Reads a YAML file.
  package static func load(_ path: String, environment: [String: String]) throws(FerryError) -> ConfigNode {
    let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
    let bytes: [UInt8]
    do {
      bytes = try readFile(path, limit: fileLimit)
    } catch {
      throw FerryError(.badConfiguration, "\(path) \(error.reason)")
    }
    return try parse(bytes, source: ConfigSource(name: path, folder: folder, environment: environment))
  }

  static func parse(_ bytes: [UInt8], source: ConfigSource) throws(FerryError) -> ConfigNode {
    let start = Mark(line: 1, column: 1)
    guard bytes.count <= fileLimit else {
      throw source.error("the file is larger than \(fileLimit) bytes", at: start)
    }
    if let offset = firstInvalidByte(bytes) {
      throw source.error("this is not UTF-8 text", at: YAMLReader.mark(of: offset, in: bytes))
    }
    let reader = YAMLReader(bytes, source: source)
    guard case .documentStart = try reader.next().event else { throw source.error("the file is empty", at: start) }
    let root = try value(try reader.next(), name: "", depth: 0, reader, source)
    _ = try reader.next()  // The end of the document.
    let (event, mark) = try reader.next()
    guard case .end = event else {
      throw source.error("a second document starts here; a configuration is one", at: mark)
    }
    return root
  }

  private static func value(
    _ first: (event: YAMLReader.Event, mark: Mark), name: String, depth: Int, _ reader: YAMLReader,
    _ source: ConfigSource
  ) throws(FerryError) -> ConfigNode {
    guard depth < depthLimit else {
      throw source.error("this is nested deeper than \(depthLimit) levels", at: first.mark)
    }
    let content: Content
    switch first.event {
    case .scalar(let text, let isPlain): content = .scalar(text, isPlain: isPlain)
    case .listStart: content = .list(try items(name: name, depth: depth, reader, source))
    case .mappingStart: content = .mapping(try entries(depth: depth, reader, source))
    default: preconditionFailure("libyaml opened a value with \(first.event)")
    }
    return ConfigNode(content: content, mark: first.mark, name: name, source: source)
  }

  private static func items(
    name: String, depth: Int, _ reader: YAMLReader, _ source: ConfigSource
  ) throws(FerryError) -> [ConfigNode] {
    var items: [ConfigNode] = []
    while true {
      let next = try reader.next()
      if case .listEnd = next.event { return items }
      items.append(try value(next, name: name, depth: depth + 1, reader, source))
    }
  }

  private static func entries(
    depth: Int, _ reader: YAMLReader, _ source: ConfigSource
  ) throws(FerryError) -> [Entry] {
    var entries: [Entry] = []
    var lines: [String: Int] = [:]
    while true {
      let (event, mark) = try reader.next()
      if case .mappingEnd = event { return entries }
      guard case .scalar(let key, let isPlain) = event, !(key.isEmpty && isPlain) else {
        throw source.error("a key must be text", at: mark)
      }
      if key == "<<", isPlain { throw source.error("merge keys (<<) are not supported; write the keys out", at: mark) }
      if let line = lines[key] {
        throw source.error("duplicate key \"\(key)\"; it is first set in line \(line)", at: mark)
      }
      lines[key] = mark.line
      let node = try value(try reader.next(), name: key, depth: depth + 1, reader, source)
      entries.append(Entry(key: key, mark: mark, node: node))
    }
  }

  /// Where the text stops being UTF-8, or nil when it never does.
  private static func firstInvalidByte(_ bytes: [UInt8]) -> Int? {
    guard String(validating: bytes, as: UTF8.self) == nil else { return nil }
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    var offset = 0
    while case .scalarValue(let scalar) = decoder.decode(&iterator) { offset += UTF8.width(scalar) }
    return offset
  }
}
