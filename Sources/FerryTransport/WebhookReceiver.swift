package import FerryCore

/// A provider whose service announces events by HTTP requests to an address of ours.
///
/// The relay's listener hands it every request to its path. The answer is the acknowledgement of G1: 2xx is given only
/// once the inbox that `run` was called with has accepted the events.
package protocol WebhookReceiver: ChatProvider {
  /// The decoded path of the configured public address, such as `/hooks/support`; nil where none is configured. Constant
  /// after `init`.
  var webhookPath: String? { get }

  /// Called at any time and by many requests at once, before, during and after `run`. Checks the signature before it
  /// parses anything further. Never throws: what is wrong with a request is said in the answer.
  func webhook(_ request: HTTPRequest) async -> HTTPResponse
}
