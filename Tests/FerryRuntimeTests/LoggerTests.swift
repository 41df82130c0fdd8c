import FerryCore
import FerryRuntime
import Testing

@Suite struct LoggerTests {
  private struct StoppedClock: FerryClock {
    func now() -> Timestamp { Timestamp(milliseconds: 0) }
    func sleep(for duration: Duration) async throws(CancellationError) {}
  }

  private func lines(level: Logger.Level = .debug, _ body: (Logger) -> Void) -> [String] {
    let lines = Locked<[String]>([])
    body(
      Logger(
        component: "test", level: level, clock: StoppedClock(), write: { line in lines.withLock { $0.append(line) } }))
    return lines.withLock { $0 }
  }

  @Test("a line has time, level, component and message")
  func format() {
    #expect(lines { $0.warning("hello") } == ["1970-01-01T00:00:00.000Z warning test: hello\n"])
    #expect(lines { $0.component("other").info("x") } == ["1970-01-01T00:00:00.000Z info other: x\n"])
  }

  @Test(
    "whatever the message holds, one event is one line",
    arguments: [
      "a\nb", "a\r\nb", "a\rb", "a\u{85}b", "a\u{2028}b", "a\u{b}b", "\u{1b}[2Ja", "a\u{0}b", "\n\n", "\r\n\r\n",
    ])
  func oneLine(text: String) throws {
    let line = try #require(lines { $0.error(text) }.first)
    let controls = line.unicodeScalars.filter {
      $0.properties.generalCategory == .control || $0 == "\u{2028}" || $0 == "\u{2029}"
    }
    #expect(controls.map(\.value) == [10])
    #expect(line.hasSuffix("\n"))
  }

  @Test("what is below the level is not even built")
  func lazily() {
    let built = Locked(false)
    func message() -> String {
      built.withLock { $0 = true }
      return "x"
    }
    #expect(lines(level: .notice) { $0.info(message()) }.isEmpty)
    #expect(!built.withLock { $0 })
    #expect(lines(level: .notice) { $0.notice("x") }.count == 1)
  }
}

@Suite struct MetricsTests {
  @Test("metrics read as Prometheus wants them")
  func text() {
    let metrics = Metrics()
    metrics.add(to: "ferry_events_total", ["kind": "posted"])
    metrics.add(2, to: "ferry_events_total", ["kind": "posted"])
    metrics.add(to: "ferry_events_total", ["kind": "edited"])
    metrics.set("ferry_queue", to: 1.5)
    #expect(metrics.value("ferry_events_total", ["kind": "posted"]) == 3)
    #expect(metrics.value("ferry_none") == 0)
    #expect(
      metrics.text() == """
        # TYPE ferry_events_total counter
        ferry_events_total{kind="edited"} 1
        ferry_events_total{kind="posted"} 3
        # TYPE ferry_queue gauge
        ferry_queue 1.5

        """)
  }

  @Test("a label's value cannot break out of its quotes or its line")
  func escaping() {
    let metrics = Metrics()
    metrics.set("m", ["a": "x\"\\\n\r\ny"], to: 1)
    #expect(metrics.text().split(separator: "\n").last == "m{a=\"x\\\"\\\\\\n\r\\ny\"} 1")
  }
}
