import FerryConfig
import FerryCore
import FerryRuntime
import FerryTestKit
import FerryTransport
import Testing

@testable import PusherProvider

@Suite(.timeLimit(.minutes(1))) struct FacadeUserTests {
  private static let ann = #"{"id":"ann","user_info":{"name":"Ann"}}"#

  @Test func `a sign-in is confirmed with an object that holds the signed text`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      let confirmation =
        #"{"event":"pusher:signin_success","data":{"user_data":"{\"id\":\"ann\",\"user_info\":{\"name\":\"Ann\"}}"}}"#
      #expect(try await client.signIn(Self.ann) == confirmation)
      // The same user again: confirmed again.
      #expect(try await client.signIn(Self.ann) == confirmation)
      #expect(try await client.isQuiet())
    }
  }

  @Test func `who signs in as somebody else later is let go`() async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      try await client.signIn(Self.ann)
      #expect(
        try await client.signIn(#"{"id":"bob"}"#).hasPrefix(#"{"event":"pusher:error","data":{"code":4009,"#))
      #expect(await client.socket.nextClose() == 4009)
    }
  }

  @Test(arguments: [
    ("", ""), ("demo-key:00", #"{"id":"ann"}"#), ("other-key:00", #"{"id":"ann"}"#), ("demo-key", #"{"id":"ann"}"#),
  ])
  func `a sign-in without a good signature is let go`(auth: String, userData: String) async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      client.send(
        FrameText.object("pusher:signin", ["auth": .string(auth), "user_data": .string(userData)]))
      let error = try await client.next()
      #expect(error.hasPrefix(#"{"event":"pusher:error","data":{"code":4009,"message":"Invalid "#), "\(error)")
      #expect(await client.socket.nextClose() == 4009)
    }
  }

  @Test(arguments: [
    "", "{}", "[]", "7", #"{"id":""}"#, #"{"id":null}"#, #"{"id":{}}"#, #"{"id":"a b"}"#, #"{"id":"a\#u{e9}"}"#,
    #"{"id":"\#(String(repeating: "a", count: 129))"}"#,
    #"{"id":"a","user_info":"\#(String(repeating: "x", count: 1030))"}"#,
  ])
  func `user data that say not who it is are let go though they are signed`(userData: String) async throws {
    try await Service.serving { service in
      let client = try await service.connect()
      #expect(try await client.signIn(userData).contains(#""code":4009"#))
      #expect(await client.socket.nextClose() == 4009)
    }
  }

  @Test func `a user's own channel is for connections that have signed in as that user`() async throws {
    try await Service.serving { service in
      let (phone, laptop, bob) = (
        try await service.connect(), try await service.connect(), try await service.connect()
      )
      for client in [phone, laptop] { try await client.signIn(Self.ann) }
      try await bob.signIn(#"{"id":"bob"}"#)
      for client in [phone, laptop] {
        client.send(##"{"event":"pusher:subscribe","data":{"channel":"#server-to-user-ann","auth":""}}"##)
        #expect(
          try await client.next()
            == ##"{"event":"pusher_internal:subscription_succeeded","channel":"#server-to-user-ann","data":"{}"}"##)
      }
      bob.send(FrameText.subscribe(to: "#server-to-user-ann", auth: ""))
      #expect(try await bob.next().contains("only for a connection that has signed in as that user"))
      #expect(try await bob.next().contains(#"\"type\":\"AuthError\""#))
      let stranger = try await service.connect()
      let auth = service.appKey.channelAuth(socketID: stranger.socketID, channel: "#server-to-user-ann")
      stranger.send(FrameText.subscribe(to: "#server-to-user-ann", auth: auth))
      #expect(try await stranger.next().contains(#""code":null"#))
      #expect(try await stranger.next().contains("pusher:subscription_error"))

      #expect(try await service.trigger("notice", on: "#server-to-user-ann", data: "1").text == "{}")
      for client in [phone, laptop] {
        #expect(try await client.next() == ##"{"event":"notice","channel":"#server-to-user-ann","data":"1"}"##)
      }
      #expect(try await bob.isQuiet())
      #expect(try await stranger.isQuiet())
      // Nobody may send there but the server, and nobody is told that it exists.
      phone.send(##"{"event":"client-x","channel":"#server-to-user-ann","data":1}"##)
      #expect(try await phone.next().contains("Client event rejected"))
      #expect(try await service.send("GET", "/apps/1001/channels").text == #"{"channels":{}}"#)
    }
  }

  @Test(arguments: ["#", "#a", "#server-to-user-", "#server-to-user-a b", "#server-to-users-a"])
  func `other names with a hash are refused everywhere`(name: String) async throws {
    try await Service.serving { service in
      #expect(try await service.trigger("e", on: name, data: "1").status == 400)
      let client = try await service.connect()
      try await client.signIn(Self.ann)
      client.send(FrameText.subscribe(to: name))
      #expect(try await client.next().contains("Invalid channel name"))
    }
  }

  @Test func `who has signed in joins a presence channel without channel data`() async throws {
    try await Service.serving { service in
      let watcher = try await service.connect()
      try await watcher.subscribe("presence-a", as: "w")
      let client = try await service.connect()
      let auth = service.appKey.channelAuth(socketID: client.socketID, channel: "presence-a")
      client.send(FrameText.subscribe(to: "presence-a", auth: auth))
      #expect(try await client.next().contains("Missing channel_data"))
      #expect(try await client.next().contains("pusher:subscription_error"))
      try await client.signIn(Self.ann)
      client.send(FrameText.subscribe(to: "presence-a", auth: auth))
      #expect(try await client.next().contains(#"\"ann\":{\"name\":\"Ann\"}}"#))
      #expect(
        try await watcher.next()
          == #"{"event":"pusher_internal:member_added","channel":"presence-a","data":"{\"user_id\":\"ann\","#
          + #"\"user_info\":{\"name\":\"Ann\"}}"}"#)
    }
  }

  // MARK: Terminating

  @Test(arguments: ["/apps/1001/users/ann/terminate_connections", "/users/ann/terminate_connections"])
  func `every connection of a user is terminated and no other`(path: String) async throws {
    try await Service.serving { service in
      let (phone, laptop, bob, stranger) = (
        try await service.connect(), try await service.connect(), try await service.connect(),
        try await service.connect()
      )
      for client in [phone, laptop] { try await client.signIn(Self.ann) }
      try await bob.signIn(#"{"id":"bob"}"#)
      // Being there under that name is not to have signed in.
      try await stranger.subscribe("presence-a", as: "ann")
      let answer = try await service.send("POST", path, body: "{}")
      #expect(answer.status == 200)
      #expect(answer.text == "{}")
      for client in [phone, laptop] {
        #expect(try await client.next().hasPrefix(#"{"event":"pusher:error","data":{"code":4009,"#))
        #expect(await client.socket.nextClose() == 4009)
      }
      #expect(try await bob.isQuiet())
      #expect(try await stranger.isQuiet())
      #expect(try await service.send("POST", path).status == 200)
    }
  }

  @Test func `terminating needs a signature, a known app and an id that can be one`() async throws {
    try await Service.serving { service in
      for path in ["/apps/1001/users/ann/terminate_connections", "/users/ann/terminate_connections"] {
        let unsigned = try await service.raw("POST", path)
        let wrong = AppKey(key: "demo-key", secret: Secret("wrong"))
        let badlySigned = try await service.send("POST", path, key: wrong)
        let read = try await service.send("GET", path)
        #expect([unsigned.status, badlySigned.status, read.status] == [401, 401, 404])
      }
      let otherApp = try await service.send("POST", "/apps/1/users/ann/terminate_connections")
      let badID = try await service.send("POST", "/apps/1001/users/a%20b/terminate_connections")
      #expect([otherApp.status, badID.status] == [404, 400])
    }
  }

  // MARK: Watchlists

  @Test func `a watchlist begins with who is there and goes on with who comes and goes`() async throws {
    try await Service.serving(adjust: { $0.watchlist = true }) { service in
      let bob = try await service.connect()
      try await bob.signIn(#"{"id":"bob"}"#)
      let ann = try await service.connect()
      try await ann.signIn(#"{"id":"ann","watchlist":["bob","cy","bob"]}"#)
      #expect(
        try await ann.next()
          == #"{"event":"pusher_internal:watchlist_events","data":"{\"events\":[{\"name\":\"online\",\"user_ids\":"#
          + #"[\"bob\"]},{\"name\":\"offline\",\"user_ids\":[\"cy\"]}]}"}"#)
      let (phone, laptop) = (try await service.connect(), try await service.connect())
      try await phone.signIn(#"{"id":"cy"}"#)
      #expect(
        try await ann.next()
          == #"{"event":"pusher_internal:watchlist_events","data":"{\"events\":[{\"name\":\"online\",\"user_ids\":"#
          + #"[\"cy\"]}]}"}"#)
      // Per user, not per connection.
      try await laptop.signIn(#"{"id":"cy"}"#)
      phone.close()
      _ = await phone.socket.nextClose()
      #expect(try await ann.isQuiet())
      laptop.close()
      #expect(
        try await ann.next()
          == #"{"event":"pusher_internal:watchlist_events","data":"{\"events\":[{\"name\":\"offline\",\"user_ids\":"#
          + #"[\"cy\"]}]}"}"#)
      #expect(try await bob.isQuiet())
    }
  }

  @Test func `of a long watchlist the first hundred are kept, and the client is told`() async throws {
    try await Service.serving(adjust: { $0.watchlist = true }) { service in
      let list = (0...100).map { "\"u\($0)\"" }.joined(separator: ",")
      let ann = try await service.connect()
      #expect(try await ann.signIn(#"{"id":"ann","watchlist":[\#(list)]}"#).contains("pusher:signin_success"))
      #expect(try await ann.next().hasPrefix(#"{"event":"pusher:error","data":{"code":4302,"#))
      let snapshot = try await ann.next()
      #expect(snapshot.contains(#"\"u99\""#))
      #expect(!snapshot.contains(#"\"u100\""#))
      let (last, over) = (try await service.connect(), try await service.connect())
      try await over.signIn(#"{"id":"u100"}"#)
      try await last.signIn(#"{"id":"u99"}"#)
      #expect(try await ann.next().contains(#"\"online\",\"user_ids\":[\"u99\"]"#))
      #expect(try await ann.isQuiet())
    }
  }

  @Test func `without watchlists in the settings nobody is watched`() async throws {
    try await Service.serving { service in
      let (ann, bob) = (try await service.connect(), try await service.connect())
      try await ann.signIn(#"{"id":"ann","watchlist":["bob"]}"#)
      try await bob.signIn(#"{"id":"bob"}"#)
      #expect(try await ann.isQuiet())
    }
  }
}
