import CYAML
import FerryCore

/// libyaml as a source of events. Refuses what a configuration has no use for: anchors, aliases and tags.
final class YAMLReader {
  enum Event {
    case scalar(String, isPlain: Bool)
    case listStart, listEnd, mappingStart, mappingEnd
    case documentStart, documentEnd, end
  }

  private let source: ConfigSource
  // Both on the heap because libyaml keeps pointers to them.
  private let parser = UnsafeMutablePointer<yaml_parser_t>.allocate(capacity: 1)
  private let input: UnsafeMutableBufferPointer<UInt8>

  init(_ bytes: [UInt8], source: ConfigSource) {
    self.source = source
    input = .allocate(capacity: max(bytes.count, 1))
    _ = input.initialize(from: bytes)
    precondition(yaml_parser_initialize(parser) == 1, "there is no memory for a parser")
    yaml_parser_set_input_string(parser, input.baseAddress, bytes.count)
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING)
  }

  deinit {
    yaml_parser_delete(parser)
    parser.deallocate()
    input.deallocate()
  }

  func next() throws(FerryError) -> (event: Event, mark: ConfigNode.Mark) {
    var event = yaml_event_t()
    guard yaml_parser_parse(parser, &event) == 1 else { throw problem() }
    defer { yaml_event_delete(&event) }
    let mark = Self.mark(event.start_mark)
    switch event.type {
    case YAML_SCALAR_EVENT:
      let scalar = event.data.scalar
      try refuse(anchor: scalar.anchor, tag: scalar.tag, at: mark)
      let text = String(decoding: UnsafeBufferPointer(start: scalar.value, count: scalar.length), as: UTF8.self)
      guard !text.utf8.contains(0) else { throw source.error("text must not hold a NUL character", at: mark) }
      return (.scalar(text, isPlain: scalar.style == YAML_PLAIN_SCALAR_STYLE), mark)
    case YAML_SEQUENCE_START_EVENT:
      try refuse(anchor: event.data.sequence_start.anchor, tag: event.data.sequence_start.tag, at: mark)
      return (.listStart, mark)
    case YAML_MAPPING_START_EVENT:
      try refuse(anchor: event.data.mapping_start.anchor, tag: event.data.mapping_start.tag, at: mark)
      return (.mappingStart, mark)
    case YAML_ALIAS_EVENT:
      throw source.error("aliases (*name) are not supported; write the value out", at: mark)
    case YAML_SEQUENCE_END_EVENT: return (.listEnd, mark)
    case YAML_MAPPING_END_EVENT: return (.mappingEnd, mark)
    case YAML_DOCUMENT_START_EVENT: return (.documentStart, mark)
    case YAML_DOCUMENT_END_EVENT: return (.documentEnd, mark)
    case YAML_STREAM_START_EVENT: return try next()
    default: return (.end, mark)
    }
  }

  private func refuse(
    anchor: UnsafeMutablePointer<UInt8>?, tag: UnsafeMutablePointer<UInt8>?, at mark: ConfigNode.Mark
  ) throws(FerryError) {
    if anchor != nil { throw source.error("anchors (&name) are not supported; write the value out", at: mark) }
    if tag != nil { throw source.error("tags (!name) are not supported", at: mark) }
  }

  /// libyaml's own words say what, never quoting the file, and its mark says where.
  private func problem() -> FerryError {
    let mark: ConfigNode.Mark
    if parser.pointee.error == YAML_READER_ERROR {
      mark = Self.mark(of: parser.pointee.problem_offset, in: input)
    } else {
      mark = Self.mark(parser.pointee.problem_mark)
    }
    let index = parser.pointee.problem_mark.index
    if parser.pointee.error == YAML_SCANNER_ERROR, Self.character(index, in: input) == "\t" {
      return source.error("a tab cannot stand here; indent with spaces", at: mark)
    }
    let words = parser.pointee.problem.map { String(cString: $0) } ?? "it cannot be read"
    var message = "this is not YAML: \(words)"
    if let context = parser.pointee.context {
      let start = Self.mark(parser.pointee.context_mark)
      message += " \(String(cString: context)) that starts in line \(start.line)"
    }
    return source.error(message, at: mark)
  }

  private static func mark(_ mark: yaml_mark_t) -> ConfigNode.Mark {
    ConfigNode.Mark(line: mark.line + 1, column: mark.column + 1)
  }

  private static func character(_ index: Int, in bytes: UnsafeMutableBufferPointer<UInt8>) -> Unicode.Scalar? {
    String(decoding: bytes, as: UTF8.self).unicodeScalars.dropFirst(index).first
  }

  /// The place of a byte; columns in characters.
  static func mark(of offset: Int, in bytes: some Sequence<UInt8>) -> ConfigNode.Mark {
    var line = 1
    var column = 1
    for byte in bytes.prefix(offset) {
      if byte == UInt8(ascii: "\n") {
        line += 1
        column = 1
      } else if byte & 0xC0 != 0x80 {
        column += 1
      }
    }
    return ConfigNode.Mark(line: line, column: column)
  }
}
