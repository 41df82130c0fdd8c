import FerryCore
import FerryRuntime
import Testing

@Suite(.timeLimit(.minutes(1))) struct BoundedChannelTests {
  @Test("elements come out in their order, and after the end nothing")
  func order() async {
    let channel = BoundedChannel<Int>(capacity: 1000)
    for number in 0..<700 { #expect(await channel.send(number)) }
    channel.finish()
    #expect(await !channel.send(700))
    for number in 0..<700 { #expect(await channel.next() == number) }
    #expect(await channel.next() == nil)
    #expect(await channel.next() == nil)
  }

  @Test("offering never waits: queued, full, or finished")
  func offering() {
    let channel = BoundedChannel<Int>(capacity: 2)
    #expect(channel.offer(1) == .queued)
    #expect(channel.offer(2) == .queued)
    #expect(channel.offer(3) == .full)
    #expect(channel.drain(upTo: 1) == [1])
    #expect(channel.offer(4) == .queued)
    channel.finish()
    #expect(channel.offer(5) == .finished)
    #expect(channel.drain() == [2, 4])
    #expect(channel.count == 0)
  }

  @Test("a sender waits while the channel is full, and many lose nothing")
  func backPressure() async {
    let channel = BoundedChannel<Int>(capacity: 3)
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<8 {
        group.addTask { for number in 0..<500 { await channel.send(sender * 1000 + number) } }
      }
      var last = [Int](repeating: -1, count: 8)
      for _ in 0..<4000 {
        #expect(channel.count <= 3)
        guard let element = await channel.next() else { break }
        #expect(element % 1000 == last[element / 1000] + 1, "one sender's elements keep their order")
        last[element / 1000] = element % 1000
      }
      #expect(last == [Int](repeating: 499, count: 8))
    }
  }

  @Test("finishing frees who waits to send and who waits to receive")
  func finishing() async {
    let full = BoundedChannel<Int>(capacity: 1)
    await full.send(1)
    let empty = BoundedChannel<Int>(capacity: 1)
    async let sent = full.send(2)
    async let received = empty.next()
    await Task.yield()
    full.finish()
    empty.finish()
    #expect(await !sent)
    #expect(await received == nil)
    #expect(full.drain() == [1])
  }

  @Test("a cancelled task neither queues nor takes")
  func cancellation() async {
    let channel = BoundedChannel<Int>(capacity: 1)
    let receiver = Task { await channel.next() }
    receiver.cancel()
    #expect(await receiver.value == nil)
    await channel.send(1)
    let sender = Task { await channel.send(2) }
    sender.cancel()
    #expect(await !sender.value)
    #expect(channel.drain() == [1])
  }

  @Test("a sender cancelled just after it was told of room tells the next")
  func passingRoomOn() async throws {
    let loop = try LoopExecutor(name: "test")
    defer { loop.stop() }
    // On one thread the moment between being told and going on can be hit exactly.
    await Task(executorPreference: loop) {
      let channel = BoundedChannel<Int>(capacity: 1)
      await channel.send(0)
      let first = Task(executorPreference: loop) { await channel.send(1) }
      let second = Task(executorPreference: loop) { await channel.send(2) }
      await Task.yield()
      #expect(await channel.next() == 0)
      first.cancel()
      #expect(await channel.next() == 2)
      #expect(await !first.value)
      #expect(await second.value)
    }.value
  }

  @Test("whatever is cancelled when, every element accepted is received once")
  func cancellationRaces() async {
    for _ in 0..<300 {
      let channel = BoundedChannel<Int>(capacity: 1)
      let senders = (0..<4).map { number in Task { await channel.send(number) ? number : nil } }
      let receiver = Task {
        var received: [Int] = []
        while let element = await channel.next() { received.append(element) }
        return received
      }
      senders[1].cancel()
      senders[2].cancel()
      var accepted: [Int] = []
      for sender in senders { if let number = await sender.value { accepted.append(number) } }
      channel.finish()
      #expect(await receiver.value.sorted() == accepted.sorted())
      #expect(accepted.contains(0) && accepted.contains(3))
    }
  }
}
