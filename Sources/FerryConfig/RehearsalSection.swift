import FerryCore

/// How a facade is to misbehave, to rehearse an outage (DESIGN 6).
package struct RehearsalSection: Sendable {
  /// Needed to change the plan while the facade runs.
  package let token: Secret
  package let fail: Int
  package let status: Int
  package let retryAfter: Int?
  package let drop: Int
  package let lose: Int
  package let delay: Duration
  package let echo: Bool
  package let match: String?
  package let method: String?

  init(_ node: ConfigNode) throws(FerryError) {
    let mapping = try node.mapping()
    token = try mapping.secret("token")
    let counts = 0...Int64(1_000_000)
    fail = Int(try mapping.optional("fail")?.integer(in: counts) ?? 0)
    status = Int(try mapping.optional("status")?.integer(in: 200...599) ?? 503)
    retryAfter = try mapping.optional("retry_after").map { node throws(FerryError) in
      Int(try node.integer(in: counts))
    }
    drop = Int(try mapping.optional("drop")?.integer(in: counts) ?? 0)
    lose = Int(try mapping.optional("lose")?.integer(in: counts) ?? 0)
    delay = try mapping.optional("delay")?.duration() ?? .zero
    echo = try mapping.optional("echo")?.bool() ?? false
    match = try mapping.optional("match")?.nonEmptyString()
    method = try mapping.optional("method")?.nonEmptyString()
    try mapping.finish()
  }
}
