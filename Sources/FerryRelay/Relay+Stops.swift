import FerryCore
import FerryRuntime
import FerryStorage

/// Lanes that a loop has stopped (G5): what they have to deliver waits for ten minutes after the last round, or until a person
/// has decided about the messages that went round. Those are dead letters, so that a stop outlasts the process.
///
/// It ends by itself because anybody may cause it where people choose their own names.
extension Relay {
  struct Stops: Sendable {
    /// Until when.
    var lanes: [LaneID: Timestamp] = [:]
    /// Questions to the journal are numbered, because their answers may come in another order.
    var asked = 0
    var answered = 0
  }

  static let stopTime = Duration.seconds(600)

  static func whyStopped(until end: Timestamp) -> String {
    "other software carries messages round in a loop. End that: the lane goes on at \(end.iso8601), or as soon as all that "
      + "went round is decided about ('ferry dead' lists it; 'ferry dead retry ID' or 'ferry dead drop ID')"
  }

  /// Until when a lane is stopped; nil when it is not, or not any more.
  func stopped(_ lane: LaneID) -> Timestamp? {
    let now = settings.clock.now()
    let (end, isOver) = stops.withLock { stops -> (Timestamp?, Bool) in
      guard let end = stops.lanes[lane], end <= now else { return (stops.lanes[lane], false) }
      stops.lanes[lane] = nil
      return (nil, true)
    }
    if isOver { settings.logger.notice("\(lane) goes on: nothing has gone round for ten minutes") }
    return end
  }

  /// After dead letters have come, or gone: finds the lanes that are stopped.
  func lookForStops() async {
    let settings = settings
    let number = stops.withLock { stops in
      stops.asked += 1
      return stops.asked
    }
    do throws(FerryError) {
      let now = settings.clock.now()
      // A clock that has been put back must not make it longer.
      let found = try await settings.journal.lanes(withDeadLettersFor: LoopGuard.stops)
        .mapValues { min($0, now).advanced(by: Self.stopTime) }.filter { $0.value > now }
      let known = stops.withLock { stops -> [LaneID: Timestamp] in
        guard stops.answered < number else { return found }
        stops.answered = number
        defer { stops.lanes = found }
        return stops.lanes
      }
      for (lane, end) in found.sorted(by: { $0.key.description < $1.key.description }) where known[lane] == nil {
        settings.logger.error("\(lane) is stopped: \(Self.whyStopped(until: end))")
      }
      for lane in known.keys.sorted(by: { $0.description < $1.description }) where found[lane] == nil {
        settings.logger.notice("\(lane) goes on")
      }
    } catch {
      settings.logger.error("it is not known which lanes a loop has stopped: \(error)")
    }
  }

  /// After `Journal.retryDead` or `dropDead`: lets the lanes look again.
  package func lettersDecided() async {
    await lookForStops()
    wake(Set(table.withLock { $0.lanes.keys }))
  }
}
