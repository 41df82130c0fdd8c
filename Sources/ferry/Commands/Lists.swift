import FerryCore

/// `ferry channels`: the channels of an account.
enum Channels {
  static let command = Command(
    name: "channels", positional: ["ACCOUNT"],
    summary: "List the channels of an account.",
    options: [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: "ACCOUNT is an account of the configuration, or a URL as for 'ferry post' (its channel does not matter).",
    run: { invocation in
      let arguments = invocation.arguments
      let name = arguments.positional[0]
      let (provider, address, _) = try Session.open(name.contains(":") ? name : "\(name):-", arguments)
      for channel in try await provider.channels().sorted(by: { $0.id < $1.id }) {
        let full = Address(account: address.account, channel: channel.id).description
        if arguments.has("json") {
          Terminal.output(
            try Terminal.json(Line(address: full, id: channel.id, name: channel.name, members: channel.members)))
        } else {
          Terminal.output(channel.name == channel.id.rawValue ? full : "\(full)  \(channel.name)")
        }
      }
      return 0
    })

  private struct Line: Encodable {
    let address: String
    let id: ChannelID
    let name: String
    let members: Int?
  }
}

/// `ferry members`: who is in a channel.
enum Members {
  static let command = Command(
    name: "members", positional: ["ADDRESS"],
    summary: "List the members of a channel.",
    options: [Commands.jsonOption, Commands.configOption, Commands.verboseOption],
    notes: Commands.addressNotes,
    run: { invocation in
      let arguments = invocation.arguments
      let (provider, address, _) = try Session.open(arguments.positional[0], arguments)
      guard let provider = provider as? any MembershipProvider, provider.capabilities.members else {
        throw FerryError(.unsupported, "The provider of \(address) cannot list members.")
      }
      for member in try await provider.members(of: address.channel).sorted(by: { $0.id < $1.id }) {
        let line = ["id": member.id.rawValue, "name": member.name]
        Terminal.output(arguments.has("json") ? try Terminal.json(line) : member.name)
      }
      return 0
    })
}
