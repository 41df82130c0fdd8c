import FerryConfig
import FerryTransport
import Testing

@testable import TwilioProvider

@Suite struct WebhookSignatureTests {
  let signature = WebhookSignature(authToken: Secret("0123456789abcdef0123456789abcdef"))
  let url = "https://gw.example.org/hooks/twilio?tenant=7"
  let form: [(name: String, value: String)] = [
    ("Source", "SDK"), ("AccountSid", "AC" + String(repeating: "1", count: 32)), ("Attributes", "{}"),
    ("Author", "alice"), ("Body", "It's 5 o'clock \u{2615} \u{2014} ol\u{e9} & a+b=c"),
    ("ChatServiceSid", "IS" + String(repeating: "2", count: 32)), ("ClientIdentity", "alice"),
    ("ConversationSid", "CH" + String(repeating: "3", count: 32)), ("DateCreated", "2026-01-02T03:04:05.678Z"),
    ("EventType", "onMessageAdded"), ("Index", "12"), ("MessageSid", "IM" + String(repeating: "4", count: 32)),
    ("ParticipantSid", "MB" + String(repeating: "5", count: 32)), ("RetryCount", "0"),
  ]

  private func headers(_ value: String) -> HTTPHeaders { ["x-twilio-signature": value] }

  @Test func `a short form gets the signature that official validators accept`() {
    let form = [(name: "EventType", value: "onMessageAdded"), ("Index", "0"), ("Body", "hi")]
    #expect(signature.sign(url: "http://127.0.0.1:8080/twilio", form: form) == "62JKfz4qHHYm8e9IugyhiS3q0p0=")
  }

  @Test func `a full form beyond ASCII gets the known signature, with a port or without`() {
    #expect(signature.sign(url: url, form: form) == "ASpHHcZCMe9MO39O5zJsYkLx7ak=")
    let port = url.replacing(".org/", with: ".org:443/")
    #expect(signature.sign(url: port, form: form) == "PR5xLBd5cuRuh32hfWocqTTToCs=")
    for sent in ["ASpHHcZCMe9MO39O5zJsYkLx7ak=", "PR5xLBd5cuRuh32hfWocqTTToCs="] {
      #expect(signature.isValid(url: url, form: form, headers: headers(sent)))
      #expect(signature.isValid(url: port, form: form, headers: headers(sent)))
    }
  }

  @Test func `the form as it travels is the form that was signed`() {
    let body = Form(form).encoded
    #expect(signature.sign(url: url, form: Form(decoding: Array(body.utf8)).fields) == "ASpHHcZCMe9MO39O5zJsYkLx7ak=")
    let plus = "Body=It%27s+5+o%27clock+%E2%98%95+%E2%80%94+ol%C3%A9+%26+a%2Bb%3Dc"
    #expect(Form(decoding: Array(plus.utf8))["Body"] == form[4].value)
  }

  @Test func `a port that is not the scheme's own may be left out of the signature`() {
    let made = signature.sign(url: "http://127.0.0.1/hook", form: form)
    #expect(signature.isValid(url: "http://127.0.0.1:8080/hook", form: form, headers: headers(made)))
    #expect(!signature.isValid(url: "http://127.0.0.1/hook2", form: form, headers: headers(made)))
    let six = signature.sign(url: "http://[::1]:80/hook", form: form)
    #expect(signature.isValid(url: "http://[::1]/hook", form: form, headers: headers(six)))
  }

  @Test func `nothing is appended for GET, and the fragment is no part of it`() {
    let url = "https://gw.example.org/hooks?EventType=onMessageAdded&Body=a+b&Index=0"
    #expect(signature.sign(url: url + "#rc=2", form: []) == "cmIGasrBgwvNTedhK7hst5F5WSo=")
    #expect(signature.isValid(url: url, form: [], headers: headers("cmIGasrBgwvNTedhK7hst5F5WSo=")))
  }

  @Test func `of a repeated name each distinct value counts once, in order`() {
    let repeated = signature.sign(url: "https://e.org/", form: [("A", "2"), ("B", "x"), ("A", "1"), ("A", "2")])
    #expect(repeated == signature.sign(url: "https://e.org/A1A2Bx", form: []))
  }

  @Test func `a JSON body is checked against its digest in the URL`() {
    let url =
      "https://gw.example.org/hooks/json"
      + "?bodySHA256=6d398a41e59df201434cfcdbf991903da1108ca0489250801e4240aec1654945"
    let sent = headers("eRyI0zXGUZOHrJpboKvzpPOxlVk=")
    #expect(signature.isValid(url: url, body: "{\"a\":1,\"text\":\"ol\u{e9}\"}".utf8, headers: sent))
    #expect(!signature.isValid(url: url, body: "{\"a\":1,\"text\":\"ol\u{e9}\"} ".utf8, headers: sent))
    #expect(!signature.isValid(url: "https://gw.example.org/hooks/json", body: [], headers: sent))
  }

  @Test func `anything that differs is refused`() {
    var changed = form
    changed[4].value += " "
    let right = headers("ASpHHcZCMe9MO39O5zJsYkLx7ak=")
    #expect(!signature.isValid(url: url, form: changed, headers: right))
    #expect(!signature.isValid(url: url + "0", form: form, headers: right))
    #expect(!signature.isValid(url: url, form: form, headers: [:]))
    #expect(!signature.isValid(url: url, form: form, headers: headers("")))
    let other = WebhookSignature(authToken: Secret("0123456789abcdef0123456789abcdee"))
    #expect(!other.isValid(url: url, form: form, headers: right))
  }

  @Test func `a shared key signs with SHA-256, and only where it is configured`() throws {
    let shared = WebhookSignature(
      authToken: Secret("another"), sharedKeys: ["k1": Secret("0123456789abcdef0123456789abcdef")])
    let sent = "Bqqcah+BxYd53QNDaGRAzhsxjsbvMQfRma0E9D5F+HA="
    #expect(shared.sign(url: url, form: form, sharedKey: "k1") == sent)
    let rule: HTTPHeaders = [
      "X-Twilio-Signature": sent, "X-Twilio-Webhooks-Signature-Settings": "key=k1,algorithm=HMAC_SHA256",
    ]
    #expect(shared.isValid(url: url, form: form, headers: rule))
    #expect(!signature.isValid(url: url, form: form, headers: rule))
    for settings in ["key=k1,algorithm=HMAC_SHA1", "key=k2,algorithm=HMAC_SHA256", "algorithm=HMAC_SHA256", "", "x"] {
      var other = rule
      other.set("X-Twilio-Webhooks-Signature-Settings", settings)
      #expect(!shared.isValid(url: url, form: form, headers: other), "\(settings)")
    }
  }
}
