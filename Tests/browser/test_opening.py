"""What goes wrong while a page or a room is opened: services away, answers that break off, tokens that end."""
import re

import pytest
from acts import PATIENCE, eventually, expect, field, row, say, texts

PHONE = {"viewport": {"width": 320, "height": 640}, "locale": "en-US", "has_touch": True, "is_mobile": True}


def sign_in(page, token="owner"):
    form = page.locator(".sign-in")
    form.locator("[name=token]").fill(token)
    form.locator(".primary").click()


def refused(route):
    route.fulfill(status=401, json={"error": {"code": "unauthorized", "message": "no"}})


def test_after_a_second_sign_in_everything_happens_once(people, service, room):
    service.post(room, "hello")
    page = people.enter(room, name="ada", token="adas")
    page.route(re.compile(r"/v1/.*/messages"), refused)
    say(page, "too late")
    page.locator(".sign-in").wait_for()
    page.unroute_all(behavior="ignoreErrors")
    # What still tries behind the form leaves it alone.
    page.locator(".sign-in [name=name]").fill("bob")
    page.locator(".sign-in [name=token]").fill("owner")
    page.wait_for_timeout(1500)
    assert page.locator(".sign-in [name=token]").input_value() == "owner"
    sign_in(page)
    expect(row(page, "hello")).to_be_visible()
    say(page, "only once")
    expect(row(page, "only once")).to_be_visible()
    eventually(page, lambda: [each["text"] for each in service.messages(room)].count("only once") == 1)
    page.wait_for_timeout(500)
    # By who has signed in, and not by who was here before.
    assert [each["author"]["id"] for each in service.messages(room) if each["text"] == "only once"] == ["bob"]
    assert texts(page).count("only once") == 1


def test_a_service_that_is_away_is_tried_until_it_is_there(people, service, room):
    service.post(room, "hello")
    page = people.page()
    page.route(re.compile(r"/v1/"), lambda route: route.abort())
    page.goto(people.url(room))
    expect(page.locator(".overlay button")).to_be_visible()
    assert page.locator(".sign-in").count() == 0
    page.unroute_all(behavior="ignoreErrors")
    expect(row(page, "hello")).to_be_visible()
    expect(page.locator(".room")).not_to_have_count(0)


def test_an_answer_that_breaks_off_can_be_asked_for_again(people, service, room):
    service.post(room, "hello")
    page = people.page()
    page.route(re.compile(r"/messages\?"), lambda route: route.fulfill(
        status=200, content_type="application/json", body='{"messages": [{"id": "1"'))
    page.goto(people.url(room))
    expect(page.locator(".overlay button")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")
    page.locator(".overlay button").click()
    expect(row(page, "hello")).to_be_visible()
    expect(page.locator(".overlay")).to_be_hidden()


def test_what_is_loaded_is_shown_though_nothing_is_heard_of_members(people, service, room):
    service.post(room, "hello")
    page = people.page()
    page.route(re.compile(r"/members"), lambda route: route.abort())
    page.goto(people.url(room))
    expect(row(page, "hello")).to_be_visible()
    expect(page.locator(".overlay")).to_be_hidden()
    page.wait_for_timeout(500)
    expect(page.locator(".overlay")).to_be_hidden()
    page.unroute_all(behavior="ignoreErrors")
    expect(page.locator(".typing")).to_have_text(re.compile(r"\d member"), timeout=PATIENCE)


def test_nothing_can_be_typed_before_it_is_known_where(people, service, room):
    service.post(room, "hello")
    page = people.page()
    held = []
    page.route(re.compile(r"/messages\?"), lambda route: held.append(route))
    page.goto(people.url(room))
    expect(page.locator("#app")).to_be_visible()
    expect(page.locator(".overlay")).to_be_visible()
    assert page.evaluate("document.querySelector('#app').inert")
    eventually(page, lambda: held)
    held[0].continue_()
    expect(row(page, "hello")).to_be_visible()
    field(page).fill("now")
    assert field(page).input_value() == "now"


def test_a_page_that_is_left_while_it_loads_comes_back_signed_in(people, service, room):
    """More is unread than one page holds, and the second is slow."""
    service.fill(room, 120)
    first = service.messages(room)[0]
    service.mark(room, "bob", first)
    page = people.page()
    page.goto(f"{service.url}/chat")
    form = page.locator(".sign-in")
    form.locator("[name=name]").fill("bob")
    form.locator("[name=room]").fill(room)
    held = []
    page.route(re.compile(r"/messages\?limit=(?!50&)"), lambda route: held.append(route))
    sign_in(page)
    eventually(page, lambda: held)
    # The rooms are shown meanwhile.
    expect(page.locator(f".room[data-room='{room}']")).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    people.ready(page)
    expect(page.locator(".unread-line")).to_be_visible()


@pytest.mark.parametrize("width", [320, 390, 730, 1100])
def test_times_that_come_after_the_texts_move_nothing(people, service, room, width):
    for number in range(12):
        service.post(room, f"a text that fills three lines on a telephone, at least on a small one, and says nothing {number}")
    page = people.page(**{**PHONE, "viewport": {"width": width, "height": 640}})
    page.add_init_script("""
      window.shifts = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts += entry.value;
      }).observe({ type: 'layout-shift', buffered: true });
    """)
    people.enter(room, page=page)
    expect(page.locator(".meta time").first).to_have_text(re.compile(r"\d:\d\d.[AP]M"))
    assert page.evaluate("shifts") < 0.02


def test_every_emoji_alone_is_large(people, service, room):
    for text in ("ℹ️", "👍🏽", "1️⃣", "👩‍👩‍👧"):
        service.post(room, text)
    service.post(room, "i")
    page = people.enter(room)
    assert page.locator(".bubble.large").count() == 4


def test_who_signs_out_at_the_first_glance_stays_signed_out(people, service, room):
    service.post(room, "hello")
    page = people.page()
    page.goto(f"{service.url}/chat")
    page.evaluate("""() => new MutationObserver((_, observer) => {
      if (!document.querySelector('.row .text')) return;
      observer.disconnect();
      document.querySelector('.sign-out').click();
    }).observe(document.body, { childList: true, subtree: true })""")
    form = page.locator(".sign-in")
    form.locator("[name=name]").fill("bob")
    form.locator("[name=room]").fill(room)
    with page.expect_navigation():
        sign_in(page)
    page.locator(".sign-in").wait_for()
    page.wait_for_timeout(700)
    assert page.evaluate("sessionStorage.getItem('ferry.token')") is None
