import FerryCore
import FerryRuntime
import FerryStorage

/// Lanes that a loop has stopped (G5): what they have to deliver waits until a person has decided about the messages that
/// went round. Those are dead letters, so that a stop outlasts the process.
extension Relay {
  struct Stops: Sendable {
    var lanes: Set<LaneID> = []
    /// Questions to the journal are numbered, because their answers may come in another order.
    var asked = 0
    var answered = 0
  }

  static let whyStopped =
    "other software carries messages round in a loop. End that; then 'ferry dead' lists what went round, and "
    + "'ferry dead retry ID' or 'ferry dead drop ID' of all of it lets the lane go on"

  /// After dead letters have come, or gone: finds the lanes that are stopped.
  func lookForStops() async {
    let settings = settings
    let number = stops.withLock { stops in
      stops.asked += 1
      return stops.asked
    }
    do throws(FerryError) {
      let found = try await settings.journal.lanes(withDeadLettersFor: LoopGuard.stops)
      let known = stops.withLock { stops -> Set<LaneID> in
        guard stops.answered < number else { return found }
        stops.answered = number
        defer { stops.lanes = found }
        return stops.lanes
      }
      for lane in found.subtracting(known).sorted(by: { $0.description < $1.description }) {
        settings.logger.error("\(lane) is stopped: \(Self.whyStopped)")
      }
      for lane in known.subtracting(found).sorted(by: { $0.description < $1.description }) {
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
