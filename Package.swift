// swift-tools-version: 6.2
import PackageDescription

/// One library target of ours. Imports between them are held by SoundnessTests/ImportTests.swift.
func module(
  _ name: String, _ dependencies: [Target.Dependency], path: String? = nil, documents: [String] = []
) -> Target {
  .target(name: name, dependencies: dependencies, path: path, exclude: documents)
}

/// The files of a page, which become constants of the program.
func pageFiles(_ page: String) -> [Resource] {
  let files = [
    "chat": [
      "chat.html", "actions.js", "chat.css", "composer.js", "drops.js", "early.js", "extra.css", "icon.svg",
      "jump.js", "log.js", "main.js", "mentions.js", "menu.js", "net.js", "notices.js", "outbox.js",
      "reading.js", "room.js", "rooms.js", "row.js", "search.js", "sign-in.js", "text.js", "timeline.js",
      "tray.js", "viewer.js", "words.js", "words-ja.js",
    ],
    "console": [
      "console.html", "console.css", "console.js", "console.svg", "dead.js", "dom.js", "events.js", "health.js",
      "lanes.js", "map.js", "overview.js", "plot.js", "probe.js", "service.js", "settings.js", "table.js", "trace.js",
      "vocabulary.js",
    ],
    "start": ["start.html", "start.css", "start.js"],
  ]
  return (files[page] ?? []).map { .embedInCode("\(page)/\($0)") }
}

let package = Package(
  name: "ferry",
  products: [
    .executable(name: "ferry", targets: ["ferry"]),
    .executable(name: "ferry-bench", targets: ["ferry-bench"]),
  ],
  targets: [
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CCurl"),
    .systemLibrary(name: "CMicroHTTPD"),
    .systemLibrary(name: "CWslay"),
    .systemLibrary(name: "CSQLite"),
    .systemLibrary(name: "CYAML"),
    .systemLibrary(name: "CCrypto"),
    .systemLibrary(name: "CSodium"),
    .systemLibrary(name: "CArchive"),

    module("FerryCore", []),
    module("FerryRuntime", ["FerryCore", "CLinux", "CCrypto"]),
    module("FerryTransport", ["FerryCore", "FerryRuntime", "CCurl", "CMicroHTTPD", "CWslay"]),
    module("FerryConfig", ["FerryCore", "CYAML"]),
    module("FerryStorage", ["FerryCore", "FerryRuntime", "CSQLite"]),
    module("FerryChat", ["FerryCore", "FerryRuntime", "FerryStorage"]),
    module("FerryRelay", ["FerryCore", "FerryRuntime", "FerryTransport", "FerryStorage"]),
    module("FerryHistory", ["FerryCore", "FerryRuntime", "FerryStorage", "CArchive"]),
    module(
      "LocalProvider",
      ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
      path: "providers/local", documents: ["README.md", "openapi.yaml"]),
    module(
      "PusherProvider",
      ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "CSodium"],
      path: "providers/pusher", documents: ["README.md"]),
    module(
      "BackendlessProvider",
      ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
      path: "providers/backendless", documents: ["README.md"]),
    module(
      "TwilioProvider",
      ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
      path: "providers/twilio", documents: ["README.md"]),
    .target(
      name: "FerryPages", dependencies: ["FerryCore", "FerryRuntime", "FerryTransport"],
      resources: ["chat", "console", "start"].flatMap(pageFiles)),
    module("FerryTestKit", ["FerryCore", "FerryRuntime", "FerryTransport"]),

    .executableTarget(
      name: "ferry",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryStorage", "FerryChat", "FerryRelay",
        "FerryHistory", "FerryPages", "LocalProvider", "PusherProvider", "TwilioProvider", "BackendlessProvider",
      ]),
    .executableTarget(
      name: "ferry-bench",
      dependencies: ["FerryCore", "FerryRuntime", "FerryHistory", "FerryTestKit"]),

    .testTarget(name: "FerryCoreTests", dependencies: ["FerryCore"]),
    .testTarget(name: "FerryRuntimeTests", dependencies: ["FerryCore", "FerryRuntime", "FerryTestKit"]),
    .testTarget(
      name: "FerryTransportTests", dependencies: ["FerryCore", "FerryRuntime", "FerryTransport"],
      // So that libcurl finds the scripted answers of these tests before the C library's.
      linkerSettings: [
        .unsafeFlags([
          "-Xlinker", "--export-dynamic-symbol=getaddrinfo", "-Xlinker", "--export-dynamic-symbol=connect",
        ])
      ]),
    .testTarget(name: "FerryConfigTests", dependencies: ["FerryCore", "FerryConfig"]),
    .testTarget(name: "FerryStorageTests", dependencies: ["FerryCore", "FerryRuntime", "FerryStorage"]),
    .testTarget(name: "FerryChatTests", dependencies: ["FerryCore", "FerryRuntime", "FerryStorage", "FerryChat"]),
    .testTarget(name: "FerryPagesTests", dependencies: ["FerryTransport", "FerryPages"]),
    .testTarget(
      name: "FerryRelayTests",
      dependencies: ["FerryCore", "FerryRuntime", "FerryTransport", "FerryStorage", "FerryRelay", "FerryTestKit"]),
    .testTarget(
      name: "FerryHistoryTests",
      dependencies: ["FerryCore", "FerryRuntime", "FerryStorage", "FerryHistory", "FerryTestKit"]),
    .testTarget(
      name: "LocalTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "FerryTestKit", "LocalProvider",
      ]),
    .testTarget(
      name: "PusherTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "FerryTestKit", "PusherProvider",
      ]),
    .testTarget(
      name: "BackendlessTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "FerryTestKit",
        "BackendlessProvider",
      ]),
    .testTarget(
      name: "TwilioTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "FerryTestKit", "TwilioProvider",
      ]),
    .testTarget(
      name: "ContractTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "FerryTestKit",
        "LocalProvider", "PusherProvider", "TwilioProvider", "BackendlessProvider",
      ]),
    .testTarget(
      name: "FaultTests",
      dependencies: [
        "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryStorage", "FerryChat", "FerryRelay",
        "FerryTestKit", "LocalProvider", "PusherProvider", "TwilioProvider", "BackendlessProvider", "ferry",
      ]),
    .testTarget(
      name: "CommandTests", dependencies: ["FerryCore", "FerryRuntime", "FerryHistory", "FerryTestKit", "ferry"]),
    .testTarget(name: "SoundnessTests", dependencies: ["ferry"]),
  ]
)

// Building one target's tests takes a fraction of building all: FERRY_TESTS=FerryChatTests swift build --build-tests
if let wanted = Context.environment["FERRY_TESTS"]?.split(separator: ",").map(String.init) {
  package.targets.removeAll { $0.type == .test && !wanted.contains($0.name) }
}

for target in package.targets where target.type != .system {
  target.swiftSettings = [
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
    .enableUpcomingFeature("ExistentialAny"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
    .enableUpcomingFeature("MemberImportVisibility"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
    .enableUpcomingFeature("InternalImportsByDefault"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0470-isolated-conformances.md
    .enableUpcomingFeature("InferIsolatedConformances"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0461-async-function-isolation.md
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0480-swiftpm-warning-control.md
    .treatAllWarnings(as: .error),
  ]
}
