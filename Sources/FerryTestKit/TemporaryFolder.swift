package import FerryCore
import FerryRuntime
import FoundationEssentials

/// A folder that is gone, with all in it, when the last reference to it is.
package final class TemporaryFolder: Sendable {
  package let path: String

  package init() throws(FerryError) {
    path = "\(FileManager.default.temporaryDirectory.path)/ferry-test-\(Crypto.randomHex(bytes: 8))"
    do { try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true) } catch {
      throw FerryError.wrap(error)
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package func file(_ name: String) -> String { "\(path)/\(name)" }
}
