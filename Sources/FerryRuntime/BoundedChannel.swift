/// A queue between tasks that holds at most `capacity` elements: `send` waits while it is full, `next` while it is
/// empty. Any number of senders; one receiver at a time.
///
/// After `finish` what is queued is still received, then nil. A cancelled `send` or `next` returns at once, without
/// having queued (send returns false) or taken (next returns nil) anything.
package final class BoundedChannel<Element: Sendable>: Sendable {
  private struct State {
    var elements: [Element?] = []
    var head = 0
    var finished = false
    var receiver: (id: UInt64, continuation: CheckedContinuation<Void, Never>)?
    var senders: [(id: UInt64, continuation: CheckedContinuation<Void, Never>)] = []
    var nextWaiter: UInt64 = 0

    var count: Int { elements.count - head }

    mutating func take() -> Element? {
      guard head < elements.count else { return nil }
      let element = elements[head]
      elements[head] = nil
      head += 1
      if head == elements.count {
        elements.removeAll(keepingCapacity: true)
        head = 0
      } else if head > 256, head > elements.count / 2 {
        elements.removeFirst(head)
        head = 0
      }
      return element
    }
  }

  private let capacity: Int
  private let state = Locked(State())

  package init(capacity: Int) {
    precondition(capacity > 0, "a channel holds at least one element")
    self.capacity = capacity
  }

  package var count: Int { state.withLock { $0.count } }

  /// True when the element was queued; false when the channel is finished or the task cancelled.
  @discardableResult
  package func send(_ element: Element) async -> Bool {
    while !Task.isCancelled {
      switch offer(element) {
      case .queued: return true
      case .finished: return false
      case .full: await waitForRoom()
      }
    }
    passRoomOn()
    return false
  }

  /// A sender that was told of room and is cancelled before it took it must tell the next, or that one waits for ever.
  private func passRoomOn() {
    let sender = state.withLock { state in
      state.count < capacity && !state.senders.isEmpty ? state.senders.removeFirst().continuation : nil
    }
    sender?.resume()
  }

  package enum Offer: Sendable { case queued, full, finished }

  /// Queues without waiting, or says why not.
  package func offer(_ element: Element) -> Offer {
    let (offer, receiver) = state.withLock { state -> (Offer, CheckedContinuation<Void, Never>?) in
      if state.finished { return (.finished, nil) }
      if state.count >= capacity { return (.full, nil) }
      state.elements.append(element)
      defer { state.receiver = nil }
      return (.queued, state.receiver?.continuation)
    }
    receiver?.resume()
    return offer
  }

  /// The next element, or nil once the channel is finished and empty, or the task cancelled.
  package func next() async -> Element? {
    while !Task.isCancelled {
      let (element, finished, sender) = state.withLock { state in
        let element = state.take()
        let sender = element == nil || state.senders.isEmpty ? nil : state.senders.removeFirst().continuation
        return (element, state.finished, sender)
      }
      sender?.resume()
      if let element { return element }
      if finished { return nil }
      await waitForElement()
    }
    return nil
  }

  /// Everything that is queued, without waiting.
  package func drain(upTo limit: Int = .max) -> [Element] {
    let (elements, senders) = state.withLock { state in
      var elements: [Element] = []
      while elements.count < limit, let element = state.take() { elements.append(element) }
      let freed = elements.isEmpty ? [] : state.senders
      if !elements.isEmpty { state.senders = [] }
      return (elements, freed)
    }
    for sender in senders { sender.continuation.resume() }
    return elements
  }

  package func finish() {
    let (receiver, senders) = state.withLock { state in
      state.finished = true
      defer {
        state.receiver = nil
        state.senders = []
      }
      return (state.receiver, state.senders)
    }
    receiver?.continuation.resume()
    for sender in senders { sender.continuation.resume() }
  }

  private func waitForRoom() async {
    let id = takeWaiter()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.finished || state.count < capacity || Task.isCancelled { return true }
          state.senders.append((id, continuation))
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let found = state.withLock { state in
        state.senders.firstIndex { $0.id == id }.map { state.senders.remove(at: $0).continuation }
      }
      found?.resume()
    }
  }

  private func waitForElement() async {
    let id = takeWaiter()
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let goOn = state.withLock { state in
          if state.finished || state.count > 0 || Task.isCancelled { return true }
          precondition(state.receiver == nil, "a channel has one receiver at a time")
          state.receiver = (id, continuation)
          return false
        }
        if goOn { continuation.resume() }
      }
    } onCancel: {
      let found = state.withLock { state -> CheckedContinuation<Void, Never>? in
        guard state.receiver?.id == id else { return nil }
        defer { state.receiver = nil }
        return state.receiver?.continuation
      }
      found?.resume()
    }
  }

  private func takeWaiter() -> UInt64 {
    state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
  }
}
