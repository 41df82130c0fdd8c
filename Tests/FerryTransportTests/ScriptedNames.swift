import FerryRuntime
public import Glibc

/// Names whose answers a test writes down, one after the other, and the addresses that were then connected to.
///
/// libcurl asks the C library for addresses and connections. The two functions below stand before the library's in a
/// program that has them (which is why they are public), and hand on everything that is not scripted.
enum ScriptedNames {
  private struct State: Sendable {
    /// By name; the last answer stays.
    var answers: [String: [[String]]] = [:]
    var questions: [String: Int] = [:]
    /// Connections to these fail at once, as if nobody listened there: no test may reach the internet.
    var unreachable: Set<String> = []
    var attempts: [String] = []
  }

  private static let state = Locked(State())

  static func script(_ name: String, _ answers: [[String]], unreachable: Set<String>) {
    state.withLock { state in
      state.answers[name] = answers
      state.questions[name] = 0
      state.unreachable.formUnion(unreachable)
      state.attempts = []
    }
  }

  static func questions(_ name: String) -> Int { state.withLock { $0.questions[name] ?? 0 } }
  /// Connections to unreachable addresses that were tried since the last script.
  static var attempts: [String] { state.withLock { $0.attempts } }

  fileprivate static func answer(_ name: String) -> [String]? {
    state.withLock { state in
      guard var answers = state.answers[name], let first = answers.first else { return nil }
      state.questions[name, default: 0] += 1
      if answers.count > 1 { answers.removeFirst() }
      state.answers[name] = answers
      return first
    }
  }

  fileprivate static func refuses(_ address: String) -> Bool {
    state.withLock { state in
      guard state.unreachable.contains(address) else { return false }
      state.attempts.append(address)
      return true
    }
  }

  /// The function of that name behind this program's.
  fileprivate static func next<Function>(_ name: String, as type: Function.Type) -> Function {
    // RTLD_NEXT, a cast that is not imported.
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: -1), name) else {
      preconditionFailure("the C library has no \(name)")
    }
    return unsafeBitCast(symbol, to: type)
  }
}

private typealias GetAddressInfo =
  @convention(c) (
    UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<addrinfo>?,
    UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
  ) -> Int32
private typealias Connect = @convention(c) (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32

private let libraryGetAddressInfo = ScriptedNames.next("getaddrinfo", as: GetAddressInfo.self)
private let libraryConnect = ScriptedNames.next("connect", as: Connect.self)

/// Called by any thread. The lists are the library's own, joined: it frees them node by node.
@_cdecl("getaddrinfo")
public func scriptedGetAddressInfo(
  _ name: UnsafePointer<CChar>?, _ service: UnsafePointer<CChar>?, _ hints: UnsafePointer<addrinfo>?,
  _ result: UnsafeMutablePointer<UnsafeMutablePointer<addrinfo>?>?
) -> Int32 {
  guard let name, let result, let answer = ScriptedNames.answer(String(cString: name)) else {
    return libraryGetAddressInfo(name, service, hints, result)
  }
  result.pointee = nil
  for address in answer.reversed() {
    var list: UnsafeMutablePointer<addrinfo>?
    let status = libraryGetAddressInfo(address, service, hints, &list)
    guard status == 0, let list else { continue }
    var last = list
    while let following = last.pointee.ai_next { last = following }
    last.pointee.ai_next = result.pointee
    result.pointee = list
  }
  return result.pointee == nil ? EAI_NONAME : 0
}

@_cdecl("connect")
public func scriptedConnect(_ socket: Int32, _ address: UnsafePointer<sockaddr>?, _ length: socklen_t) -> Int32 {
  if let address, Int32(address.pointee.sa_family) == AF_INET {
    let four = UnsafeRawPointer(address).loadUnaligned(as: sockaddr_in.self).sin_addr
    let bytes = withUnsafeBytes(of: four) { Array($0) }
    if ScriptedNames.refuses(bytes.map(String.init).joined(separator: ".")) {
      errno = ECONNREFUSED
      return -1
    }
  }
  return libraryConnect(socket, address, length)
}
