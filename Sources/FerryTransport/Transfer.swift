import CCurl
import FerryCore
import FerryRuntime
import Glibc

/// One request under way. Loop thread only, but for its pipes.
final class Transfer {
  struct Head: Sendable {
    var status: Int
    var headers: HTTPHeaders
  }

  /// The heads of all responses to one request, redirects included.
  private static let headerLimit = 256 << 10

  let id: UInt64
  let easy: UnsafeMutableRawPointer
  let request: ClientRequest
  let url: RequestURL
  let addressGuard: AddressGuard
  /// The response's body.
  let body: BytePipe
  /// The request's body, when it is a stream.
  let upload: BytePipe?
  var feeder: Task<Void, Never>?
  var waiter: CheckedContinuation<Result<Head, FerryError>, Never>?
  /// Set for an untrusted request that goes through a proxy, which then resolves the name.
  var usesProxy = false
  /// Only a connection is wanted; there is no request by libcurl.
  var isConnectOnly = false

  private(set) var head: Head?
  private(set) var isRefused = false
  private(set) var isRepeated = false
  private var headers: HTTPHeaders = [:]
  private var headerBytes = 0
  private(set) var followed = 0
  /// How often a request went out, or was about to.
  private(set) var attempts = 0
  private var isReceivingPaused = false
  private var isSendingPaused = false
  private var list: UnsafeMutablePointer<curl_slist>?

  init(
    id: UInt64, easy: UnsafeMutableRawPointer, request: ClientRequest, url: RequestURL, addressGuard: AddressGuard,
    wake: @escaping @Sendable () -> Void
  ) {
    self.id = id
    self.easy = easy
    self.request = request
    self.url = url
    self.addressGuard = addressGuard
    body = BytePipe(limit: 128 << 10, wake: wake)
    if case .stream = request.body { upload = BytePipe(limit: 128 << 10, wake: wake) } else { upload = nil }
  }

  deinit { curl_slist_free_all(list) }

  func setHeaders(_ lines: [String]) {
    for line in lines { list = curl_slist_append(list, line) }
    ccurl_set_list(easy, CURLOPT_HTTPHEADER, list)
  }

  // MARK: Called by libcurl

  /// False when there are too many.
  func headerLine(_ line: UnsafeRawBufferPointer) -> Bool {
    guard head == nil else { return true }
    headerBytes += line.count
    guard headerBytes <= Self.headerLimit else { return false }
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") {
      headers = [:]
    } else if text == "\r\n" || text == "\n" || text == "\r" || text == "" {
      headEnded()
    } else if let colon = text.firstIndex(of: ":") {
      let value = text[text.index(after: colon)...].prefix { !$0.isNewline }
      headers.add(String(text[..<colon]), String(value.trimmingSpaces))
    }
    return true
  }

  private func headEnded() {
    var status = 0
    ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    guard status >= 200 else { return }
    // libcurl follows, or fails because there were too many.
    if 300..<400 ~= status, headers["Location"] != nil, request.redirects > 0 {
      followed += 1
      return
    }
    let head = Head(status: status, headers: headers)
    self.head = head
    waiter?.resume(returning: .success(head))
    waiter = nil
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    if body.offer(bytes) { return bytes.count }
    isReceivingPaused = true
    return Int(CURL_WRITEFUNC_PAUSE)
  }

  func give(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let upload else { return 0 }
    switch upload.take(into: buffer) {
    case .bytes(let count): return count
    case .finished: return 0
    case .failed: return Int(CURL_READFUNC_ABORT)
    case .empty:
      isSendingPaused = true
      return Int(CURL_READFUNC_PAUSE)
    }
  }

  /// A pipe has room or bytes again. May call `receive` and `give` at once.
  func goOn() {
    guard isReceivingPaused || isSendingPaused else { return }
    isReceivingPaused = false
    isSendingPaused = false
    curl_easy_pause(easy, CURLPAUSE_CONT)
  }

  /// Before each connection attempt, after the name was resolved.
  func mayConnect(to address: UnsafePointer<sockaddr>) -> Bool {
    guard !request.isTrusted, !usesProxy, !isHostAllowed else { return true }
    if let address = IPAddress(address), AddressGuard.isPublic(address) { return true }
    isRefused = true
    return false
  }

  /// Before each request goes out, on a new connection or a kept one: the first, those after a redirect, and those
  /// that libcurl repeats on its own because a kept connection turned out to be dead.
  func mayRequest(from address: String) -> Bool {
    attempts += 1
    if attempts > followed + 1, !isRepeatable {
      isRepeated = true
      return false
    }
    guard !request.isTrusted, !isHostAllowed else { return true }
    let isAllowed = usesProxy ? isNamePublic : AddressGuard.isPublic(address)
    if !isAllowed { isRefused = true }
    return isAllowed
  }

  private var isRepeatable: Bool { ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"].contains(request.method) }

  private var currentHost: String {
    var text: UnsafeMutablePointer<CChar>?
    ccurl_get_string(easy, CURLINFO_EFFECTIVE_URL, &text)
    let current = text.flatMap { try? RequestURL(String(cString: $0)) }
    return current?.host ?? url.host
  }

  private var isHostAllowed: Bool { addressGuard.allows(host: currentHost) }

  /// For names that a proxy resolves: no address that is not public, and no name that is not either.
  private var isNamePublic: Bool {
    let host = currentHost
    if let address = IPAddress(host) { return AddressGuard.isPublic(address) }
    let names = ["localhost", "local", "internal", "arpa", "lan", "home"]
    let labels = host.split(separator: ".")
    return labels.count > 1 && !names.contains(String(labels[labels.count - 1]))
  }

  // MARK: The end

  /// Hands the result to whoever waits for it.
  func end(_ failure: FerryError?) {
    feeder?.cancel()
    upload?.finish(failure ?? .clientGone)
    body.finish(failure)
    let fallback = FerryError(
      .badData, "\(url.place) ended its answer before its head was complete.", retry: .now, didNotAct: false)
    waiter?.resume(returning: .failure(failure ?? fallback))
    waiter = nil
  }

  /// Whether nothing of the request has left this machine.
  var isUnsent: Bool {
    var bytes = 0
    ccurl_get_long(easy, CURLINFO_REQUEST_SIZE, &bytes)
    return bytes == 0
  }

  /// Why the request's body could not be read to its end.
  var uploadFailure: FerryError? { upload?.failure }
}

// libcurl calls all of these on the loop thread, inside a call of ours. `context` is the transfer, which lives until its
// handle has been removed from libcurl.

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
  context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

let transferHeader: ccurl_data_callback = { data, size, count, context in
  let line = UnsafeRawBufferPointer(start: data, count: size * count)
  return transfer(context)?.headerLine(line) ?? false ? line.count : 0
}

let transferReceive: ccurl_data_callback = { data, size, count, context in
  transfer(context)?.receive(UnsafeRawBufferPointer(start: data, count: size * count)) ?? 0
}

let transferGive: ccurl_data_callback = { data, size, count, context in
  transfer(context)?.give(UnsafeMutableRawBufferPointer(start: data, count: size * count)) ?? 0
}

let transferOpenSocket: curl_opensocket_callback = { context, _, address in
  guard let address, let transfer = transfer(context) else { return CURL_SOCKET_BAD }
  let isAllowed = withUnsafePointer(to: &address.pointee.addr) { transfer.mayConnect(to: $0) }
  guard isAllowed else { return CURL_SOCKET_BAD }
  let kind = address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
  return socket(address.pointee.family, kind, address.pointee.protocol)
}

let transferBeforeRequest: curl_prereq_callback = { context, remote, _, _, _ in
  guard let remote, let transfer = transfer(context) else { return CURL_PREREQFUNC_ABORT }
  return transfer.mayRequest(from: String(cString: remote)) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
