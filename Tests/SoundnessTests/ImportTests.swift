import Testing

/// The one place that says which folder may import which module. FoundationEssentials and Glibc are for all but the
/// core, which imports nothing.
private let allowedImports: [String: Set<String>] = [
  "Sources/FerryCore": [],
  "Sources/FerryRuntime": ["FerryCore", "CLinux", "CCrypto", "Synchronization"],
  "Sources/FerryTransport": ["FerryCore", "FerryRuntime", "CCurl", "CMicroHTTPD", "CWslay"],
  "Sources/FerryConfig": ["FerryCore", "CYAML"],
  "Sources/FerryStorage": ["FerryCore", "FerryRuntime", "CSQLite"],
  "Sources/FerryChat": ["FerryCore", "FerryRuntime", "FerryStorage"],
  "Sources/FerryRelay": ["FerryCore", "FerryRuntime", "FerryTransport", "FerryStorage"],
  "Sources/FerryHistory": ["FerryCore", "FerryRuntime", "FerryStorage", "CArchive"],
  "Sources/FerryPages": ["FerryCore", "FerryRuntime", "FerryTransport"],
  "Sources/FerryTestKit": ["FerryCore", "FerryRuntime", "FerryTransport"],
  "Sources/ferry": [
    "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryStorage", "FerryChat", "FerryRelay",
    "FerryHistory", "FerryPages", "LocalProvider", "PusherProvider", "TwilioProvider", "BackendlessProvider",
  ],
  "Sources/ferry-bench": [
    "FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryStorage", "FerryChat", "FerryRelay",
    "FerryHistory", "LocalProvider", "PusherProvider", "TwilioProvider", "FerryTestKit",
  ],
  "providers/local": ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
  "providers/backendless": ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
  "providers/pusher": ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat", "CSodium"],
  "providers/twilio": ["FerryCore", "FerryRuntime", "FerryTransport", "FerryConfig", "FerryChat"],
]

private let everywhere: Set<String> = ["FoundationEssentials", "Glibc"]

@Suite struct ImportTests {
  @Test("imports point inward only", arguments: allowedImports.keys.sorted())
  func importsPointInward(folder: String) throws {
    let allowed = (allowedImports[folder] ?? []).union(folder == "Sources/FerryCore" ? [] : everywhere)
    for file in try Repository.files(in: folder) {
      for (number, module) in file.imports {
        #expect(allowed.contains(module), "\(file.path):\(number) imports \(module)")
      }
    }
  }

  @Test("every folder of ours is in the table of imports")
  func tableIsComplete() throws {
    let folders = try Repository.folders(in: "Sources") + Repository.folders(in: "providers")
    for folder in folders where try !Repository.files(in: folder).isEmpty {
      #expect(allowedImports[folder] != nil, "say in ImportTests.swift what \(folder) may import")
    }
  }

  @Test("a C module is imported by one folder")
  func cModulesHaveOneOwner() throws {
    var owners: [String: Set<Substring>] = [:]
    for file in try Repository.everything() {
      for (_, module) in file.imports where module.hasPrefix("C") && module.dropFirst().first?.isUppercase == true {
        owners[module, default: []].insert(file.path.split(separator: "/").prefix(2).joined(separator: "/")[...])
      }
    }
    for (module, folders) in owners { #expect(folders.count == 1, "\(module) is imported by \(folders.sorted())") }
  }

  @Test("nobody imports the whole of Foundation, tests included")
  func noFoundation() throws {
    for file in try Repository.everything() {
      for (number, module) in file.imports {
        #expect(
          !["Foundation", "FoundationNetworking", "FoundationXML", "Dispatch"].contains(module),
          "\(file.path):\(number) imports \(module)")
      }
    }
  }

  @Test("imports are recognised however they are written")
  func recognition() {
    let lines: [(Substring, String?)] = [
      ("import Glibc", "Glibc"), ("package import FerryCore", "FerryCore"),
      ("  import Synchronization", "Synchronization"),
      ("@testable import ferry", "ferry"), ("import struct Glibc.stat", "Glibc"), ("// import CCurl", nil),
      ("let text = \"import x\"", nil), ("@preconcurrency private import CYAML", "CYAML"),
    ]
    for (line, module) in lines {
      let file = Repository.SourceFile(path: "x", lines: [line])
      #expect(file.imports.map(\.module) == (module.map { [$0] } ?? []))
    }
  }
}
