import FerryConfig
import FerryRuntime

/// One subcommand: what it takes, what it says about itself, and what it does.
struct Command: Sendable {
  struct Option: Sendable {
    let name: String
    /// What stands for its value in the help; nil for a switch.
    let value: String?
    let help: String

    init(_ name: String, _ value: String? = nil, _ help: String) {
      self.name = name
      self.value = value
      self.help = help
    }
  }

  let name: String
  /// Positional arguments as the help shows them; those in brackets may be missing.
  let positional: [String]
  let summary: String
  let options: [Option]
  /// Whole lines after the options: what to know, and examples.
  let notes: String
  /// Whether it runs until a signal ends it, and sees to that itself; any other is ended by one at once.
  var runsUntilSignal = false
  let run: @Sendable (Invocation) async throws -> Int32

  var usage: String { (["ferry", name] + positional).joined(separator: " ") + (options.isEmpty ? "" : " [options]") }

  var help: String {
    var text = "\(usage)\n\n\(summary)\n"
    if !options.isEmpty {
      let names = options.map { "--\($0.name)\($0.value.map { " \($0)" } ?? "")" }
      let width = names.map(\.count).max() ?? 0
      text += "\nOptions:\n"
      for (name, option) in zip(names, options) {
        text += "  \(name)\(String(repeating: " ", count: width - name.count))  \(option.help)\n"
      }
    }
    if !notes.isEmpty { text += "\n\(notes)\n" }
    return String(text.dropLast())
  }
}

/// What a command is called with.
struct Invocation: Sendable {
  let arguments: Arguments
  let signals: BoundedChannel<Signals.Signal>
}

enum Commands {
  static let all: [Command] = [
    Demo.command, Serve.command, RelayCommand.command, Post.command, Tail.command, History.command,
    Channels.command, Members.command, Check.command, Plan.command, ProvidersCommand.command, Explain.command,
    StatusCommand.command, DeadCommand.command, Export.command, Import.command, Migrate.command,
    Verify.command,
  ]

  static let configOption = Command.Option(
    "config", "FILE", "configuration (else $FERRY_CONFIG, else ferry.yaml here)")
  static let jsonOption = Command.Option("json", nil, "print JSON, for programs")
  static let readyOption = Command.Option(
    "ready-file", "PATH", "write the bound URLs there as JSON once everything listens")
  static let verboseOption = Command.Option("verbose", nil, "log more")

  static let addressNotes = """
    ADDRESS is account:channel, with an account of the configuration, or a URL that needs none:
      local+http://TOKEN@127.0.0.1:8080/lobby
      twilio://ACCOUNT_SID:AUTH_TOKEN@conversations.twilio.com/CONVERSATION
      pusher+http://KEY:SECRET@127.0.0.1:8082/apps/1001/chatroom
      backendless://APP_ID:API_KEY@api.backendless.com/CHANNEL
      pusher://KEY:SECRET@api-eu.pusher.com/apps/1001/chatroom
    """

  static var help: String {
    let width = all.map { ([$0.name] + $0.positional).joined(separator: " ").count }.max() ?? 0
    let lines = all.map { command in
      let usage = ([command.name] + command.positional).joined(separator: " ")
      let summary = command.summary.prefix { $0 != "." && $0 != "\n" }
      return "  ferry \(usage)\(String(repeating: " ", count: width - usage.count))  \(summary)"
    }
    return """
      Ferry carries chat between services.

      \(lines.joined(separator: "\n"))

      'ferry COMMAND --help' tells more. Results go to standard output, everything else to standard error.
      Exit codes: 0 done, 64 usage, 65 bad data, 69 unavailable, 73 cannot create, 75 try again later,
      76 outcome unknown, 77 not permitted, 78 bad configuration, 130 interrupted.
      """
  }

  static func suggestion(for name: String) -> String { FerryConfig.suggestion(name, among: all.map(\.name)) }
}
