import FerryCore
import FerryRuntime

/// How many requests one client may make: so many a second, and twice that at once.
///
/// A pure value. A client is an IPv4 address or an IPv6 network of 64 bits, which is what one customer gets. This machine
/// itself is not limited; where a proxy on it says for whom it asks (`X-Forwarded-For`), that client is. The table is
/// bounded: where it is full, clients that have been quiet for two seconds are forgotten, once a second at most, and those
/// that are still not in it share one allowance.
struct RequestLimit: Sendable {
  private struct Allowance: Sendable {
    var requests: Double
    var time: ContinuousClock.Instant
  }

  static let capacity = 16_384

  private let perSecond: Double
  private var allowances: [[UInt8]: Allowance] = [:]

  private var swept: ContinuousClock.Instant?
  /// How often the whole table was gone through.
  private(set) var sweeps = 0

  /// Clients that are remembered.
  var count: Int { allowances.count }

  init(perSecond: Int) { self.perSecond = Double(perSecond) }

  /// Counts a request; returns how long a client is to wait that has made too many, and nil when it may go on.
  mutating func refuse(_ client: IPAddress, now: ContinuousClock.Instant) -> Duration? {
    let key = key(of: client, now)
    let burst = perSecond * 2
    var allowance = allowances[key] ?? Allowance(requests: burst, time: now)
    allowance.requests = min(burst, allowance.requests + allowance.time.duration(to: now).inSeconds * perSecond)
    allowance.time = now
    let isAllowed = allowance.requests >= 1
    if isAllowed { allowance.requests -= 1 }
    allowances[key] = allowance
    return isAllowed ? nil : .seconds((1 - allowance.requests) / perSecond)
  }

  private mutating func key(of client: IPAddress, _ now: ContinuousClock.Instant) -> [UInt8] {
    let key = client.bytes.count == 16 ? Array(client.bytes[..<8]) : client.bytes
    guard allowances[key] == nil, allowances.count >= Self.capacity else { return key }
    // Many unknown clients must not make every request of theirs dear.
    if swept.map({ $0.duration(to: now) >= .seconds(1) }) ?? true {
      swept = now
      sweeps += 1
      // Whoever has been quiet so long has its whole allowance again.
      allowances = allowances.filter { $0.value.time.duration(to: now) < .seconds(2) }
    }
    return allowances.count >= Self.capacity ? [] : key
  }

  /// Whom a request is counted for; nil when that is this machine.
  static func client(of peer: String, _ headers: HTTPHeaders) -> IPAddress? {
    guard let address = IPAddress(peer) else { return nil }
    guard address.isLoopback else { return address }
    // Only the last is the proxy's word; what stands before it the client may have written.
    guard let named = headers.all("X-Forwarded-For").last?.split(separator: ",").last?.trimmingSpaces,
      let client = IPAddress(String(named)) ?? IPAddress(RequestHost.name(in: String(named))), !client.isLoopback
    else { return nil }
    return client
  }
}

extension IPAddress {
  var isLoopback: Bool {
    bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
  }
}
