package import FerryCore

/// Where an export goes: an archive, or another service's format.
package protocol ExportSink: RecordSink {
  /// What was written down with the last commit about a channel; nil when there was none.
  func place(of channel: ChannelID) async throws(FerryError) -> String?

  /// Makes everything appended so far durable, together with where the export stands.
  func commit(_ place: String, of channel: ChannelID) async throws(FerryError)

  /// Ends the export: no more is written. Returns what proves, kept elsewhere, that the end was not cut off.
  @discardableResult
  func finish() async throws(FerryError) -> String?
}
