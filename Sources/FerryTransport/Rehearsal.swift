import FerryCore
package import FerryRuntime
import FoundationEssentials

/// Makes a facade misbehave on purpose, so that a user can rehearse an outage (DESIGN 6).
///
/// Wraps the facade's handler. What is to go wrong is configured, or told at run time by `POST /ferry/rehearsal` with
/// a `Plan` as JSON and the token as a bearer token; `GET` there tells what is left of it. Requests that ask for a
/// WebSocket are never counted nor harmed: `close_sockets` ends those.
package final class Rehearsal: Sendable {
  /// What is to go wrong. Counts are of requests, used up one by one, in the order of the properties.
  package struct Plan: Hashable, Sendable, Codable {
    /// Requests answered with `status` without acting.
    package var fail = 0
    package var status = 503
    /// Seconds, in the header Retry-After of those answers.
    package var retryAfter: Int?
    /// Requests whose connection is closed without acting.
    package var drop = 0
    /// Requests that are carried out and whose connection is then closed without an answer.
    package var lose = 0
    /// How long every request waits first, in milliseconds.
    package var delay = 0
    /// Whether writes through the API are announced like anybody's, where the service would keep quiet about them.
    package var echo = false
    /// Only requests whose path contains this text; nil for all. `echo` holds for all.
    package var match: String?
    /// Only requests of this method; nil for all.
    package var method: String?
    /// Ends every open socket of the facade now, with this code. Never kept.
    package var closeSockets: UInt16?

    package init() {}

    private enum CodingKeys: String, CodingKey {
      case fail, status, retryAfter = "retry_after", drop, lose, delay, echo, match, method
      case closeSockets = "close_sockets"
    }

    /// Every key may be missing; numbers out of range are refused.
    package init(from decoder: any Decoder) throws {
      let keys = try decoder.container(keyedBy: CodingKeys.self)
      fail = try keys.decodeIfPresent(Int.self, forKey: .fail) ?? 0
      status = try keys.decodeIfPresent(Int.self, forKey: .status) ?? 503
      retryAfter = try keys.decodeIfPresent(Int.self, forKey: .retryAfter)
      drop = try keys.decodeIfPresent(Int.self, forKey: .drop) ?? 0
      lose = try keys.decodeIfPresent(Int.self, forKey: .lose) ?? 0
      delay = try keys.decodeIfPresent(Int.self, forKey: .delay) ?? 0
      echo = try keys.decodeIfPresent(Bool.self, forKey: .echo) ?? false
      match = try keys.decodeIfPresent(String.self, forKey: .match)
      method = try keys.decodeIfPresent(String.self, forKey: .method)
      closeSockets = try keys.decodeIfPresent(UInt16.self, forKey: .closeSockets)
    }

    fileprivate func concerns(_ request: HTTPRequest) -> Bool {
      if let method, method != request.method { return false }
      if let match, !request.path.contains(match) { return false }
      return true
    }
  }

  private enum Fate { case answered(HTTPResponse), dropped, lost, served }

  package typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse

  private let plan: Locked<Plan>
  private let token: String
  private let clock: any FerryClock
  private let closeSockets = Locked<(@Sendable (UInt16) -> Void)?>(nil)

  package init(_ plan: Plan, token: String, clock: any FerryClock) {
    self.plan = Locked(plan)
    self.token = token
    self.clock = clock
  }

  /// Whether the facade is to announce writes that it would keep quiet about.
  package var echoesWrites: Bool { plan.withLock { $0.echo } }

  /// Called with the close code when every socket is to be ended. Set by the facade, once.
  package func onCloseSockets(_ close: @escaping @Sendable (UInt16) -> Void) {
    closeSockets.withLock { $0 = close }
  }

  /// `failure` writes a refusal as the service would; `Retry-After` is added.
  package func wrap(
    _ handler: @escaping Handler,
    failure: @escaping @Sendable (_ status: Int) -> HTTPResponse = { .text("This failure is rehearsed.\n", status: $0) }
  ) -> Handler {
    { request in
      if request.path == "/ferry/rehearsal" { return await self.control(request) }
      if request.headers["Upgrade"] != nil { return await handler(request) }
      let delay = self.plan.withLock { $0.concerns(request) ? $0.delay : 0 }
      if delay > 0 { try? await self.clock.sleep(for: .milliseconds(delay)) }
      switch self.fate(of: request, failure) {
      case .answered(let response): return response
      case .dropped: return HTTPResponse(status: 503, body: .hangUp)
      case .lost:
        _ = await handler(request)
        return HTTPResponse(status: 503, body: .hangUp)
      case .served: return await handler(request)
      }
    }
  }

  private func fate(of request: HTTPRequest, _ failure: (Int) -> HTTPResponse) -> Fate {
    plan.withLock { plan in
      guard plan.concerns(request) else { return .served }
      if plan.fail > 0 {
        plan.fail -= 1
        var response = failure(plan.status)
        if let seconds = plan.retryAfter { response.headers.set("Retry-After", String(seconds)) }
        return .answered(response)
      }
      if plan.drop > 0 {
        plan.drop -= 1
        return .dropped
      }
      if plan.lose > 0 {
        plan.lose -= 1
        return .lost
      }
      return .served
    }
  }

  private func control(_ request: HTTPRequest) async -> HTTPResponse {
    let header = request.headers["Authorization"] ?? ""
    guard header.lowercased().hasPrefix("bearer "), Crypto.areEqual(String(header.dropFirst(7)), token) else {
      return .error(FerryError(.badCredentials, "This needs the rehearsal's token as a bearer token."))
    }
    guard request.method == "POST" else { return .json(plan.withLock { $0 }) }
    do throws(FerryError) {
      let new = try Self.plan(from: try await request.body.collect(upTo: 64 << 10))
      if let code = new.closeSockets { closeSockets.withLock { $0 }?(code) }
      plan.withLock { plan in
        plan = new
        plan.closeSockets = nil
      }
      return .json(plan.withLock { $0 })
    } catch {
      return .error(error)
    }
  }

  private static func plan(from body: [UInt8]) throws(FerryError) -> Plan {
    let plan: Plan
    do { plan = try JSONDecoder().decode(Plan.self, from: Data(body)) } catch {
      throw FerryError(.badRequest, "The plan cannot be read.", cause: "\(error)")
    }
    guard plan.fail >= 0, plan.drop >= 0, plan.lose >= 0, (0...600_000).contains(plan.delay),
      (200...599).contains(plan.status)
    else {
      throw FerryError(.badRequest, "Counts are not negative, delay is at most 600000 ms, status from 200 to 599.")
    }
    return plan
  }
}
