package import FerryCore

extension Wire.Event {
  /// `stored` is the message as stored, for `posted` and `edited`, whose client id the model does not carry.
  init(_ event: FerryCore.Event, stored: ChatMessage? = nil) {
    self.init(kind: .message, room: event.channel.rawValue, time: Wire.Time(event.time))
    switch event.kind {
    case .posted(let message):
      self.message = Wire.Message(stored ?? ChatMessage(message: message, room: event.channel))
    case .edited(let message):
      kind = .edit
      self.message = Wire.Message(stored ?? ChatMessage(message: message, room: event.channel))
    case .deleted(let deletion):
      kind = .delete
      id = deletion.id.rawValue
      by = deletion.by.map(Wire.Author.init)
      stamp = deletion.stamp
    case .joined(let membership):
      kind = .join
      by = Wire.Author(membership.member)
      stamp = membership.stamp
    case .left(let membership):
      kind = .leave
      by = Wire.Author(membership.member)
      stamp = membership.stamp
    case .read(let mark):
      kind = .read
      id = mark.upTo.rawValue
      by = mark.by.map(Wire.Author.init)
      state = mark.state
      stamp = mark.stamp
    case .reacted(let reaction):
      kind = .reaction
      id = reaction.message.rawValue
      by = Wire.Author(reaction.by)
      emoji = reaction.emoji
      added = reaction.added
      stamp = reaction.stamp
    }
  }

  /// The event this writes, or `badData` when a member is missing.
  package func event(sequence: Int64) throws(FerryError) -> FerryCore.Event {
    FerryCore.Event(
      key: EventKey("s\(sequence)"), channel: ChannelID(room), time: time.timestamp, kind: try eventKind(),
      cursor: Cursor(String(sequence)))
  }

  private func eventKind() throws(FerryError) -> FerryCore.Event.Kind {
    switch kind {
    case .message: return .posted(try need(message, "message").message())
    case .edit: return .edited(try need(message, "message").message())
    case .delete:
      return .deleted(Deletion(id: MessageID(try need(id, "id")), by: by?.author, stamp: stamp))
    case .join: return .joined(Membership(member: try need(by, "by").author, stamp: stamp))
    case .leave: return .left(Membership(member: try need(by, "by").author, stamp: stamp))
    case .read:
      let state = try need(state, "state")
      return .read(ReadMark(upTo: MessageID(try need(id, "id")), by: by?.author, state: state, stamp: stamp))
    case .reaction:
      return .reacted(
        Reaction(
          message: MessageID(try need(id, "id")), by: try need(by, "by").author, emoji: try need(emoji, "emoji"),
          added: try need(added, "added"), stamp: stamp))
    }
  }

  private func need<T>(_ value: T?, _ name: String) throws(FerryError) -> T {
    guard let value else { throw FerryError(.badData, "An event of kind \(kind.rawValue) has no \(name).") }
    return value
  }
}
