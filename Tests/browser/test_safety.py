"""What strangers write stays text, and what they upload never runs."""
import urllib.parse

import pytest
from acts import choose, eventually, expect, field, picture, png, row, say, scroll, sent, texts

MARKUP = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
VIOLATIONS = """
  window.violations = [];
  document.addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective + event.blockedURI));
"""


def test_markup_in_bodies_and_names_stays_text(people, service, room):
    service.post(room, MARKUP, by=MARKUP, name=MARKUP)
    file = service.upload(b"x", MARKUP)
    service.post(room, "", attachments=[{"file": file["sha256"], "name": MARKUP}])
    page = people.page()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    people.enter(room, page=page)
    assert texts(page) == [MARKUP]
    assert MARKUP in page.locator(".name bdi").first.inner_text()
    expect(page.locator(".file-name")).to_have_text(MARKUP)
    assert page.evaluate("window.broken") is None
    assert not [url for url in requests if url.endswith("/x")]
    assert page.locator("#log img").count() == 0


def test_the_policy_is_strict_and_no_screen_violates_it(people, service, room):
    page = people.page()
    page.add_init_script(VIOLATIONS)
    answer = page.goto(people.url(room))
    policy = answer.headers["content-security-policy"]
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "base-uri 'none'", "form-action 'none'",
                 "require-trusted-types-for 'script'", "trusted-types 'none'", "frame-ancestors"]:
        assert part in policy
    assert "unsafe" not in policy and "*" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    people.ready(page)
    picture(service, room, text="look")
    page.locator(".enlarge").click()
    page.locator(".viewer .shut").click()
    say(page, "@ada: hello https://example.org")
    sent(page, "@ada: hello https://example.org")
    choose(page, "@ada: hello https://example.org", "edit")
    field(page).press("Escape")
    choose(page, "@ada: hello https://example.org", "remove")
    page.locator(".question .yes").click()
    page.locator(".find").click()
    page.locator(".search input").fill("look")
    expect(page.locator(".results button")).to_have_count(1)
    page.locator(".search .close").click()
    page.locator(".composer input[type=file]").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": png(5, 5)})
    page.locator(".upload .detach").click()
    page.locator(".sign-out").click()
    page.locator(".sign-in").wait_for()
    assert page.evaluate("violations") == []
    blocked = page.evaluate("""() => {
      try { document.body.innerHTML = '<b>x</b>'; return 'ran'; } catch (error) { return error.name; }
    }""")
    assert blocked == "TypeError"
    eventually(page, lambda: any("TrustedHTML" in problem for problem in people.problems))
    people.problems.clear()


@pytest.mark.parametrize("text,links", [
    ("javascript:alert(1) data:text/html,x vbscript:x file:///etc/passwd", []),
    ("see https://example.org/a_(b).", ["https://example.org/a_(b)"]),
    ("(https://example.org/a)", ["https://example.org/a"]),
    ("https://example.org/は。次", ["https://example.org/は"]),
    ("「https://example.org/x」です", ["https://example.org/x"]),
    ("https://bank.example@evil.example/", []),
    ("HTTP://EXAMPLE.ORG, mailto:ada@example.org!", ["HTTP://EXAMPLE.ORG", "mailto:ada@example.org"]),
    ("https:// http://[ mailto:x", []),
])
def test_links(people, service, room, text, links):
    service.post(room, text)
    page = people.enter(room)
    assert texts(page) == [text]
    assert page.locator(".text a").all_inner_texts() == links
    for link in page.locator(".text a").all():
        assert urllib.parse.urlsplit(link.get_attribute("href")).scheme in ("http", "https", "mailto")
        assert link.get_attribute("rel") == "noopener noreferrer"


@pytest.mark.parametrize("name,kind,body", [
    ("a.svg", "image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg"><script>top.broken=1</script></svg>'),
    ("a.html", "text/html", b"<script>top.broken=1</script>"),
    ("a.png", "image/png", b"<script>top.broken=1</script>"),
    ("b.png", "image/png", b'<svg xmlns="http://www.w3.org/2000/svg" onload="top.broken=1"/>'),
    ("a.xhtml", "application/xhtml+xml", b'<html xmlns="http://www.w3.org/1999/xhtml"><script>top.broken=1</script></html>'),
])
def test_active_files_are_saved_and_never_shown(people, service, room, name, kind, body):
    file = service.upload(body, name, kind)
    service.post(room, "", attachments=[{"file": file["sha256"], "name": name, "type": kind}])
    page = people.enter(room)
    assert page.locator(".picture").count() == 0
    with page.expect_download() as download:
        page.locator(".file").click()
    assert download.value.suggested_filename == name
    assert open(download.value.path(), "rb").read() == body
    told = page.request.get(service.url + file["url"] + "?token=owner").headers
    assert told["content-disposition"].startswith("attachment") and "sandbox" in told["content-security-policy"]
    assert told["x-content-type-options"] == "nosniff"
    other = people.watch(page.context.new_page())
    answer = service.url + file["url"] + "?token=owner"
    with other.expect_download():
        try:
            other.goto(answer)
        except Exception as error:  # a navigation that became a download is reported as one
            assert "Download is starting" in str(error) or "ERR_ABORTED" in str(error), error
    assert page.evaluate("window.broken") is None


def test_the_token_leaves_the_address_and_is_in_no_cookie(people, service, room):
    page = people.enter(room, token="owner")
    assert "token" not in page.url and f"room={room}" in page.url and "name=bob" in page.url
    assert page.evaluate("document.cookie") == "" and page.context.cookies() == []
    assert page.evaluate("JSON.stringify(localStorage)").find("owner") < 0
    page.reload()
    people.ready(page)
    assert page.locator(".sign-in").count() == 0


def test_signing_in_by_hand(people, service, room):
    page = people.page()
    page.goto(f"{service.url}/chat")
    form = page.locator(".sign-in")
    form.locator("[name=name]").fill("carol")
    form.locator("[name=token]").fill("wrong")
    form.locator("[name=room]").fill(room)
    form.locator("button").click()
    expect(form.locator(".error")).to_have_text("This token is not known here.")
    assert page.locator("#app").is_hidden()
    form.locator("[name=token]").fill("owner")
    form.locator("button").click()
    people.ready(page)
    say(page, "I am in")
    sent(page, "I am in")
    assert service.messages(room)[-1]["author"]["id"] == "carol"


def test_a_token_bound_to_a_user_speaks_as_that_user(people, service, room):
    page = people.enter(room, name="Somebody", token="adas")
    say(page, "hello")
    sent(page, "hello")
    assert service.messages(room)[-1]["author"] == {"id": "ada", "name": "Somebody"}


def test_letters_that_turn_text_around_are_taken_out_of_names(people, service, room):
    service.post(room, "hi", by="evil", name="\u202egnp.ada")
    file = service.upload(b"x", "invoice\u202egpj.exe")
    service.post(room, "", by="evil", name="\u202egnp.ada", attachments=[
        {"file": file["sha256"], "name": "invoice\u202egpj.exe"}])
    service.post(room, "hidden", by="nobody", name="\u2800\u200b\u3164")
    service.post(room, "real", by="grace", name="Grace")
    service.post(room, "false", by="mallory", name="Grаce")
    page = people.enter(room)
    names = page.locator(".name bdi").all_inner_texts()
    assert names == ["gnp.ada", "nobody", "Grace", "Grаce (mallory)"]
    expect(page.locator(".file-name")).to_have_text("invoicegpj.exe")
    with page.expect_download() as download:
        page.locator(".file").click()
    assert download.value.suggested_filename.endswith(".exe") and "\u202e" not in download.value.suggested_filename
    assert page.locator(".text").first.get_attribute("dir") == "auto"


def test_stacked_marks_are_clipped_and_long_bodies_fold(people, service, room):
    service.post(room, "before")
    service.post(room, "Z" + "\u0310\u0337\u0340\u0305" * 60)
    service.post(room, "after")
    service.post(room, "long " * 12_000)
    page = people.enter(room)
    scroll(page, 0)
    expect(page.locator(".row")).to_have_count(4)
    overflow = page.locator(".text").nth(1).evaluate("(text) => getComputedStyle(text).overflowY")
    assert overflow == "clip"
    assert page.locator(".row").nth(1).evaluate("(row) => row.getBoundingClientRect().height") < 120
    long = page.locator(".row").nth(3)
    folded = long.evaluate("(row) => row.getBoundingClientRect().height")
    assert len(long.locator(".text").inner_text()) < 2100
    long.locator(".fold").click()
    eventually(page, lambda: len(long.locator(".text").inner_text()) > 50_000)
    assert long.evaluate("(row) => row.getBoundingClientRect().height") > folded
    long.locator(".fold").click()
    eventually(page, lambda: len(long.locator(".text").inner_text()) < 2100)


def test_only_the_start_page_may_frame_the_chat_page(people, service, room):
    page = people.page()
    start = service.url.rsplit(":", 1)[1]
    answer = page.goto(service.pusher + "/chat")
    assert f"frame-ancestors http://127.0.0.1:{start}" in answer.headers["content-security-policy"]
    assert page.request.get(service.pusher + "/start/panes.json").status == 404
    panes = page.request.get(service.url + "/start/panes.json").json()["panes"]
    assert [pane["title"] for pane in panes] == ["local", "pusher"]
    assert all("token" not in pane for pane in panes)


def test_the_page_of_a_facade_talks_to_its_own_namespace(people, service, room):
    mine = people.enter(room, base=service.pusher)
    say(mine, "on the other side")
    sent(mine, "on the other side")
    theirs = people.enter(room)
    expect(theirs.locator(".empty")).to_be_visible()
    again = people.enter(room, name="carol", base=service.pusher)
    expect(row(again, "on the other side")).to_be_visible()
