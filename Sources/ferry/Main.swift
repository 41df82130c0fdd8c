import FerryCore
import FerryRuntime
import Glibc

@main
struct Main {
  /// Leaves the main actor at once: actor calls are expensive on it.
  static func main() async {
    let signals = Signals.install()
    // Not `exit`: it would tear down libraries that the loops' threads are still using.
    Glibc._exit(await run(Array(CommandLine.arguments.dropFirst()), signals))
  }

  @concurrent
  static func run(_ arguments: [String], _ signals: BoundedChannel<Signals.Signal>) async -> Int32 {
    do {
      return try await dispatch(arguments, signals)
    } catch let error as UsageError {
      Terminal.error("ferry: \(error.message)\n\(error.hint)")
      return ExitCode.usage
    } catch {
      let error = FerryError.wrap(error)
      Terminal.error("ferry: \(error.message)\(error.cause.map { "\n  (\($0))" } ?? "")")
      return ExitCode.of(error)
    }
  }

  private static func dispatch(
    _ arguments: [String], _ signals: BoundedChannel<Signals.Signal>
  ) async throws -> Int32 {
    guard let name = arguments.first, name != "--help", name != "-h", name != "help" else {
      let topic = arguments.dropFirst().first.flatMap { name in Commands.all.first { $0.name == name } }
      Terminal.output(topic.map { $0.help } ?? Commands.help)
      return arguments.isEmpty ? ExitCode.usage : 0
    }
    if name == "--version" {
      Terminal.output("ferry \(Version.current)")
      return 0
    }
    guard let command = Commands.all.first(where: { $0.name == name }) else {
      throw UsageError(
        "there is no command \"\(name)\"\(Commands.suggestion(for: name))", "Run 'ferry --help' for the commands.")
    }
    let rest = Array(arguments.dropFirst())
    if rest.contains("--help") || rest.contains("-h") {
      Terminal.output(command.help)
      return 0
    }
    let parsed = try Arguments(rest, for: command)
    if !command.runsUntilSignal { Signals.endAtOnce(with: ExitCode.interrupted) }
    return try await command.run(Invocation(arguments: parsed, signals: signals))
  }
}

enum Version { static let current = "0.1.0" }
