import Testing

@testable import FerryPages

@Suite struct CompactionTests {
  private func compact(_ text: String, _ kind: Compaction.Kind) -> String {
    String(decoding: Compaction.compact(Array(text.utf8), kind), as: UTF8.self)
  }

  @Test func aScriptLosesIndentationAndLinesOfComments() {
    let script = """
      // About it.

      /** One line. */
      function a() {
        /**
         * Several
         * lines.
         */
        // Why.
        return 'a // b /* c';  // stays
      }
      """
    #expect(compact(script, .script) == "function a(){\nreturn 'a // b /* c';  // stays\n}\n")
  }

  @Test func aScriptLosesSpacesBesideSignsButNotThoseInTextsOrBetweenWords() {
    let script = """
      export const a = (b, c) => ({ ...b, d: c + -1 - +c }), e = a ? .5 : !a;
      const f = ' ( ', g = / = /u, h = ` ; `;
      for (const i of [1]) if (i in a && !e) return new (b.c ?? class { static j = 1 });
      """
    #expect(
      compact(script, .script) == """
        export const a=(b,c)=>({...b,d:c + -1 - +c}),e=a?.5:!a;
        const f = ' ( ', g = / = /u, h = ` ; `;
        for(const i of[1])if(i in a&&!e)return new(b.c??class{static j=1});

        """)
  }

  @Test func aStyleLosesSpacesButNotThoseInTexts() {
    let style = """
      /* Colours */
      .a, .b :is(c) { color: red; }
      @media (max-width: 9px) {
        .chip::before { content: "a: b; { } , c" / ""; margin: 0 1px; }
      }
      """
    #expect(
      compact(style, .style) == """
        .a,.b :is(c){color:red}
        @media (max-width:9px){
        .chip::before{content:"a: b; { } , c" / "";margin:0 1px}
        }

        """)
  }

  @Test func markupLosesIndentationOnly() {
    #expect(compact("<p>\n\n  // not a comment\n</p>", .markup) == "<p>\n// not a comment\n</p>\n")
  }
}
