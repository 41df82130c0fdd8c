import FerryCore
import Testing

@Suite struct LayoutTests {
  private func layout(_ change: (inout Capabilities) -> Void) -> MessageLayout {
    var capabilities = Capabilities()
    capabilities.attachments = .stored
    change(&capabilities)
    return MessageLayout(capabilities)
  }

  @Test("attachments go with the text as far as the destination takes them, and else apart")
  func places() {
    #expect(layout { _ in }.place(ofSize: 5, inline: 7) == .inline)
    #expect(layout { $0.attachmentsPerMessage = 2 }.place(ofSize: 5, inline: 1) == .inline)
    #expect(layout { $0.attachmentsPerMessage = 2 }.place(ofSize: 5, inline: 2) == .apart)
    #expect(layout { $0.captions = false }.place(ofSize: 5, inline: 0) == .apart)
  }

  @Test("what is too large to be stored, or cannot be stored, is a link")
  func links() {
    #expect(layout { $0.attachmentBytes = 4 }.place(ofSize: 5, inline: 0) == .link)
    #expect(layout { $0.attachmentBytes = 5 }.place(ofSize: 5, inline: 0) == .inline)
    #expect(layout { $0.attachmentBytes = 4 }.place(ofSize: nil, inline: 0) == .inline)
    #expect(layout { $0.attachments = .none }.place(ofSize: 5, inline: 0) == .link)
    #expect(MessageLayout.text("see", notes: ["a: x", "b: y"]) == "see\na: x\nb: y")
    #expect(MessageLayout.text("", notes: ["a: x"]) == "a: x")
  }

  @Test("a text is split, and left out only when all of the message travels apart")
  func texts() {
    #expect(layout { $0.bodyBytes = 4 }.texts(of: "hello", inline: 0, apart: 0) == ["hell", "o"])
    #expect(layout { _ in }.texts(of: "", inline: 0, apart: 1) == [])
    #expect(layout { _ in }.texts(of: "", inline: 1, apart: 1) == [""])
    #expect(layout { _ in }.texts(of: "", inline: 0, apart: 0) == [""])
  }
}
