import FerryCore
import FerryRuntime
import FerryTestKit
import FoundationEssentials

/// Runs the built `ferry` as a user does, in a folder of its own.
struct Ferry {
  let folder: String

  init() throws {
    folder = "\(FileManager.default.temporaryDirectory.path)/ferry-command-\(Crypto.randomHex(bytes: 8))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    // What stands here for every command that is told of no other: no accounts.
    try Data("relay: { listen: 127.0.0.1:0 }\n".utf8).write(to: URL(fileURLWithPath: "\(folder)/none.yaml"))
  }

  func remove() { try? FileManager.default.removeItem(atPath: folder) }

  func write(_ name: String, _ text: String) throws -> String {
    let path = "\(folder)/\(name)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    return path
  }

  func run(_ arguments: String..., input: String? = nil) async throws -> ChildProcess.Outcome {
    try await run(arguments, input: input)
  }

  func run(
    _ arguments: [String], input: String? = nil, config: String? = nil
  ) async throws -> ChildProcess.Outcome {
    try await ChildProcess.run(
      ChildProcess.built("ferry"), arguments, input: input,
      environment: ["FERRY_CONFIG": config ?? "\(folder)/none.yaml"])
  }

  /// `ferry serve` on free ports, ready.
  func serve() async throws -> Server {
    let config = try write(
      "serve.yaml",
      """
      serve:
        data: \(folder)/data
        local:
          listen: 127.0.0.1:0
          tokens: [secret-token, { token: ann-token, user: ann }]
        facades:
          - { provider: pusher, listen: "127.0.0.1:0", app_id: "1001", key: k, secret: s }
          - { provider: backendless, listen: "127.0.0.1:0", app_id: APP, api_key: KEY }
          - { provider: twilio, listen: "127.0.0.1:0", account_sid: AC00000000000000000000000000000001, auth_token: t, api_key: SK00000000000000000000000000000001, api_secret: s, service_sid: IS00000000000000000000000000000001 }
      """)
    return try await Server("serve", config, folder)
  }
}

/// A long-running command.
struct Server {
  let child: ChildProcess
  let urls: [String: String]

  init(_ command: String, _ config: String, _ folder: String, _ more: String...) async throws {
    let ready = "\(folder)/\(command)-\(Crypto.randomHex(bytes: 4)).ready"
    child = try ChildProcess(
      ChildProcess.built("ferry"), [command, "--config", config, "--ready-file", ready] + more)
    while true {
      if let data = FileManager.default.contents(atPath: ready) {
        urls = try JSONDecoder().decode([String: String].self, from: data)
        return
      }
      guard child.isRunning else { throw FerryError(.unavailable, child.errors) }
      try await SystemClock().sleep(for: .milliseconds(2))
    }
  }

  /// `local+http://TOKEN@127.0.0.1:PORT/ROOM`
  func local(_ room: String, token: String = "secret-token") -> String {
    (urls["local"] ?? "").replacing("http://", with: "local+http://\(token)@") + "/\(room)"
  }

  func pusher(_ channel: String, secret: String = "s") -> String {
    (urls["pusher"] ?? "").replacing("http://", with: "pusher+http://k:\(secret)@") + "/apps/1001/\(channel)"
  }

  func backendless(_ channel: String) -> String {
    (urls["backendless"] ?? "").replacing("http://", with: "backendless+http://APP:KEY@") + "/\(channel)"
  }

  /// The exit code after SIGTERM.
  func stop() async -> Int32 {
    child.signal(15)
    return await child.wait()
  }
}

func withFerry(_ body: (Ferry) async throws -> Void) async throws {
  let ferry = try Ferry()
  defer { ferry.remove() }
  try await body(ferry)
}

func withServer(_ body: (Ferry, Server) async throws -> Void) async throws {
  try await withFerry { ferry in
    let server = try await ferry.serve()
    try await body(ferry, server)
    _ = await server.stop()
  }
}
