import FerryChat
import FerryCore
import FerryRuntime

/// The way to the data, and what an account has from the start.
extension TwilioFacade {
  /// Runs `body` in one transaction. Throws a `TwilioError` of the body's as it is.
  func write<T: Sendable>(_ body: @escaping @Sendable (Ledger) throws -> T) async throws -> T {
    let refusal = Locked<TwilioError?>(nil)
    do {
      return try await chat.write(isOfObserver: true) { [self] transaction in
        do { return try body(Ledger(chat: transaction, facade: self)) } catch let error as TwilioError {
          refusal.withLock { $0 = error }
          throw FerryError(.badRequest, error.message)
        }
      }
    } catch {
      throw refusal.withLock { $0 } ?? TwilioError(error)
    }
  }

  func read<T: Sendable>(_ body: @escaping @Sendable (Ledger) throws -> T) async throws -> T {
    let refusal = Locked<TwilioError?>(nil)
    do {
      return try await chat.read { [self] transaction in
        do { return try body(Ledger(chat: transaction, facade: self)) } catch let error as TwilioError {
          refusal.withLock { $0 = error }
          throw FerryError(.badRequest, error.message)
        }
      }
    } catch {
      throw refusal.withLock { $0 } ?? TwilioError(error)
    }
  }

  /// Makes what an account has from the start, once; and lets the facade see what others do in the chat.
  func setUp() async throws(FerryError) {
    if linkKey.withLock({ $0 != nil }) { return }
    try await chat.write(isOfObserver: true) { [self] transaction in
      let ledger = Ledger(chat: transaction, facade: self)
      if try ledger.service(settings.serviceSID) == nil {
        _ = try ledger.makeService(settings.serviceSID, name: "Ferry")
      }
      let service = try ledger.accountConfiguration().service
      defaultService.withLock { $0 = service }
    }
    try await chat.observe(as: "twilio-facade") { [self] transaction, told in
      try observe(told, Ledger(chat: transaction, facade: self))
    }
    let key = try await chat.write(isOfObserver: true) { [self] transaction in
      let ledger = Ledger(chat: transaction, facade: self)
      for name in settings.conversations where try ledger.conversation(name, in: settings.serviceSID) == nil {
        _ = try ledger.makeConversation(in: settings.serviceSID, uniqueName: name) { $0.friendlyName = name }
      }
      if let key: String = try transaction.value(of: "link-key", in: "configuration") { return key }
      let key = Crypto.randomHex(bytes: 32)
      try transaction.put(key, as: "link-key", in: "configuration")
      return key
    }
    linkKey.withLock { $0 = key }
  }
}
