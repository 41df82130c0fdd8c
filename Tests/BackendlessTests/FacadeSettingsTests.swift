import FerryConfig
import FerryCore
import Testing

@testable import BackendlessProvider

@Suite struct FacadeSettingsTests {
  private func settings(_ yaml: String) throws -> BackendlessFacade.Settings {
    try BackendlessFacade.Settings(try ConfigNode.parse(yaml).mapping())
  }

  @Test func `an id and a key are enough`() throws {
    let settings = try settings("{app_id: DE300000-0000-0000-0000-000000000001, api_key: K}")
    #expect(settings.appID == "DE300000-0000-0000-0000-000000000001" && settings.apiKey.reveal() == "K")
    #expect(settings.fields == ChatFields() && settings.publicURL == nil)
    #expect(settings.fileBytes == 64 << 20 && settings.bodyBytes > 85 << 20)
  }

  @Test func `names of the table and its columns are one's own`() throws {
    let settings = try settings(
      """
      {app_id: A, api_key: K, public_url: 'https://chat.example.org/', table: Notes, file_bytes: 1 MiB,
       fields: {channel: room, text: [body, text], sender: who, image: picture}}
      """)
    #expect(settings.publicURL == "https://chat.example.org" && settings.fileBytes == 1 << 20)
    #expect(settings.fields.table == "Notes" && settings.fields.text == ["body", "text"])
    #expect(
      settings.fields.channel == ["room"] && settings.fields.sender == ["who"] && settings.fields.image == ["picture"])
  }

  @Test(arguments: [
    "{api_key: K}", "{app_id: A}", "{app_id: 'a/b', api_key: K}", "{app_id: files, api_key: K}",
    "{app_id: A, api_key: K, public_url: chat.example.org}", "{app_id: A, api_key: K, public_url: 'http://h/path'}",
    "{app_id: A, api_key: K, fields: {txt: a}}", "{app_id: A, api_key: K, fields: {text: []}}",
    "{app_id: A, api_key: K, tabel: T}", "{app_id: A, api_key: K, table: 'a b'}",
    "{app_id: A, api_key: K, fields: {text: 'a b'}}",
  ])
  func `what is wrong is told with its place`(yaml: String) {
    let error = #expect(throws: FerryError.self) { try settings(yaml) }
    #expect(error?.code == .badConfiguration)
    #expect(error?.message.hasPrefix("ferry.yaml:1:") == true, "\(error?.message ?? "")")
  }
}
