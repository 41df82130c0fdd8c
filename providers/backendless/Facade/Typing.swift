import FerryChat
import FerryCore
import FerryRuntime

/// Typing: commands on this side, the chat's own typing on the other.
extension BackendlessFacade {
  /// Who types in a channel by commands. What the chat tells of them is no news here: for so long, as the chat tells
  /// late, leaves out what is repeated, and ends what nobody renews.
  struct Typist: Hashable, Sendable {
    let channel: String
    let author: String

    static let lasts = Duration.seconds(30)
  }

  /// A command that says that somebody types, or stopped, told to the chat. Others are nobody's but their listeners'.
  func setTyping(_ type: String, _ data: JSONValue?, in channel: String, by user: UserReference?, sid: String) {
    let word = type.uppercased()
    guard word.hasSuffix("TYPING") else { return }
    let isOn = !word.contains("STOP") && (data?["on"]?.bool ?? true)
    let name = ["user", "userName", "name", "userEmail"].lazy.compactMap { data?[$0]?.string }.first
    let author = ChatRows.author(user: user, name: name ?? user?.name, otherwise: sid)
    let typist = Typist(channel: channel, author: author.id.rawValue)
    let now = clock.now()
    typists.withLock { typists in
      if typists.count >= 10_000 { typists = typists.filter { $0.value.advanced(by: Typist.lasts) > now } }
      if typists.count < 10_000 { typists[typist] = now }
    }
    try? chat.setTyping(
      FerryCore.Typing(channel: ChannelID(channel), by: author, on: isOn), by: .owner)
  }

  /// Tells the listeners of commands who types elsewhere, on the chat page above all. Until cancelled.
  func tellTyping() async {
    while !Task.isCancelled {
      do throws(FerryError) {
        let reader = try await chat.reader(of: nil, after: nil)
        defer { reader.close() }
        while true {
          let items = try await reader.next()
          if items.isEmpty { return }
          for case .typing(let typing) in items { tell(typing) }
        }
      } catch {
        logger.warning("typing cannot be followed: \(error)")
        guard (try? await clock.sleep(for: .seconds(1))) != nil else { return }
      }
    }
  }

  private func tell(_ typing: FerryCore.Typing) {
    let typist = Typist(channel: typing.channel.rawValue, author: typing.by.id.rawValue)
    let last = typists.withLock { $0[typist] }
    if let last, last.advanced(by: Typist.lasts) > clock.now() { return }
    let type = typing.on ? "USER_TYPING" : "USER_STOP_TYPING"
    let data = #"{"user":\#(JSONText.quoted(typing.by.name)),"on":\#(typing.on)}"#
    let command =
      #"{"type":"\#(type)","data":\#(data),"connectionId":\#(JSONText.quoted("chat:\(typing.by.id)")),"userId":null}"#
    hub.withLock { $0.deliver(command: command, to: typing.channel.rawValue) }
  }
}
