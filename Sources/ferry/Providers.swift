import BackendlessProvider
import FerryChat
import FerryConfig
import FerryCore
import FerryRuntime
import FerryTransport
import LocalProvider
import PusherProvider
import TwilioProvider

/// One kind of provider, as the command line knows it. Adding one is one line in `Providers.all`.
struct ProviderEntry: Sendable {
  let name: String
  let title: String
  let capabilities: Capabilities
  /// Makes an account from its section. The ports replace ports of 0.
  let account: @Sendable (ConfigMapping, Ports, Session) throws(FerryError) -> any ChatProvider
  /// Makes an account from a URL, and names the channel in it.
  let open: @Sendable (String, Session) throws(FerryError) -> (any ChatProvider, ChannelID)

  func accepts(url: String) -> Bool { url.hasPrefix("\(name)://") || url.hasPrefix("\(name)+http://") }
}

/// The bound ports of what runs in this process, for configurations that leave the choice to the system.
struct Ports: Sendable {
  /// The provider's own service, where it is a facade of this process.
  var service: UInt16?
  /// The relay's listener.
  var relay: UInt16?
}

enum Providers {
  static let all = [local, pusher, twilio, backendless]

  private static let local = ProviderEntry(
    name: "local", title: "Ferry's own server", capabilities: LocalAdapter.capabilities,
    account: { mapping, ports, session throws(FerryError) in
      var settings = try LocalAdapter.Settings(mapping)
      if let port = ports.service { settings.fill(port: port) }
      return LocalAdapter(settings: settings, client: session.client, clock: session.clock, logger: session.logger)
    },
    open: { url, session throws(FerryError) in
      let (settings, channel) = try LocalAdapter.settings(fromURL: url)
      let adapter = LocalAdapter(
        settings: settings, client: session.client, clock: session.clock, logger: session.logger)
      return (adapter, channel)
    })

  private static let pusher = ProviderEntry(
    name: "pusher", title: "Pusher Channels", capabilities: PusherAdapter.capabilities(marker: true),
    account: { mapping, ports, session throws(FerryError) in
      var settings = try PusherAdapter.Settings(mapping)
      if let port = ports.service { settings.fill(port: port) }
      return PusherAdapter(
        settings: settings, client: session.client, clock: session.clock, logger: session.logger,
        metrics: session.metrics)
    },
    open: { url, session throws(FerryError) in
      guard let (settings, channel) = try PusherAdapter.settings(fromURL: url) else {
        throw FerryError(.badConfiguration, "This is not a Pusher URL.")
      }
      let adapter = PusherAdapter(
        settings: settings, client: session.client, clock: session.clock, logger: session.logger)
      return (adapter, channel)
    })

  private static let twilio = ProviderEntry(
    name: "twilio", title: "Twilio Conversations", capabilities: TwilioAdapter.capabilities(typing: true),
    account: { mapping, ports, session throws(FerryError) in
      var settings = try TwilioAdapter.Settings(mapping)
      if let port = ports.service { settings.fill(port: port) }
      if let port = ports.relay { settings.fill(webhookPort: port) }
      return TwilioAdapter(settings: settings, client: session.client, clock: session.clock, logger: session.logger)
    },
    open: { url, session throws(FerryError) in
      guard let (settings, channel) = try TwilioAdapter.settings(fromURL: url) else {
        throw FerryError(.badConfiguration, "This is not a Twilio URL.")
      }
      let adapter = TwilioAdapter(
        settings: settings, client: session.client, clock: session.clock, logger: session.logger)
      return (adapter, channel)
    })

  private static let backendless = ProviderEntry(
    name: "backendless", title: "Backendless", capabilities: BackendlessAdapter.capabilities(),
    account: { mapping, ports, session throws(FerryError) in
      var settings = try BackendlessAdapter.Settings(mapping)
      if let port = ports.service { settings.fill(port: port) }
      return BackendlessAdapter(settings: settings, client: session.client, logger: session.logger)
    },
    open: { url, session throws(FerryError) in
      guard let (settings, channel) = try BackendlessAdapter.settings(fromURL: url) else {
        throw FerryError(.badConfiguration, "This is not a Backendless URL.")
      }
      return (BackendlessAdapter(settings: settings, client: session.client, logger: session.logger), channel)
    })
}
