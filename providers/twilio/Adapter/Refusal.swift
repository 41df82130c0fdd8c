import FerryCore
import FerryTransport

/// What Twilio's answers other than success mean for whoever asked: one row a code, in one table.
///
/// Twilio's own words are left out of errors, because they may quote what was sent.
/// Source: https://www.twilio.com/docs/api/errors
enum Refusal {
  enum Again: Hashable, Sendable {
    case never, now
    /// With a delay that grows, unless the answer names one.
    case later
    case after(seconds: Int)
  }

  struct Meaning: Hashable, Sendable {
    let code: FerryError.Code
    var again: Again = .never
    /// Completes "Could not ...: ".
    let words: String
  }

  /// Those that say "somebody else is changing this right now": certainly not done, and worth another try at once.
  static let contended: Set<Int> = [50514, 50391, 50419, 50213, 50449, 20409]
  /// A participant who is there already.
  static let alreadyMember: Set<Int> = [50433, 50404]
  static let nameTaken = 50353
  static let notMember = 50430
  static let mediaGone = 50507
  static let bodyTooLong = 50504

  static func meaning(of code: Int) -> Meaning? {
    if contended.contains(code) {
      return Meaning(code: .conflict, again: .now, words: "it is being changed by another request at this moment.")
    }
    return table[code]
  }

  private static let table: [Int: Meaning] = {
    var table: [Int: Meaning] = [:]
    func rows(_ codes: [Int], _ code: FerryError.Code, _ again: Again = .never, _ words: String) {
      for number in codes { table[number] = Meaning(code: code, again: again, words: words) }
    }
    rows([20003], .badCredentials, .never, "the credentials were not accepted. Check account_sid and auth_token.")
    rows([20006, 20403, 20005], .forbidden, .never, "the account is suspended or may not do this.")
    rows([20404], .notFound, .never, "Twilio knows no such thing. Check the channel's name and service_sid.")
    rows([50350], .notFound, .never, "there is no such conversation. Check its name, or set create: true.")
    rows([50432, 50500, 50200], .notFound, .never, "there is no such thing, or no longer.")
    rows(
      [mediaGone], .notFound, .now,
      "the uploaded file is gone, as after five minutes without a message. Upload it again.")
    rows([50508], .notFound, .now, "the uploaded file belongs to another message. Upload it again.")
    rows(
      [20001, 20422, 50304, 50308, 50309, 50204, 50411, 50412, 50407, 50408, 50441, 50361, 50365, 50372, 50306, 50390],
      .badRequest, .never, "Twilio rejected the request.")
    rows([50503], .badRequest, .never, "Twilio takes no message without text and without a file.")
    rows([50303], .tooLarge, .never, "its attributes are larger than Twilio accepts.")
    rows(
      [bodyTooLong], .tooLarge, .never,
      "the text is longer than Twilio accepts here. With a phone or WhatsApp in the conversation set messaging: true.")
    rows([50310], .tooLarge, .never, "the author's name is longer than 256 characters.")
    rows([50207], .tooLarge, .never, "the identity is longer than 256 characters.")
    rows([50003], .tooLarge, .never, "a name is longer than Twilio accepts.")
    rows([nameTaken], .conflict, .never, "a conversation of that name exists already.")
    rows(Array(alreadyMember), .conflict, .never, "the participant is there already.")
    rows([50416, 50437, 50438], .conflict, .never, "the phone number takes part in another live conversation.")
    rows([50201], .conflict, .never, "the user exists already.")
    rows([notMember], .forbidden, .never, "the identity is no participant of the conversation.")
    rows([50513], .forbidden, .never, "in a group MMS only participants can be authors.")
    rows([50377], .forbidden, .never, "the conversation is closed, which is final.")
    rows([50509], .unsupported, .never, "Twilio cannot change the text of a message with a file.")
    rows([50386], .unavailable, .after(seconds: 2), "the conversation is still being set up.")
    rows([50334, 50002], .notFound, .never, "the conversation is being deleted.")
    rows(
      [50417, 50418, 50422, 50403, 50214, 50208], .forbidden, .never,
      "a limit on participants or on conversations of one user is reached.")
    rows([50056], .forbidden, .never, "the account's own hook refused it.")
    rows([50385], .badConfiguration, .never, "Twilio does not offer conversations in this region.")
    rows([50063, 50074, 54009, 20429], .rateLimited, .later, "Twilio asks to slow down.")
    return table
  }()

  /// The error for a status other than 2xx. `delay` is asked for how long to wait where Twilio does not say.
  static func error(
    status: Int, code: Int?, retryAfter: String?, isWrite: Bool, doing: String, delay: () -> Duration
  ) -> FerryError {
    var error = FerryError.from(status: status, retryAfter: retryAfter, doing: doing)
    let cause = code.map { "status \(status), Twilio's error \($0): https://www.twilio.com/docs/errors/\($0)" }
    error.cause = cause ?? error.cause
    switch status {
    case 500...599:
      // Of a failing server nobody knows whether it acted, whatever it asks for.
      error.didNotAct = !isWrite
      return error
    case 401: return error
    case 429:
      if error.retry == .now { error.retry = .after(delay()) }
      return error
    case 400...499: break
    default:
      if !isWrite { error.didNotAct = true }
      return error
    }
    guard let code, let meaning = meaning(of: code) else { return error }
    let named: FerryError.Retry? = if case .after = error.retry { error.retry } else { nil }
    let retry: FerryError.Retry =
      switch meaning.again {
      case .never: .never
      case .now: named ?? .now
      case .later: named ?? .after(delay())
      case .after(let seconds): named ?? .after(.seconds(seconds))
      }
    return FerryError(meaning.code, "Could not \(doing): \(meaning.words)", retry: retry, cause: error.cause)
  }
}
