package import FerryConfig
package import FerryCore

extension PusherFacade {
  package struct Settings: Sendable {
    package var appID: String
    package var key: String
    package var secret: Secret
    /// Whether clients may send to one another on private and presence channels.
    package var clientEvents = true
    package var clientEventsPerSecond = 10
    /// Seconds of silence after which a client is asked whether it is there, and how long it has to answer.
    package var activityTimeout = 120
    package var pongTimeout = 30
    /// A flood of subscriptions from one socket ends here.
    package var channelsPerConnection = 1000
    /// What may wait for a reader that does not keep up, before it is let go.
    package var queueBytes = 1 << 20

    package init(appID: String, key: String, secret: Secret) {
      self.appID = appID
      self.key = key
      self.secret = secret
    }

    /// Reads every key of a facade's configuration and refuses the others.
    package init(_ mapping: ConfigMapping) throws(FerryError) {
      let appID = try mapping.required("app_id")
      self.appID = try appID.nonEmptyString()
      guard self.appID.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
        throw appID.error("app_id must be all digits, or the official libraries refuse it")
      }
      key = try mapping.required("key").nonEmptyString()
      secret = try mapping.secret("secret")
      clientEvents = try mapping.optional("client_events")?.bool() ?? true
      if let rate = mapping.optional("client_events_per_second") {
        clientEventsPerSecond = Int(try rate.integer(in: 1...100_000))
      }
      try mapping.finish()
    }
  }
}
