import FerryCore

/// Reading of parameters. A missing one leaves things as they are.
extension Form {
  /// A moment in whole seconds; `code` is Twilio's number for one that is none.
  func date(_ name: String, code: Int) throws(TwilioError) -> Int64? {
    guard let text = self[name], !text.isEmpty else { return nil }
    guard let time = TwilioDate.parse(text) else {
      throw TwilioError(400, code, "Invalid \(name): it must be a date such as 2026-01-02T03:04:05Z")
    }
    // Down, also before 1970.
    return Int64((Double(time.milliseconds) / 1000).rounded(.down)) * 1000
  }

  func dates() throws(TwilioError) -> (created: Int64?, updated: Int64?) {
    (try date("DateCreated", code: 50308), try date("DateUpdated", code: 50309))
  }

  /// A JSON text, checked but kept as it is; an empty one is an empty object.
  func attributes(limit: Int = Limits.attributes) throws(TwilioError) -> String? {
    guard let text = self["Attributes"] else { return nil }
    if text.isEmpty { return "{}" }
    guard text.utf8.count <= limit else {
      throw TwilioError(400, 50303, "Attributes too long: they may have \(limit) bytes")
    }
    guard JSONText.value(text) != nil else { throw TwilioError(400, 50304, "Attributes not valid JSON") }
    return text
  }

  /// A name of at most so many characters, as Unicode counts them.
  func name(_ name: String, limit: Int = Limits.name, code: Int = 50003) throws(TwilioError) -> String? {
    guard let text = self[name] else { return nil }
    guard text.unicodeScalars.count <= limit else {
      throw TwilioError(400, code, "\(name) too long: it may have \(limit) characters")
    }
    return text
  }

  /// One of a few words, in any case.
  func word<Word: RawRepresentable>(_ name: String, _ type: Word.Type) throws(TwilioError) -> Word?
  where Word.RawValue == String {
    guard let text = self[name], !text.isEmpty else { return nil }
    guard let word = Word(rawValue: text.lowercased()) else { throw .invalid(name, "\(text.prefix(40))") }
    return word
  }

  func bool(_ name: String) throws(TwilioError) -> Bool? {
    switch self[name]?.lowercased() {
    case nil, "": return nil
    case "true": return true
    case "false": return false
    default: throw .invalid(name, "it must be true or false")
    }
  }

  /// Nil inside for the word null, with which what was set is taken away.
  func index(_ name: String) throws(TwilioError) -> Int64?? {
    guard let text = self[name], !text.isEmpty else { return nil }
    if text == "null" { return .some(nil) }
    guard let index = Int64(text) else { throw .invalid(name, "it must be a whole number") }
    return .some(index)
  }
}
