import CCurl
import FerryCore
import FerryRuntime

/// The client's state, on its loop.
actor ClientLoop {
  nonisolated let loop: LoopExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  let multi: CurlMulti
  let pool = FramePool(isServer: false)
  private let addressGuard: AddressGuard
  private let environment: ClientEnvironment
  private var transfers: [UInt64: Transfer] = [:]
  private var idByHandle: [UnsafeMutableRawPointer: UInt64] = [:]
  var handshakes: [UInt64: ClientHandshake] = [:]
  private var lastID: UInt64 = 0

  init(loop: LoopExecutor, addressGuard: AddressGuard, environment: ClientEnvironment) {
    self.loop = loop
    self.addressGuard = addressGuard
    self.environment = environment
    multi = CurlMulti(loop: loop)
  }

  deinit {
    let multi = multi
    loop.submit { multi.close() }
  }

  // MARK: Requests

  func send(_ request: ClientRequest) async throws(FerryError) -> ClientResponse {
    let transfer = try makeTransfer(request)
    configure(transfer)
    let id = transfer.id
    let head = try await perform(id).get()
    let body = ResponseBody(client: self, id: id, pipe: transfer.body)
    let size = request.method == "HEAD" ? 0 : head.headers["Content-Length"].flatMap { Int64($0) }
    return ClientResponse(
      status: head.status, headers: head.headers, body: body.stream(size, head.headers["Content-Type"]))
  }

  /// Registers a transfer, not yet started.
  func makeTransfer(_ request: ClientRequest) throws(FerryError) -> Transfer {
    multi.onFinished = { [weak self] easy, code in
      let easy = OnLoop(easy)
      self?.assumeIsolated { $0.ended(easy.value, code) }
    }
    let url = try RequestURL(request.url)
    guard let easy = multi.takeHandle() else {
      throw FerryError(.internal, "There is no memory for a request.", retry: .now)
    }
    lastID += 1
    let id = lastID
    let transfer = Transfer(id: id, easy: easy, request: request, url: url, addressGuard: addressGuard) {
      [weak self, loop] in
      loop.submit { [weak self] in self?.assumeIsolated { $0.goOn(id) } }
    }
    transfers[id] = transfer
    idByHandle[easy] = id
    return transfer
  }

  /// Starts a transfer and waits for its head, or for its end where it has none.
  func perform(_ id: UInt64) async -> Result<Transfer.Head, FerryError> {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        guard let transfer = transfers[id] else {
          return continuation.resume(returning: .failure(.cancelled(didNotAct: true)))
        }
        transfer.waiter = continuation
        // When it was cancelled before this, `onCancel` has found nobody waiting.
        if Task.isCancelled { return finish(transfer, .cancelled(didNotAct: true)) }
        if !multi.add(transfer.easy) {
          finish(transfer, FerryError(.internal, "libcurl did not take the request.", retry: .now))
        }
      }
    } onCancel: {
      abandon(id)
    }
  }

  private func cancel(_ id: UInt64) {
    handshakes[id]?.fail(.cancelled())
    guard let transfer = transfers[id], transfer.waiter != nil || transfer.head != nil else { return }
    finish(transfer, .cancelled(didNotAct: transfer.isUnsent))
  }

  /// From anywhere.
  nonisolated func abandon(_ id: UInt64) {
    loop.submit { [self] in assumeIsolated { $0.cancel(id) } }
  }

  private func goOn(_ id: UInt64) {
    transfers[id]?.goOn()
    multi.collect()
  }

  private func ended(_ easy: UnsafeMutableRawPointer, _ code: CURLcode) {
    guard let transfer = idByHandle[easy].flatMap({ transfers[$0] }) else { return }
    if code == CURLE_OK, transfer.isConnectOnly {
      // The handle stays with libcurl: the connection is its.
      transfer.waiter?.resume(returning: .success(Transfer.Head(status: 0, headers: [:])))
      transfer.waiter = nil
      return
    }
    finish(transfer, code == CURLE_OK ? nil : transfer.uploadFailure ?? transfer.failure(code))
  }

  func finish(_ transfer: Transfer, _ failure: FerryError?) {
    guard transfers.removeValue(forKey: transfer.id) != nil else { return }
    idByHandle[transfer.easy] = nil
    multi.remove(transfer.easy)
    multi.giveBack(transfer.easy)
    transfer.end(failure)
  }

  // MARK: Options

  func configure(_ transfer: Transfer) {
    let easy = transfer.easy
    let request = transfer.request
    ccurl_set_pointer_data(easy, Unmanaged.passUnretained(transfer).toOpaque())
    ccurl_set_data_callback(easy, CURLOPT_WRITEFUNCTION, transferReceive)
    ccurl_set_data_callback(easy, CURLOPT_HEADERFUNCTION, transferHeader)
    ccurl_set_data_callback(easy, CURLOPT_READFUNCTION, transferGive)
    ccurl_set_opensocket_callback(easy, transferOpenSocket)
    ccurl_set_prereq_callback(easy, transferBeforeRequest)
    ccurl_set_string(easy, CURLOPT_URL, request.url)
    ccurl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    ccurl_set_string(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https")
    ccurl_set_string(easy, CURLOPT_USERAGENT, "ferry")
    let milliseconds = Int(max(1, request.deadline.milliseconds))
    ccurl_set_long(easy, CURLOPT_TIMEOUT_MS, milliseconds)
    ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds)
    ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    // A cancelled request does not wait for the thread that resolves its name.
    ccurl_set_long(easy, CURLOPT_QUICK_EXIT, 1)
    ccurl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    ccurl_set_long(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    if request.redirects > 0 {
      ccurl_set_long(easy, CURLOPT_FOLLOWLOCATION, 1)
      ccurl_set_long(easy, CURLOPT_MAXREDIRS, request.redirects)
    }
    setEnvironment(transfer)
    setBody(transfer)
  }

  private func setEnvironment(_ transfer: Transfer) {
    let easy = transfer.easy
    if let file = environment.certificateFile { ccurl_set_string(easy, CURLOPT_CAINFO, file) }
    if let directory = environment.certificateDirectory { ccurl_set_string(easy, CURLOPT_CAPATH, directory) }
    if !transfer.request.isTrusted, let proxy = environment.proxy(for: transfer.url.scheme) {
      // So that it is certain who resolves the name, and therefore what is to be checked.
      transfer.usesProxy = true
      ccurl_set_string(easy, CURLOPT_PROXY, proxy)
      ccurl_set_string(easy, CURLOPT_NOPROXY, "")
    } else {
      ccurl_set_string(easy, CURLOPT_NOPROXY, environment.noProxy)
    }
  }

  private func setBody(_ transfer: Transfer) {
    let easy = transfer.easy
    let request = transfer.request
    var lines = request.headers.fields.map { name, value in
      value.isEmpty ? "\(name.inOneLine);" : "\(name.inOneLine): \(value.inOneLine)"
    }
    // What libcurl would add on its own.
    for name in ["Accept", "Expect"] where request.headers[name] == nil { lines.append("\(name):") }
    if request.headers["Content-Type"] == nil { lines.append("Content-Type:") }
    switch request.body {
    case .none:
      switch request.method {
      case "GET": break
      case "HEAD": ccurl_set_long(easy, CURLOPT_NOBODY, 1)
      case "POST", "PUT", "PATCH":
        setBytes([], easy)
        ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
      default: ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
      }
    case .bytes(let bytes):
      setBytes(bytes, easy)
      ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
    case .stream(let stream):
      ccurl_set_long(easy, CURLOPT_UPLOAD, 1)
      ccurl_set_offset(easy, CURLOPT_INFILESIZE_LARGE, stream.size.map { curl_off_t($0) } ?? -1)
      ccurl_set_string(easy, CURLOPT_CUSTOMREQUEST, request.method)
      if stream.size == nil { lines.append("Transfer-Encoding: chunked") }
      startFeeding(transfer, from: stream)
    }
    transfer.setHeaders(lines)
  }

  private func setBytes(_ bytes: [UInt8], _ easy: UnsafeMutableRawPointer) {
    ccurl_set_long(easy, CURLOPT_POST, 1)
    ccurl_set_offset(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count))
    // Copied by libcurl. An empty array may have no address, but libcurl needs one.
    (bytes.isEmpty ? [0] : bytes).withUnsafeBytes { source in
      _ = ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: source.baseAddress))
    }
  }

  /// The request's body is read by a task of its own, because the response may arrive before its end. It belongs to the
  /// transfer, which cancels it at its end.
  private func startFeeding(_ transfer: Transfer, from stream: ByteStream) {
    guard let pipe = transfer.upload else { return }
    transfer.feeder = Task(executorPreference: loop) {
      do throws(FerryError) {
        while let piece = try await stream.next() {
          guard await pipe.write(piece) else { return }
        }
        pipe.finish()
      } catch {
        pipe.finish(error)
      }
    }
  }
}

extension String {
  /// Without control characters: a line break in a header would begin another of somebody else's choice.
  var inOneLine: String {
    guard utf8.contains(where: { $0 < 32 || $0 == 127 }) else { return self }
    return String(String.UnicodeScalarView(unicodeScalars.filter { $0 == "\t" || ($0.value >= 32 && $0.value != 127) }))
  }
}

/// A response's body. Keeps the client alive while somebody may read, and ends the request when nobody can any more.
private final class ResponseBody: Sendable {
  let pipe: BytePipe
  private let client: ClientLoop
  private let id: UInt64

  init(client: ClientLoop, id: UInt64, pipe: BytePipe) {
    self.client = client
    self.id = id
    self.pipe = pipe
  }

  deinit { client.abandon(id) }

  func stream(_ size: Int64?, _ mediaType: String?) -> ByteStream {
    ByteStream(size: size, mediaType: mediaType) { () async throws(FerryError) in try await self.pipe.next() }
  }
}
