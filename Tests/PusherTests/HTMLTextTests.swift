import FerryTestKit
import Testing

@testable import PusherProvider

/// Long work lets others have their turn now and then: tests that wait for sockets run beside these.
@Suite(.timeLimit(.minutes(1))) struct HTMLTextTests {
  @Test(arguments: [
    ("hello", "hello"), ("a &amp; b &lt;3 &#39;q&#39; &#x41; &quot;x&quot;", "a & b <3 'q' A \"x\""),
    ("one<br>two<br />\nthree", "one\ntwo\nthree"), ("<p>one</p><p>two</p>", "one\ntwo"),
    ("  much \n  space\t here  ", "much space here"), ("<b>bold</b> and <i>more</i>", "bold and more"),
    ("a < b and 3 > 2 <3", "a < b and 3 > 2 <3"),
    ("&unknown; &; & &#xZZ; &#1114112;", "&unknown; &; & &#xZZ; \u{fffd}"),
    ("<script>alert('<b>')</script>safe", "safe"), ("<!-- a > b -->text<!DOCTYPE x>", "text"),
    ("<a href='x>y'>link</a>", "link"), ("<img alt=\"a>b\" src=x>after", "after"), ("", ""), ("<", "<"), ("<b", "<b"),
    ("h&eacute;llo&nbsp;&hellip;", "h\u{e9}llo\u{a0}\u{2026}"), ("</b></div>odd", "odd"),
    ("<pre>  kept\n  so</pre>", "  kept\n  so"), ("<b title=\"never closed>text</b>", "text"),
  ])
  func `a person reads the text`(html: String, text: String) {
    #expect(HTMLText(html).text == text)
  }

  @Test func `the card of a messenger is its message, its id and its image`() {
    let html = HTMLText(
      """
      <div class="message-card mc-sender" data-id="2041">
          <div class="actions"><i class="fas fa-trash delete-btn" data-id="2041"></i></div>
          <div class="message-card-content">
              <div class="message">
                  Tom &amp; Jerry<br />
      here <span data-time='2026-11-30' class='message-time'><span class='fas fa-check'></span> <span class='time'>1s ago</span></span>
              </div>
              <div class="image-wrapper" style="text-align: start">
                  <div class="image-file chat-image" style="background-image: url('https://example.org/a.png?x=1&amp;y=2')"><div></div></div>
              </div>
          </div>
      </div>
      """)
    #expect(html.text == "Tom & Jerry\nhere")
    #expect(html.id == "2041")
    #expect(html.images == ["https://example.org/a.png?x=1&y=2"])
  }

  @Test func `only web addresses are images`() {
    #expect(
      HTMLText("<img src='javascript:x'><img src=https://a/b.png><img src='https://a/b.png'>").images == [
        "https://a/b.png"
      ])
  }

  @Test func `what is escaped reads as it was`() async {
    var random = SeededGenerator(seed: 2)
    for _ in 0..<150 {
      await Task.yield()
      let text = Samples.text(using: &random)
      let html =
        "<div><b class=\"\(HTMLText.author)\">Ann</b><div class=\"m \(HTMLText.verbatim)\">"
        + HTMLText.escapedContent(text) + "</div></div>\n"
      #expect(Array(HTMLText(html).text.utf8) == Array(text.utf8))
      #expect(Array(HTMLText("<pre>\(HTMLText.escaped(text))</pre>").text.utf8) == Array(text.utf8))
    }
  }

  @Test func `nothing makes it fail`() async {
    var random = SeededGenerator(seed: 3)
    let pieces = [
      "<", ">", "/", "div", " class=", "\"", "'", "&", "#", ";", "x41", "<!--", "-->", "br", "\u{0}", "é", " ", "=",
      "<script", "message-time",
    ]
    for _ in 0..<2000 {
      await Task.yield()
      let html = (0..<Int.random(in: 0...30, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
      _ = HTMLText(html.joined())
    }
  }

  /// Each would take minutes if its time grew with the square of its length.
  @Test(arguments: ["<a \"", "<a ", "<div>", "</div>", "&", "<!--", "&#", "<a '>", "<div class=actions>", "<br>"])
  func `time grows with length alone`(piece: String) async {
    await Task.yield()
    _ = HTMLText(String(repeating: piece, count: 30_000))
    await Task.yield()
    _ = HTMLText(String(repeating: piece, count: 30_000) + ">")
  }
}
