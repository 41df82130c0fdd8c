#if TSAN
  import Glibc
#else
  import Synchronization
#endif

/// A value behind a lock: the only lock in Ferry.
///
/// Held for a few instructions, never over an `await`, and no continuation is resumed inside. Under the thread
/// sanitizer it is a pthread mutex, because the sanitizer reports false races for `Synchronization.Mutex` on Linux.
package final class Locked<Value: Sendable>: @unchecked Sendable {
  // @unchecked because every access to `value` happens with the lock held.
  #if TSAN
    private let mutex: UnsafeMutablePointer<pthread_mutex_t>
    private var value: Value

    package init(_ value: Value) {
      self.value = value
      mutex = .allocate(capacity: 1)
      pthread_mutex_init(mutex, nil)
    }

    deinit {
      pthread_mutex_destroy(mutex)
      mutex.deallocate()
    }

    package func withLock<Result, Failure: Error>(
      _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
      pthread_mutex_lock(mutex)
      defer { pthread_mutex_unlock(mutex) }
      return try body(&value)
    }
  #else
    private let mutex = Mutex(())
    private var value: Value

    package init(_ value: Value) { self.value = value }

    package func withLock<Result, Failure: Error>(
      _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
      mutex._unsafeLock()
      defer { mutex._unsafeUnlock() }
      return try body(&value)
    }
  #endif
}
