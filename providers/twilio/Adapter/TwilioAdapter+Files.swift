package import FerryCore
import FerryRuntime
import FerryTransport

extension TwilioAdapter: UploadingProvider, HistoryProvider {
  private static let transferDeadline = Duration.seconds(600)

  /// The file lives for five minutes unless a message takes it. A send that finds it gone says so with a retry, before
  /// which it is uploaded again.
  package func upload(
    _ bytes: ByteStream, name: String, mediaType: String, to channel: ChannelID
  ) async throws(FerryError) -> AttachmentReference {
    if let size = bytes.size, size > AdapterLimits.mediaBytes {
      throw FerryError(
        .tooLarge, "A file at Twilio is \(AdapterLimits.mediaBytes >> 20) MiB at most, not \(size) bytes.")
    }
    do throws(FerryError) {
      let query: Form = [("Filename", name), ("Category", "media")]
      var request = ClientRequest(method: "POST", url: try await mediaURL() + "?" + query.encoded)
      // Twilio believes it, and takes what has none for anything.
      request.headers.set("Content-Type", mediaType.isEmpty ? "application/octet-stream" : mediaType)
      request.body = .stream(bytes)
      request.deadline = Self.transferDeadline
      let answer = JSONText.value(try await api.send(request, isWrite: true, doing: "upload the file"))
      guard let sid = answer?["sid"]?.string, !sid.isEmpty else {
        throw FerryError(.badData, "Could not upload the file: the answer names none. Check media_url.", retry: .now)
      }
      return .provider(sid)
    } catch {
      // Nobody sees a file without a message, and it is collected.
      var error = error
      error.didNotAct = true
      if error.code == .outcomeUnknown { error.code = .unavailable }
      throw error
    }
  }

  private func mediaURL(_ parts: String...) async throws(FerryError) -> String {
    let service = try await service()
    return settings.media + "/v1/Services/\(PercentEncoding.encode(service))/Media"
      + parts.map { "/" + PercentEncoding.encode($0) }.joined()
  }

  /// Over a temporary URL that is asked for every time, and to which no credentials are sent.
  package func attachment(_ reference: AttachmentReference) async throws(FerryError) -> ByteStream {
    let request: ClientRequest
    switch reference {
    case .provider(let sid):
      let record = try await api.get(try await mediaURL(sid), doing: "find the file")
      guard let link = record["links"]?["content_direct_temporary"]?.string, !link.isEmpty else {
        throw FerryError(.badData, "Could not fetch the file: Twilio gives no address of it.", retry: .now)
      }
      let own = TwilioAPI.resolve(link, at: settings.media)
      // Elsewhere it leads to some store of the service's choice, which lies on public addresses.
      request = ClientRequest(
        url: own ?? link, deadline: Self.transferDeadline, redirects: 3, isTrusted: own != nil)
    case .url(let url):
      request = ClientRequest(url: url, deadline: Self.transferDeadline, redirects: 3, isTrusted: false)
    }
    let response = try await client.send(request)
    guard response.isSuccess else {
      var error = FerryError.from(
        status: response.status, retryAfter: response.headers["Retry-After"], doing: "fetch the file")
      // The address may have run out on the way: the next attempt asks for another.
      if case .provider = reference, [401, 403, 404, 410].contains(response.status) {
        error = FerryError(.unavailable, "Could not fetch the file: its address has run out.", retry: .now)
      }
      throw error
    }
    return response.body
  }

  // MARK: History

  /// The cursor is the rest of the list, which only Twilio can read.
  package func history(
    of channel: ChannelID, order: HistoryOrder, after cursor: Cursor?, limit: Int
  ) async throws(FerryError) -> HistoryPage {
    let size = min(max(limit, 1), AdapterLimits.pageSize)
    var url = messagesURL(
      channel.rawValue, [("Order", order == .oldestFirst ? "asc" : "desc"), ("PageSize", String(size))])
    if let cursor {
      guard let next = TwilioAPI.resolve(cursor.rawValue, at: settings.api) else {
        throw FerryError(.badRequest, "The cursor is not one of this account's history.")
      }
      url = next
    }
    let page = try await api.page(url, doing: "read the history")
    var messages: [Message] = []
    for record in page.records {
      guard let message = ListedMessage(json: record) else { continue }
      let isNamed = message.participant != nil && message.ferry?.author == nil
      let name = isNamed ? await names.name(of: message.author) : nil
      messages.append(
        message.message(
          name: name, stamp: written.stamp(ofMessage: message.sid), revision: message.revision))
    }
    return HistoryPage(messages: messages, next: page.next.map { Cursor($0) })
  }
}
