import FerryCore
import FerryRuntime

extension ProviderContract {
  static let changing = [
    Rule("an edit is seen with the message's id, the new text and the stamp", when: \.edits) { contract in
      let provider = try contract.power((any EditingProvider).self)
      try await contract.listening { inbox in
        let message = contract.outgoing("frist", id: "7")
        let id = try await provider.post(message, to: contract.channel)
        await contract.noticed(id, by: inbox)
        let edit = contract.outgoing("first", id: "7", revision: 1)
        try await provider.edit(id, in: contract.channel, to: edit)
        let edited = await inbox.wait { record in
          for case .edited(let message) in record.events.map(\.kind) { return message }
          return nil
        }
        let arrived = try contract.unwrap(edited, "the edit never arrived")
        try contract.require(arrived.id == id, "the edit is of \(arrived.id), not \(id)")
        try contract.require(arrived.text == "first", "the text is \(arrived.text)")
        try contract.require(arrived.revision > 0, "the revision is \(arrived.revision)")
        try contract.require(arrived.stamp == edit.stamp, "the stamp is \(String(describing: arrived.stamp))")
        // Harmless, as after an answer that was lost.
        try await provider.edit(id, in: contract.channel, to: edit)
      }
    },
    Rule("editing a message that is gone is reported", when: { $0.edits && $0.history != .none }) { contract in
      let provider = try contract.power((any EditingProvider).self)
      let deleting = try contract.power((any DeletingProvider).self)
      let id = try await provider.post(contract.outgoing("soon gone"), to: contract.channel)
      try await deleting.delete(id, in: contract.channel, as: nil, stamp: nil)
      _ = try await contract.error([.notFound], "editing a deleted message") {
        try await provider.edit(id, in: contract.channel, to: contract.outgoing("too late"))
      }
    },
    Rule("a deletion is seen with the message's id and the stamp, and may be repeated", when: \.deletes) { contract in
      let provider = try contract.power((any DeletingProvider).self)
      try await contract.listening { inbox in
        let message = contract.outgoing("oops")
        let id = try await provider.post(message, to: contract.channel)
        await contract.noticed(id, by: inbox)
        try await provider.delete(id, in: contract.channel, as: ada, stamp: message.stamp)
        let deletion = await inbox.wait { record in
          for case .deleted(let deletion) in record.events.map(\.kind) { return deletion }
          return nil
        }
        let arrived = try contract.unwrap(deletion, "the deletion never arrived")
        try contract.require(arrived.id == id, "the deletion is of \(arrived.id), not \(id)")
        try contract.require(arrived.stamp == message.stamp, "the stamp is \(String(describing: arrived.stamp))")
        try await provider.delete(id, in: contract.channel, as: ada, stamp: message.stamp)
      }
    },
    Rule("typing is seen with who it is and whether it goes on", when: \.typing) { contract in
      let provider = try contract.power((any TypingProvider).self)
      try await contract.listening { inbox in
        try await provider.setTyping(Typing(channel: contract.channel, by: ada, on: true))
        let on = try contract.unwrap(await inbox.wait { $0.typing.first }, "the typing never arrived")
        try contract.require(on.on && on.channel == contract.channel, "got \(on)")
        try contract.require(on.by.name == "ada", "\(on.by.name) is typing")
        try contract.require(inbox.now.events.isEmpty, "typing became an event")
      }
    },
    Rule("joining and leaving are seen, and the members listed where they are known", when: \.members) { contract in
      let provider = try contract.power((any MembershipProvider).self)
      try await contract.listening { inbox in
        // Twice, which is harmless.
        try await provider.setMember(Membership(member: bob), of: contract.channel, present: true)
        try await provider.setMember(Membership(member: bob), of: contract.channel, present: true)
        let joined = await inbox.wait { record in
          for case .joined(let membership) in record.events.map(\.kind) { return membership.member }
          return nil
        }
        try contract.require(joined?.id == bob.id, "\(String(describing: joined)) joined")
        let members = try await contract.members(provider)
        try contract.require(members?.contains(bob.id) != false, "the members are \(members ?? [])")
        try await provider.setMember(Membership(member: bob), of: contract.channel, present: false)
        let left = await inbox.wait { record in
          for case .left(let membership) in record.events.map(\.kind) { return membership.member }
          return nil
        }
        try contract.require(left?.id == bob.id, "\(String(describing: left)) left")
        let rest = try await contract.members(provider)
        try contract.require(rest?.contains(bob.id) != true, "the members are \(rest ?? [])")
      }
    },
    Rule("a read mark is seen with its message, reader and state", when: \.reads) { contract in
      let provider = try contract.power((any ReadingProvider).self)
      try await contract.listening { inbox in
        let id = try await provider.post(contract.outgoing("read me"), to: contract.channel)
        let mark = ReadMark(upTo: id, by: bob, state: .read, stamp: contract.outgoing("x").stamp)
        try await provider.mark(mark, in: contract.channel)
        let arrived = await inbox.wait { record in
          for case .read(let mark) in record.events.map(\.kind) { return mark }
          return nil
        }
        let read = try contract.unwrap(arrived, "the mark never arrived")
        try contract.require(read.upTo == id && read.state == .read, "got \(read)")
        try contract.require(read.stamp == mark.stamp, "the stamp is \(String(describing: read.stamp))")
      }
    },
    Rule("a reaction is seen with its message, author and emoji, put on and taken off", when: \.reactions) { contract in
      let provider = try contract.power((any ReactingProvider).self)
      try await contract.listening { inbox in
        let id = try await provider.post(contract.outgoing("react to me"), to: contract.channel)
        let stamp = contract.outgoing("x").stamp
        for added in [true, false] {
          let reaction = Reaction(message: id, by: bob, emoji: "👍🏽", added: added, stamp: stamp)
          try await provider.react(reaction, in: contract.channel)
        }
        let reactions = await inbox.wait { record in
          let reactions = record.events.compactMap {
            if case .reacted(let reaction) = $0.kind { reaction } else { nil }
          }
          return reactions.count >= 2 ? reactions : nil
        }
        let arrived = try contract.unwrap(reactions, "the reactions never arrived")
        try contract.require(arrived.map(\.added) == [true, false], "got \(arrived)")
        try contract.require(arrived.allSatisfy { $0.message == id && $0.emoji == "👍🏽" }, "got \(arrived)")
        try contract.require(arrived.allSatisfy { $0.stamp == stamp }, "the stamps are \(arrived.map(\.stamp))")
      }
    },
    Rule("history is read whole in pages, in either order", when: { $0.history != .none }) { contract in
      let provider = try contract.power((any HistoryProvider).self)
      let texts = (0..<25).map { "page \($0)" }
      for text in texts { try await contract.harness.say(text, by: bob) }
      for (order, expected) in [(HistoryOrder.oldestFirst, texts), (.newestFirst, texts.reversed())] {
        var read: [String] = []
        var cursor: Cursor?
        for _ in 0..<20 {
          let page = try await provider.history(of: contract.channel, order: order, after: cursor, limit: 10)
          read += page.messages.map(\.text)
          cursor = page.next
          if cursor == nil { break }
        }
        try contract.require(read == expected, "\(order) reads \(read)")
        try contract.require(cursor == nil, "\(order) has no end")
      }
    },
  ]

  /// Until a message has been seen, at a service that is asked now and then: of what was changed or taken back before,
  /// it tells as it reads by then.
  private func noticed(_ id: MessageID, by inbox: RecordingInbox) async {
    guard provider.capabilities.history == .messages else { return }
    _ = await inbox.wait { record in record.posted.contains { $0.id == id } ? true : nil }
  }

  /// Nil where the provider knows the members of some channels only, and not of this one.
  private func members(_ provider: any MembershipProvider) async throws -> [UserID]? {
    do throws(FerryError) { return try await provider.members(of: channel).map(\.id) } catch {
      guard error.code == .unsupported else { throw error }
      return nil
    }
  }
}
