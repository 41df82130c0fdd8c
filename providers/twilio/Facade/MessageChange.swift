import FerryCore

/// What a request sets of a message, checked.
struct MessageChange: Sendable {
  var author: String?
  var body: String?
  var attributes: String?
  var mediaSID: String?
  var contentSID: String?
  var created: Int64?
  var updated: Int64?

  init(_ form: Form) throws {
    author = form["Author"].flatMap { $0.isEmpty ? nil : $0 }
    body = form["Body"]
    attributes = try form.attributes()
    mediaSID = form["MediaSid"].flatMap { $0.isEmpty ? nil : $0 }
    contentSID = form["ContentSid"].flatMap { $0.isEmpty ? nil : $0 }
    _ = try form.name("Subject", code: 50504)
    (created, updated) = try form.dates()
    if let contentSID {
      guard SID.isOne(contentSID, of: .contentTemplate) else {
        throw TwilioError.invalid("ContentSid", "it is no SID of a content template")
      }
      // A template takes the place of what is written out.
      body = nil
      mediaSID = nil
    }
    try check()
  }

  private func check() throws(TwilioError) {
    if let author, author.unicodeScalars.count > Limits.name {
      throw TwilioError(400, 50310, "Author too long: it may have \(Limits.name) characters")
    }
    if let body, body.utf8.count > Limits.body {
      throw TwilioError(400, 50504, "Body too long: it may have \(Limits.body) bytes")
    }
  }

  /// What a pre-action webhook changes.
  mutating func apply(_ changes: [JSONValue]) throws(TwilioError) {
    for change in changes {
      if let text = change["body"]?.string { body = text }
      if let name = change["author"]?.string, !name.isEmpty { author = name }
      if let text = change["attributes"]?.string {
        var form = Form()
        form.add("Attributes", text)
        attributes = try form.attributes()
      }
    }
    try check()
  }
}
