package import FerryCore
package import FerryTransport

extension WebSocket {
  /// The next text message. Throws `unavailable` with how the other side closed when there is none.
  package func nextText() async throws(FerryError) -> String {
    guard case .text(let text) = await next() else {
      throw FerryError(.unavailable, "the socket closed with \(closing?.code ?? 0) \(closing?.reason ?? "")")
    }
    return text
  }

  /// How the other side closed, once it has.
  package func nextClose() async -> UInt16? {
    while await next() != nil {}
    return closing?.code
  }
}
