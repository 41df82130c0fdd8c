import FerryCore
import FerryRelay
import FerryRuntime
import FerryStorage
import FerryTransport
import FoundationEssentials
import Glibc

/// Runs services until a signal ends them.
///
/// The first SIGTERM or SIGINT ends gracefully: the relay settles what it is sending, servers finish their requests.
/// A second one, or ten seconds, ends at once.
struct Host: Sendable {
  let session: Session
  let signals: BoundedChannel<Signals.Signal>

  private static let patience = Duration.seconds(10)

  func run(
    services: LocalServices?, relay: RelayService?, readyFile: String?, greeting: String? = nil,
    reload: @Sendable () async -> Void
  ) async throws -> Int32 {
    let relayEnded = BoundedChannel<Void>(capacity: 1)
    let failure = await withDiscardingTaskGroup { group -> FerryError? in
      if let services { group.addTask { await services.run() } }
      if let relay {
        group.addTask { await relay.server.run() }
        group.addTask {
          await relay.relay.run()
          relayEnded.finish()
        }
      }
      var failure: FerryError?
      do throws(FerryError) {
        try writeReadyFile(readyFile, services, relay)
        if let greeting { Terminal.error(greeting) }
        await waitForEnd(reload)
      } catch {
        failure = error
      }
      session.logger.info("ending")
      group.addTask { await endAtOnceLater() }
      if let relay {
        relay.relay.stop()
        _ = await relayEnded.next()
      }
      await services?.sayGoodbye()
      group.cancelAll()
      return failure
    }
    relay?.journal.close()
    services?.close()
    if let failure { throw failure }
    return 0
  }

  private func waitForEnd(_ reload: @Sendable () async -> Void) async {
    while let signal = await signals.next() {
      guard signal == .hangUp else { return }
      await reload()
    }
  }

  /// Ends the process when the graceful way takes too long, or at a second signal. Nothing is lost: what was under
  /// way is settled at the next start.
  private func endAtOnceLater() async {
    await withDiscardingTaskGroup { group in
      group.addTask {
        guard (try? await session.clock.sleep(for: Self.patience)) != nil else { return }
        session.logger.warning("ending at once after \(Self.patience)")
        Glibc._exit(0)
      }
      group.addTask {
        guard await signals.next() != nil else { return }
        Glibc._exit(ExitCode.interrupted)
      }
    }
  }

  private func writeReadyFile(
    _ path: String?, _ services: LocalServices?, _ relay: RelayService?
  ) throws(FerryError) {
    guard let path else { return }
    var urls = services?.urls ?? [:]
    if let relay { urls["relay"] = relay.url }
    let text = try Terminal.json(urls)
    do {
      // Written aside and renamed: a reader sees all of it or nothing.
      try Data(text.utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
    } catch {
      throw FerryError(.storage, "The ready file \(path) cannot be written.", cause: "\(error)")
    }
  }
}
