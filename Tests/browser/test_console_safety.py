"""The console's token, its secrets, hostile names, other sites; keyboard, screen readers, phones, languages."""
import json
import re
import urllib.parse

import pytest
from acts import eventually, expect, stays
from axe_playwright_python.sync_playwright import Axe
from consoles import MARKUP, VIEWS, busy, dead, desk, live, relayed, rows  # noqa: F401
from relay import READ_TOKEN, SECRETS, TOKEN, Relayed

LONG = 90_000
READS = ["session", "status", "history", "configuration", "events?limit=500", "dead?limit=500"]


def test_the_token_is_asked_for_and_kept_only_for_this_tab(desk, busy):
    page = desk.page()
    page.goto(f"{busy.url}/?view=lanes")
    field = page.get_by_label("Token")
    expect(field).to_be_focused()
    assert field.get_attribute("type") == "password"
    expect(page.locator("#app")).to_be_hidden()
    field.fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text(re.compile("needs the relay's token"))
    field.fill(TOKEN)
    field.press("Enter")
    live(page)
    expect(page.get_by_role("heading", name="Lanes")).to_be_visible()
    assert TOKEN not in page.url
    assert page.context.cookies() == []
    assert TOKEN not in json.dumps(page.evaluate("({ ...localStorage })"))
    page.reload()
    live(page)
    other = desk.page()
    other.goto(busy.url)
    expect(other.get_by_label("Token")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0
    assert page.locator("#view").inner_text() == ""
    page.reload()
    expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize("place", ["?token=", "?view=dead&token=", "#token="])
def test_a_token_in_the_address_leaves_it_at_once(desk, busy, place):
    page = desk.page()
    page.goto(f"{busy.url}/{place}{TOKEN}")
    live(page)
    assert TOKEN not in page.url and "token" not in page.url
    page.get_by_role("link", name="Events").click()
    assert "token" not in page.url


def test_no_answer_and_no_page_holds_a_secret(desk, busy):
    for path in READS + ["trace?id=dead-1", "../status", "../dead", "../metrics", "../readyz", "../"]:
        status, headers, body = busy.ask("GET", urllib.parse.urljoin("/api/", path))
        assert status == 200, path
        text = body.decode() + str(headers)
        for secret in SECRETS:
            assert secret not in text, f"{secret} in {path}"
    page = desk.open(busy)
    for view in VIEWS:
        page.locator(f".tabs a[href='{'/' if view == 'overview' else f'/?view={view}'}']").click()
        expect(page.locator("#view h2").first).to_be_visible()
        content = page.content()
        for secret in SECRETS:
            assert secret not in content, f"{secret} in {view}"


def test_actions_need_the_token_that_may_and_come_from_nowhere_else(dead):
    def post(path, token=TOKEN, **headers):
        return dead.ask("POST", f"/api/{path}", {"ids": [1]}, token=token, **headers)[0]
    for path in ("dead/retry", "dead/drop"):
        assert post(path, token=None) == 401
        assert post(path, token="wrong") == 401
        assert post(path, token=READ_TOKEN) == 403
        assert post(path, Origin="https://evil.example") == 403
        assert post(path, Origin="null") == 403
        assert post(path, Sec_Fetch_Site="cross-site") == 403
        assert post(path, Sec_Fetch_Site="same-site") == 403
        assert post(path, Content_Type="text/plain") == 400
        assert dead.ask("GET", f"/api/{path}")[0] == 404
    assert dead.get("dead")["count"] == 40


def test_a_page_of_another_site_can_do_nothing(desk, busy, relayed):
    """Another origin with the very token in its hands."""
    page = desk.page()
    page.goto(f"{relayed.url}/healthz")
    answers = page.evaluate("""async ([url, token]) => {
      const tries = [
        [`${url}/api/status`, { headers: { Authorization: `Bearer ${token}` } }],
        [`${url}/api/dead/drop`, { method: 'POST', body: '{"newest":99999}', headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' } }],
        [`${url}/api/dead/drop`, { method: 'POST', body: '{"newest":99999}', mode: 'no-cors', credentials: 'include' }],
      ];
      return Promise.all(tries.map(([address, options]) => fetch(address, options).then((answer) => answer.type, () => 'failed')));
    }""", [busy.url, TOKEN])
    assert answers[:2] == ["failed", "failed"]
    assert answers[2] in ("opaque", "failed")
    assert busy.get("dead")["count"] == 63
    framed = page.evaluate("""(url) => new Promise((done) => {
      const frame = document.createElement('iframe');
      frame.src = url;
      frame.onload = () => { try { done(frame.contentDocument === null); } catch { done(true); } };
      document.body.append(frame);
    })""", busy.url)
    assert framed
    desk.problems[:] = [each for each in desk.problems if "frame-ancestors" not in each and "CORS" not in each
                        and "X-Frame-Options" not in each and "chrome-error" not in each and "Framing" not in each]


def test_hostile_names_stay_text_in_every_list(desk, busy):
    page = desk.page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    desk.open(busy, page=page)
    seen = ""
    for view in VIEWS:
        page.locator(f".tabs a[href='{'/' if view == 'overview' else f'/?view={view}'}']").click()
        expect(page.locator("#view h2").first).to_be_visible()
        if view == "overview":
            page.locator("[data-bridge=odd] summary").click()
        if view in ("events", "dead", "settings", "lanes"):
            expect(rows(page).first).to_be_visible()
        text = page.locator("#view").inner_text()
        seen += text
        assert "\u202e" not in text, view
        assert page.locator("#view img, #view iframe, #view script").count() == 0
    assert MARKUP in seen
    page.goto(f"{busy.url}/?view=events&id={urllib.parse.quote(MARKUP)}-1")
    expect(page.locator(".trace .deliveries > li")).to_contain_text("too many bytes")
    page.locator(".trace").get_by_role("button", name="Show the text").click()
    expect(page.locator(".said")).to_contain_text(MARKUP)
    page.goto(f"{busy.url}/?view={urllib.parse.quote(MARKUP)}&bridge={urllib.parse.quote(MARKUP)}")
    live(page)
    page.goto(f"{busy.url}/?view=dead&bridge={urllib.parse.quote(MARKUP)}&text={urllib.parse.quote(MARKUP)}")
    live(page)
    expect(page.locator("select[name=bridge]")).to_have_value(MARKUP)
    assert page.title() != "hacked"
    assert {urllib.parse.urlsplit(url).netloc for url in asked} == {urllib.parse.urlsplit(busy.url).netloc}
    assert not [url for url in asked if url.endswith("/x")]


# MARK: Keyboard, screen readers


def screens(page, relay):
    """Each screen in turn."""
    yield "overview"
    page.locator("[data-bridge=ring] summary").click()
    yield "map as table"
    page.get_by_role("button", name="Send a test message").first.click()
    yield "test message"
    page.keyboard.press("Escape")
    for view in VIEWS[1:]:
        page.locator(f".tabs a[href='/?view={view}']").click()
        expect(rows(page).first).to_be_visible()
        yield view
    page.goto(f"{relay.url}/?view=events&id=dead-1")
    expect(page.locator(".deliveries > li").first).to_be_visible()
    page.locator(".trace").get_by_role("button", name="Show the text").click()
    expect(page.locator(".said")).to_be_visible()
    yield "trace"
    page.goto(f"{relay.url}/?view=dead")
    page.get_by_role("button", name="Drop all matching").click()
    yield "question"
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Sign out").click()
    yield "sign-in"


@pytest.mark.parametrize("scheme,phone", [("light", False), ("dark", False), ("light", True)])
def test_axe_finds_nothing(desk, busy, scheme, phone):
    size = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True} if phone else {}
    page = desk.open(busy, color_scheme=scheme, **size)
    axe = Axe()
    found = []
    for screen in screens(page, busy):
        result = axe.run(page, options={"resultTypes": ["violations"]})
        for violation in result.response["violations"]:
            nodes = [f"{node['html'][:150]} {node.get('failureSummary', '')[:200]}" for node in violation["nodes"][:3]]
            found.append(f"{screen}: {violation['impact']} {violation['id']}: {nodes}")
    assert not found, "\n".join(found)


def test_everything_can_be_done_with_the_keyboard_alone(desk, dead):
    page = desk.open(dead)
    press = page.keyboard.press

    def tab_to(name):
        for _ in range(60):
            press("Tab")
            if page.evaluate("document.activeElement.getAttribute('aria-label') || document.activeElement.textContent").startswith(name):
                return
        raise AssertionError(f"{name} is not reached")
    press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    press("Enter")
    expect(page.locator("#view")).to_be_focused()
    tab_to("Send a test message")
    press("Enter")
    expect(page.locator("dialog")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("button", name="Send a test message")).to_be_focused()
    page.locator("body").evaluate("() => document.activeElement.blur()")
    tab_to("Dead letters")
    press("Enter")
    expect(rows(page)).to_have_count(40)
    tab_to("Select delivery")
    press("Space")
    expect(page.get_by_role("button", name="Drop selected (1)")).to_be_enabled()
    tab_to("Retry delivery")
    press("Enter")
    expect(rows(page)).to_have_count(39)
    tab_to("Trace")
    press("Enter")
    expect(page.locator(".trace h2")).to_be_focused()


def test_only_what_changes_is_spoken(desk, relayed):
    page = desk.open(relayed)
    stays(page, "document.querySelector('#status').textContent === ''", 1500)
    relayed.pusher.stop()
    for number in range(4):
        relayed.say(f"unheard {number}")
    expect(page.locator("#status")).to_have_text(re.compile("error"), timeout=LONG)
    assert page.locator("#app [aria-live], #app [role=status], #app [role=alert]").count() == 0


def test_states_are_words_shapes_and_colours(desk, busy):
    expected = {
        "light": {"ok": "rgb(30, 107, 46)", "warning": "rgb(122, 75, 0)", "error": "rgb(176, 0, 32)", "unknown": "rgb(74, 85, 96)"},
        "dark": {"ok": "rgb(143, 227, 161)", "warning": "rgb(255, 207, 112)", "error": "rgb(255, 180, 171)", "unknown": "rgb(184, 196, 210)"},
    }
    for scheme, colours in expected.items():
        page = desk.open(busy, color_scheme=scheme)
        panel = page.locator(".card").first.evaluate("(card) => getComputedStyle(card).backgroundColor")
        assert panel == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(22, 32, 44)")
        found = page.evaluate("""async () => {
          const { stateMark } = await import('/console/dom.js');
          return Object.fromEntries(['ok', 'warning', 'error', 'unknown'].map((state) => {
            const mark = stateMark(state, state);
            document.querySelector('.card').append(mark);
            return [state, [getComputedStyle(mark).color, mark.textContent, mark.querySelector('path').getAttribute('d')]];
          }));
        }""")
        assert {state: each[0] for state, each in found.items()} == colours
        assert all(each[1] == state for state, each in found.items())
        assert len({each[2] for each in found.values()}) == 4


# MARK: Phones, languages, many of everything


@pytest.mark.parametrize("locale", ["en-GB", "ja-JP"])
def test_nothing_scrolls_sideways_on_a_small_phone(desk, busy, locale):
    page = desk.open(busy, viewport={"width": 320, "height": 640}, is_mobile=True, has_touch=True, locale=locale)
    for view in VIEWS:
        page.locator(f".tabs a[href='{'/' if view == 'overview' else f'/?view={view}'}']").click()
        expect(page.locator("#view h2").first).to_be_visible()
        if view in ("events", "dead", "settings", "lanes"):
            expect(rows(page).first).to_be_visible()
        eventually(page, "document.documentElement.scrollWidth <= innerWidth", f"{view} fits")
        small = page.eval_on_selector_all("button, select, input, .quiet, .tabs a, summary", """(all) => all
          .filter((each) => each.checkVisibility() && !each.closest('.unseen') && !each.closest('thead'))
          .map((each) => [each.outerHTML.slice(0, 80), (each.closest('label') ?? each).getBoundingClientRect()])
          .filter(([, box]) => box.width > 0 && (box.width < 24 || box.height < 28))""")
        assert not small, (view, small)


def test_both_languages_say_the_same_things(desk, busy):
    def keys(lang):
        page = desk.open(busy, query={"lang": lang})
        assert page.evaluate("document.documentElement.lang") == lang
        return page, page.evaluate("""async () => {
          const { words } = await import('/console/vocabulary.js');
          const names = (value, path) => value && typeof value === 'object'
            ? Object.entries(value).flatMap(([key, each]) => names(each, `${path}.${key}`)) : [`${path} ${typeof value}`];
          return names(words, '').sort();
        }""")
    _, english = keys("en")
    page, japanese = keys("ja")
    assert english == japanese
    expect(page.locator(".verdict")).to_have_text(re.compile("注意"))
    expect(page.locator(".tabs a").nth(3)).to_have_text(re.compile("配信不能"))
    page.locator(".tabs a").nth(2).click()
    assert "lang=ja" in page.url
    used = page.evaluate("""async () => {
      const files = ['console', 'dead', 'events', 'health', 'lanes', 'map', 'overview', 'plot', 'probe', 'settings', 'trace'];
      const texts = await Promise.all(files.map(async (name) => (await fetch(`/console/${name}.js`)).text()));
      return [...new Set(texts.join('').match(/\\bt\\('\\w+'/g).map((each) => each.slice(3, -1)))];
    }""")
    missing = [key for key in used if not any(each.startswith(f".{key} ") for each in english)]
    assert not missing


def test_two_hundred_lanes(desk, tmp_path):
    bridges = "".join(f"  b{number}: {{ between: [\"here:room-{number}\", \"site:room-{number}\"] }}\n" for number in range(100))
    relay = Relayed(tmp_path, bridges).start()
    try:
        relay.eventually(relay.connected, "connected")
        page = desk.open(relay, "lanes")
        expect(rows(page)).to_have_count(200)
        message = relay.say("one of many", "room-77")
        relay.eventually(lambda: relay.settled(message))
        page.get_by_role("link", name="Overview").click()
        expect(page.locator(".bridge:visible")).to_have_count(12)
        page.get_by_role("button", name="Show all 100 bridges").click()
        expect(page.locator(".bridge:visible")).to_have_count(100)
        # Its status is one answer of bounded size, and the page keeps up with it.
        assert len(relay.ask("GET", "/api/status")[2]) < 60_000
        ticks = page.evaluate("""() => new Promise((done) => {
          let count = 0;
          const observer = new MutationObserver(() => { count += 1; if (count > 2) { observer.disconnect(); done(count); } });
          observer.observe(document.querySelector('.account .since'), { childList: true, characterData: true, subtree: true });
        })""")
        assert ticks > 2
    finally:
        relay.stop()


def test_nothing_moves_for_who_wants_no_motion_and_colours_may_be_forced(desk, busy):
    page = desk.open(busy, reduced_motion="reduce", forced_colors="active")
    assert page.evaluate("document.getAnimations().length") == 0
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    expect(page.locator(".shape").first).to_be_visible()
