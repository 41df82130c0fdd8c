/// The characters of the first PCs, in which zip files name entries that are not marked as UTF-8.
///
/// Source: APPNOTE.TXT (PKWARE), appendix D.
enum CodePage437 {
  private static let upper =
    Array(
      "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        .unicodeScalars)
    + Array("αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}".unicodeScalars)

  static func text(_ bytes: [UInt8]) -> String {
    var text = String.UnicodeScalarView()
    for byte in bytes {
      let index = Int(byte) - 0x80
      text.append(upper.indices.contains(index) ? upper[index] : Unicode.Scalar(byte))
    }
    return String(text)
  }
}
