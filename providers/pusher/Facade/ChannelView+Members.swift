import FerryChat
import FerryCore
import FerryRuntime

/// What comes in several events, and who comes and goes.
extension ChannelView {
  /// The event, or the one that its last slice completes; nil while slices are missing.
  func whole(_ heard: Heard, _ chunks: inout ChunkAssembly) -> Frame? {
    let frame = Frame(event: heard.name, channel: heard.channel, data: .text(heard.data), userID: heard.userID)
    guard heard.name.hasPrefix(Chunk.prefix), let chunk = frame.data.flatMap({ Chunk($0.parsed) }) else { return frame }
    let name = String(heard.name.dropFirst(Chunk.prefix.count))
    let (result, dropped) = chunks.add(chunk, of: name, in: ChannelID(heard.channel), now: clock.now())
    if dropped > 0 { metrics?.add(Double(dropped), to: "ferry_pusher_facade_view_drops_total") }
    guard case .complete(let data) = result else { return nil }
    return Frame(event: name, channel: heard.channel, data: .text(data), userID: heard.userID)
  }

  /// Whoever left a presence channel while the facade was down told nobody.
  func dropMembers(of channel: ChannelID, except present: [PresenceList.Member]) async {
    let there = Set(present.map(\.id))
    for member in (try? await chat.members(of: channel)) ?? [] where !there.contains(member.id.rawValue) {
      await keep(PresenceList.Member(id: member.id.rawValue, info: "{}"), in: channel, isThere: false)
    }
  }

  /// Members of a presence channel are the room's.
  func keep(_ member: PresenceList.Member, in channel: ChannelID, isThere: Bool) async {
    do throws(FerryError) {
      if isThere {
        try await chat.join(member.author, channel, by: .owner, stamp: Self.stamp("", in: channel))
      } else {
        try await chat.leave(UserID(member.id), channel, by: .owner, stamp: Self.stamp("", in: channel))
      }
    } catch {
      logger.debug("who is on \(channel) is not shown: \(error)")
    }
  }
}

extension PresenceList.Member {
  /// By the name that the app tells of its users, where it tells one.
  fileprivate var author: Author {
    let info = JSONText.decode(JSONValue.self, from: info) ?? .null
    let name = info.first(["name", "username", "userName", "displayName", "display_name"], \.text) ?? ""
    return Author(id: UserID(id), name: name.isEmpty ? id : name)
  }
}
