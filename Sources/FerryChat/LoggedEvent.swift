package import FerryCore
import FerryRuntime

/// One row of the event log, shared by all who are told of it.
package final class LoggedEvent: Sendable {
  /// Grows with every event of the namespace; with gaps.
  package let sequence: Int64
  package let room: ChannelID
  /// A `Wire.Event`.
  package let json: String
  private let known: Event?
  private let encoded = Locked<(any Sendable)?>(nil)

  init(sequence: Int64, room: ChannelID, json: String, event: Event? = nil) {
    self.sequence = sequence
    self.room = room
    self.json = json
    known = event
  }

  /// The event with its cursor and key. Free for live events, decoded for those read from the log.
  package func event() throws(FerryError) -> Event {
    if let known { return known }
    return try Wire.value(Wire.Event.self, from: json.utf8).event(sequence: sequence)
  }

  /// What `make` makes of this event, made once however many receivers ask (one facade's frame, say).
  package func encoding<T: Sendable>(_ make: () -> T) -> T {
    encoded.withLock { encoded in
      if let made = encoded as? T { return made }
      let made = make()
      encoded = made
      return made
    }
  }
}

/// What a reader receives: something durable, or somebody typing.
package enum FeedItem: Sendable {
  case event(LoggedEvent)
  case typing(Typing)
}
