import FerryCore
import FerryRuntime

/// The app's own events: opened, joined and read.
extension Session {
  /// How many events wait for a new key.
  private static let mostHeld = 256
  /// A key that does not fit is asked for again once in this time.
  private static let refreshInterval = Duration.seconds(30)

  mutating func event(_ frame: Frame, now: Timestamp) -> [Action] {
    guard let id = frame.channel.map({ ChannelID($0) }), let reader = context.readers[id] else { return [] }
    let unique = nextUnique()
    guard let channel = ChannelName(id.rawValue), channel.isEncrypted else {
      return read(frame, in: id, unique, reader, now: now)
    }
    if let waiting = memory.held[id] {
      guard waiting.count < Self.mostHeld else { return unreadable(id) }
      memory.held[id]?.append((frame, unique))
      return []
    }
    if let opened = open(frame, in: id) { return read(opened, in: id, unique, reader, now: now) }
    guard let socketID, mayRefresh(id, now: now) else { return unreadable(id) }
    // The key may have been exchanged since. What comes meanwhile keeps its place behind this one.
    memory.refreshed[id] = now
    memory.held[id] = [(frame, unique)]
    return authorizing.insert(id).inserted ? [.authorize(channel, socketID: socketID)] : []
  }

  /// Only an endpoint can give another key than the one that did not fit; what is made from the master key is the
  /// same every time.
  private func mayRefresh(_ channel: ChannelID, now: Timestamp) -> Bool {
    guard context.signer == nil, context.masterKey == nil else { return false }
    return memory.refreshed[channel].map { $0.advanced(by: Self.refreshInterval) <= now } ?? true
  }

  /// Reads what waited for a key, once there is one. Called until it returns nil: meanwhile more may have come, and
  /// what came later must not overtake.
  mutating func release(_ channel: ChannelID, now: Timestamp) -> [Action]? {
    guard ready.contains(channel), let reader = context.readers[channel] else { return nil }
    guard let waiting = memory.held[channel], !waiting.isEmpty else {
      ready.remove(channel)
      memory.held[channel] = nil
      return nil
    }
    memory.held[channel] = []
    var actions: [Action] = []
    for (frame, unique) in waiting {
      if let opened = open(frame, in: channel) {
        actions += read(opened, in: channel, unique, reader, now: now)
      } else {
        actions += unreadable(channel)
      }
    }
    return actions
  }

  static let unreadableReason = "an event could not be decrypted; check encryption_master_key, or auth_endpoint"

  private mutating func unreadable(_ channel: ChannelID) -> [Action] {
    note(Self.unreadableReason, at: channel)
    return [.unreadable(channel, count: 1)]
  }

  private mutating func open(_ frame: Frame, in channel: ChannelID) -> Frame? {
    guard let text = frame.data.flatMap({ memory.boxes[channel]?.open($0.parsed) }) else { return nil }
    if !pending.contains(channel) { note(nil, at: channel) }
    return Frame(event: frame.event, channel: frame.channel, data: .text(text), userID: frame.userID)
  }

  private mutating func read(
    _ frame: Frame, in channel: ChannelID, _ unique: String, _ reader: EventReader, now: Timestamp
  ) -> [Action] {
    guard frame.event.hasPrefix(Chunk.prefix), let chunk = frame.data.flatMap({ Chunk($0.parsed) }) else {
      return readings(frame, in: channel, unique, reader, now: now)
    }
    let name = String(frame.event.dropFirst(Chunk.prefix.count))
    let (result, dropped) = memory.chunks.add(chunk, of: name, in: channel, now: now)
    let losses: [Action] = dropped > 0 ? [.incomplete(channel, count: dropped)] : []
    guard case .complete(let data) = result else { return losses }
    let whole = Frame(event: name, channel: frame.channel, data: .text(data), userID: frame.userID)
    return losses + readings(whole, in: channel, unique, reader, now: now)
  }

  private mutating func readings(
    _ frame: Frame, in channel: ChannelID, _ unique: String, _ reader: EventReader, now: Timestamp
  ) -> [Action] {
    reader.read(frame, in: channel, unique: unique, now: now, memory: &memory.messages).map { reading in
      switch reading {
      case .event(let event): .deliver(event)
      case .typing(let typing): .typing(typing)
      }
    }
  }
}
