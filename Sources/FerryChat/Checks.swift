package import FerryCore

/// Checks of what callers hand in. Every refusal is a `badRequest` that names the field.
extension ChatLimits {
  func checkID(_ id: String, _ what: String) throws(FerryError) {
    guard !id.isEmpty, id.utf8.count <= idBytes else {
      throw FerryError(.badRequest, "The \(what) must have between 1 and \(idBytes) bytes.")
    }
    guard !id.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
      throw FerryError(.badRequest, "The \(what) must not contain control characters.")
    }
  }

  func checkName(_ name: String, _ what: String) throws(FerryError) {
    guard name.utf8.count <= nameBytes else {
      throw FerryError(.badRequest, "The \(what) is longer than \(nameBytes) bytes.")
    }
  }

  func check(_ author: Author) throws(FerryError) {
    try checkID(author.id.rawValue, "user id")
    try checkName(author.name, "user's name")
    if let avatar = author.avatar { try checkURL(avatar, "avatar") }
  }

  func checkURL(_ url: String, _ what: String) throws(FerryError) {
    let lower = url.prefix(8).lowercased()
    guard lower.hasPrefix("http://") || lower.hasPrefix("https://"), url.utf8.count <= urlBytes,
      !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7f })
    else {
      throw FerryError(.badRequest, "The \(what) must be an http or https URL of at most \(urlBytes) bytes.")
    }
  }

  func checkText(_ text: String) throws(FerryError) {
    guard text.utf8.count <= textBytes else {
      throw FerryError(.tooLarge, "The text is longer than \(textBytes) bytes.")
    }
  }

  func checkEmoji(_ emoji: String) throws(FerryError) {
    guard !emoji.isEmpty, emoji.utf8.count <= emojiBytes, !emoji.utf8.contains(where: { $0 < 0x20 }) else {
      throw FerryError(.badRequest, "The emoji must have between 1 and \(emojiBytes) bytes.")
    }
  }

  func check(_ attachments: [Attachment]) throws(FerryError) {
    guard attachments.count <= self.attachments else {
      throw FerryError(.badRequest, "A message has at most \(self.attachments) attachments.")
    }
    for attachment in attachments {
      try checkName(attachment.name, "attachment's name")
      try checkName(attachment.mediaType, "attachment's type")
      switch attachment.reference {
      case .url(let url): try checkURL(url, "attachment's URL")
      case .provider(let sha256):
        guard FileShelf.isName(sha256) else {
          throw FerryError(
            .badRequest, "The attachment's file must be the SHA-256 of an uploaded file, in lower-case hexadecimal.")
        }
      }
    }
  }

  func check(_ draft: Draft) throws(FerryError) {
    if let clientID = draft.clientID { try checkID(clientID.rawValue, "client id") }
    if let author = draft.author { try check(author) }
    try checkText(draft.text)
    try check(draft.attachments)
    guard draft.mentions.count <= mentions else {
      throw FerryError(.badRequest, "A message mentions at most \(mentions) users.")
    }
    for user in draft.mentions { try checkID(user.rawValue, "mentioned user's id") }
    if let stamp = draft.stamp { try check(stamp) }
  }

  func check(_ stamp: Stamp) throws(FerryError) {
    for part in [
      stamp.bridge.rawValue, stamp.origin.account.rawValue, stamp.origin.channel.rawValue, stamp.id.rawValue,
    ]
    where part.utf8.count > 1024 {
      throw FerryError(.badRequest, "The stamp is too long.")
    }
  }

  func checkPage(_ limit: Int) -> Int { min(max(limit, 1), page) }
}

extension Caller {
  /// The author as whom the caller acts: the one named, or the one the caller is bound to.
  package func author(_ named: Author?) throws(FerryError) -> Author {
    guard let user else {
      guard let named else {
        throw FerryError(.badRequest, "Name the user who does this: the token is not bound to one.")
      }
      return named
    }
    guard let named else { return Author(id: user, name: user.rawValue) }
    guard isUser(named.id) else {
      throw FerryError(.forbidden, "This token may only act as the user it is bound to.")
    }
    return named
  }

  func mayChange(messageOf author: UserID) -> Bool { moderates || isUser(author) }

  /// Times and stamps are taken from those who may act as anybody, because they speak for others.
  func checkMayActAsAnybody(_ what: String) throws(FerryError) {
    guard user == nil else {
      throw FerryError(.forbidden, "A token that is bound to a user cannot set the \(what).")
    }
  }

  private func isUser(_ other: UserID) -> Bool {
    user.map { ExactName($0.rawValue) == ExactName(other.rawValue) } ?? false
  }
}
