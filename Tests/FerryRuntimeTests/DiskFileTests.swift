import FerryCore
import FerryRuntime
import Testing

@Suite struct DiskFileTests {
  @Test(
    "a file's folder is what stands before its name",
    arguments: [("/file", "/"), ("file", "."), ("/a/file", "/a"), ("a/b/file", "a/b"), ("./file", ".")])
  func folders(path: String, folder: String) { #expect(DiskFile.folder(of: path) == folder) }

  @Test("whose folder it is says how what went wrong with it is told")
  func failures() {
    let error = #expect(throws: FerryError.self) {
      try DiskFile.syncFolder(of: "/no/such/folder/file") { FerryError(.storage, "\($0) it is.") }
    }
    #expect(error?.message == "/no/such/folder it is.")
  }
}
