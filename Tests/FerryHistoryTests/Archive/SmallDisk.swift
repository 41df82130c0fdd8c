import FerryCore
import Glibc

/// A disk in memory that is soon full. Only root can have one.
final class SmallDisk {
  let path: String
  /// MNT_DETACH and MS_REMOUNT of <sys/mount.h>.
  private static let detach: Int32 = 2
  private static let remount: UInt = 32

  init(_ path: String, bytes: Int) throws {
    self.path = path
    guard getuid() == 0, mkdir(path, 0o700) == 0, mount("tmpfs", path, "tmpfs", 0, "size=\(bytes)") == 0 else {
      throw FerryError(.unsupported, "There is no disk to be had.")
    }
  }

  deinit { umount2(path, Self.detach) }

  func grow(to bytes: Int) throws {
    guard mount("tmpfs", path, "tmpfs", Self.remount, "size=\(bytes)") == 0 else {
      throw FerryError(.unsupported, "The disk does not grow.")
    }
  }
}
