import CMicroHTTPD
import FerryRuntime
import Glibc

/// The context of libmicrohttpd's callbacks: leads to the server.
final class ServerCallbacks: @unchecked Sendable {
  // @unchecked because both are set once, before the daemon first runs, and then used on the loop thread only.
  weak var server: ServerLoop?
  private(set) var daemon: OpaquePointer?

  deinit { stopDaemon() }

  func stopDaemon() {
    if let daemon { MHD_stop_daemon(daemon) }
    daemon = nil
  }

  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  /// The daemon closes the listener from now on. It calls nothing before its first run.
  func startDaemon(_ settings: HTTPServer.Settings, listener: Listener, tls: TLSFiles?) -> Bool {
    var options = cmhd_settings()
    options.listener = listener.descriptor
    options.connections = UInt32(clamping: settings.connections)
    options.memory = settings.headerBytes
    options.timeout = UInt32(clamping: max(1, settings.idleTimeout.components.seconds + 1))
    options.context = pointer
    options.accept = admitConnection
    options.handle = handleRequest
    options.completed = requestCompleted
    options.connection = connectionChanged
    options.target = targetRead
    if let tls {
      tls.certificate.withCString { certificate in
        tls.key.withCString { key in
          options.certificate = certificate
          options.key = key
          daemon = cmhd_start(&options)
        }
      }
    } else {
      daemon = cmhd_start(&options)
    }
    return daemon != nil
  }
}

// libmicrohttpd calls all of these on the loop thread, inside `MHD_run` (or `MHD_stop_daemon`), which is called by the
// server's own code: they enter the server with `assumeIsolated` and never run libmicrohttpd again. `context` is the
// `ServerCallbacks`, which the server owns. A request's context is its exchange, retained in `handleRequest` and
// released in `requestCompleted`.

private func onServer<Result: Sendable>(
  _ context: UnsafeMutableRawPointer?, _ body: (isolated ServerLoop) -> Result
) -> Result? {
  guard let context else { return nil }
  return Unmanaged<ServerCallbacks>.fromOpaque(context).takeUnretainedValue().server?.assumeIsolated(body)
}

private let admitConnection: MHD_AcceptPolicyCallback = { context, address, _ in
  let address = IPAddress(address)
  return onServer(context) { $0.admits(address) } ?? false ? cmhd_yes : cmhd_no
}

private let connectionChanged: MHD_NotifyConnectionCallback = { context, connection, _, kind in
  guard let connection else { return }
  let handle = OnLoop(connection)
  onServer(context) { server in
    if kind == cmhd_connection_started {
      _ = server.opened(handle.value)
    } else {
      server.closed(handle.value)
    }
  }
}

private let targetRead: cmhd_target_callback = { context, target, connection in
  guard let target, let connection else { return nil }
  let handle = OnLoop(connection)
  let text = String(cString: target)
  onServer(context) { $0.targetRead(handle.value, text) }
  return nil
}

private let handleRequest: MHD_AccessHandlerCallback = { context, connection, _, verb, _, data, size, request in
  guard let connection, let verb, let size, let request else { return cmhd_no }
  let call = OnLoop((connection: connection, request: request, size: size, data: data))
  let method = String(cString: verb)
  return onServer(context) { server in
    if let known = call.value.request.pointee {
      let exchange = Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
      let bytes = UnsafeRawBufferPointer(start: call.value.data, count: call.value.size.pointee)
      guard let taken = server.go(on: exchange, with: bytes) else { return cmhd_no }
      call.value.size.pointee -= taken
      return cmhd_yes
    }
    guard let exchange = server.begin(call.value.connection, method: method) else { return cmhd_no }
    call.value.request.pointee = Unmanaged.passRetained(exchange).toOpaque()
    if let response = exchange.response, !exchange.isHeardOut {
      return server.answer(exchange, response) == nil ? cmhd_no : cmhd_yes
    }
    if exchange.phase == .head { server.suspend(exchange) }
    return cmhd_yes
  } ?? cmhd_no
}

private let requestCompleted: MHD_RequestCompletedCallback = { context, _, request, reason in
  guard let request, let known = request.pointee else { return }
  let exchange = OnLoop(Unmanaged<Exchange>.fromOpaque(known).takeRetainedValue())
  request.pointee = nil
  let isWhole = reason == cmhd_completed
  onServer(context) { $0.completed(exchange.value, isWhole: isWhole) }
}

let collectHeader: MHD_KeyValueIterator = { context, _, name, value in
  guard let context, let name else { return cmhd_yes }
  Unmanaged<HeaderBox>.fromOpaque(context).takeUnretainedValue()
    .headers.add(String(cString: name), value.map { String(cString: $0) } ?? "")
  return cmhd_yes
}

let readStream: MHD_ContentReaderCallback = { context, _, buffer, size in
  guard let context, let buffer else { return -2 }
  let call = OnLoop(
    (
      source: Unmanaged<StreamSource>.fromOpaque(context).takeUnretainedValue(),
      buffer: UnsafeMutableRawBufferPointer(start: buffer, count: size)
    ))
  return call.value.source.server.assumeIsolated { $0.read(call.value.source, into: call.value.buffer) }
}

/// Called when the response is destroyed.
let releaseStream: MHD_ContentReaderFreeCallback = { context in
  if let context { Unmanaged<StreamSource>.fromOpaque(context).release() }
}

/// The 101 is out. `early` is what the client sent behind its handshake, and lives during the call only.
let socketUpgraded: MHD_UpgradeHandler = { context, _, request, early, count, descriptor, upgrade in
  guard let request, let upgrade else { return }
  let call = OnLoop((Unmanaged<Exchange>.fromOpaque(request).takeUnretainedValue(), upgrade))
  let early = Array(UnsafeRawBufferPointer(start: early, count: count))
  onServer(context) { server in
    server.upgraded(call.value.0, descriptor: descriptor, early: early, upgrade: call.value.1)
  }
}
