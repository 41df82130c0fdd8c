/// The codes of `pusher:error` events and of closed sockets.
package enum ErrorCode: UInt16, Sendable {
  case tlsRequired = 4000
  case unknownKey = 4001
  case disabled = 4003
  case overQuota = 4004
  case pathNotFound = 4005
  case badVersion = 4006
  case unsupportedProtocol = 4007
  case noProtocol = 4008
  case unauthorized = 4009
  case overCapacity = 4100
  case reconnect = 4200
  case noPong = 4201
  case inactive = 4202
  case rateLimited = 4301
  case watchlistLimit = 4302
}

/// What a code tells a client to do. Source: the ranges of the Channels protocol.
package enum CloseAdvice: Hashable, Sendable {
  /// Connecting again unchanged cannot help.
  case stop
  /// Wait a second or longer.
  case backOff
  /// Connect again at once.
  case reconnect
  /// The event alone: the connection goes on.
  case carryOn

  package init(code: Int) {
    self =
      switch code {
      // A quota is mended by others going away, so it is waited for although it lies in this range.
      case Int(ErrorCode.overQuota.rawValue): .backOff
      case 4000...4099: .stop
      case 4200...4299: .reconnect
      case 4300...4399: .carryOn
      default: .backOff
      }
  }
}
