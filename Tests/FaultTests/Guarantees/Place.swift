import FerryCore
import FerryRuntime
import FerryTestKit

/// A chat service that is made to be broken, and a room at it. People talk there without the relay's adapter, and see
/// there what a user of the service would see.
protocol Place: Sendable {
  var room: ChannelID { get }
  /// What stands between the relay and the service; nil in memory.
  var proxy: FaultProxy? { get }
  /// What stands for the service in memory; nil elsewhere.
  var memory: MemoryProvider? { get }

  /// What serves it; nil in memory.
  var server: FacadeHost? { get }

  /// Writes that the service is carrying out now.
  var writesUnderWay: Int { get }

  /// An account at the service, as the relay of this process has it.
  func account(webhook: String, clock: any FerryClock) throws(FerryError) -> any ChatProvider
  /// The same as a relay of its own is configured with it; nil in memory, which no other process can reach.
  func configuration(webhook: String) -> String?

  /// Returns how the service names the message.
  func say(_ text: String, picture: [UInt8]?) async throws -> String
  func change(_ id: String, to text: String) async throws
  func remove(_ id: String) async throws
  func type(_ on: Bool) async throws
  func shown() async throws -> [ShownMessage]

  /// Tries to write with credentials that are not good.
  func isIntruderRefused() async throws -> Bool
  /// Ends the service, without a word, and begins it again.
  func restart() async throws
  func close() async
}

/// A message as people see it.
struct ShownMessage: Sendable {
  var text: String
  /// SHA-256 of the pictures with it.
  var pictures: [String] = []
}

enum PlaceKind: String, CaseIterable, Sendable {
  case memory, local, twilio, pusher, backendless

  /// What is said while the relay does not listen can be read later.
  var keepsHistory: Bool { self != .pusher }

  func open() async throws -> any Place {
    switch self {
    case .memory: MemoryPlace()
    case .pusher: try await PusherPlace.open()
    case .local, .twilio, .backendless: try await ChatPlace.open(self)
    }
  }
}

/// Who talks everywhere.
let speaker = Author(id: "ann", name: "ann")

struct MemoryPlace: Place {
  let room: ChannelID = "room"
  private let provider = MemoryProvider()

  var proxy: FaultProxy? { nil }
  var server: FacadeHost? { nil }
  var memory: MemoryProvider? { provider }
  var writesUnderWay: Int { 0 }

  func account(webhook: String, clock: any FerryClock) -> any ChatProvider { provider }
  func configuration(webhook: String) -> String? { nil }

  func say(_ text: String, picture: [UInt8]?) -> String {
    let attachments = picture.map { bytes in
      [Attachment(name: "a.png", mediaType: "image/png", reference: provider.store(bytes))]
    }
    return provider.say(text, by: speaker, in: room, attachments: attachments ?? []).rawValue
  }

  func change(_ id: String, to text: String) { provider.change(MessageID(id), to: text, in: room) }
  func remove(_ id: String) { provider.remove(MessageID(id), in: room, by: speaker) }
  func type(_ on: Bool) { provider.type(Typing(channel: room, by: speaker, on: on)) }

  func shown() -> [ShownMessage] {
    provider.messages(in: room).map { ShownMessage(text: $0.text, pictures: $0.attachments.compactMap(\.sha256)) }
      .filter { !$0.text.isEmpty || !$0.pictures.isEmpty }
  }

  func isIntruderRefused() async throws -> Bool {
    let stranger = MemoryProvider(credentialsAreGood: false)
    do throws(FerryError) {
      _ = try await stranger.channels()
      return false
    } catch { return error.code == .badCredentials }
  }

  func restart() {}
  func close() {}
}
