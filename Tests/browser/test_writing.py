"""What people write: keys, input methods, drafts, sending, typing."""
import json
import re

import pytest
from acts import PATIENCE, choose, eventually, expect, field, keyboard, open_menu, row, say, sent, texts

POSTS = re.compile(r"/v1/rooms/[^/]+/messages$")


def test_enter_sends_and_shift_enter_breaks(people, service, room):
    page = people.enter(room)
    field(page).press_sequentially("one")
    field(page).press("Shift+Enter")
    field(page).press_sequentially("two")
    before = field(page).bounding_box()["height"]
    field(page).press("Enter")
    sent(page, "one\ntwo")
    assert field(page).input_value() == ""
    assert field(page).bounding_box()["height"] < before
    assert service.messages(room)[-1]["text"] == "one\ntwo"


def test_the_field_grows_to_six_lines_and_then_scrolls(people, room):
    page = people.enter(room)
    heights = []
    for lines in range(1, 10):
        field(page).fill("\n".join(["x"] * lines))
        heights.append(field(page).bounding_box()["height"])
    assert heights[0] < heights[1] < heights[4] < heights[5] == heights[6] == heights[8]
    assert page.locator(".bar").bounding_box()["height"] >= 70


def test_no_enter_of_an_input_method_sends(people, service, room):
    page = people.enter(room)
    field(page).focus()
    keys = keyboard(page)
    def enter(code):
        for kind in ("rawKeyDown", "keyUp"):
            keys.send("Input.dispatchKeyEvent", {
                "type": kind, "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": code})
    keys.send("Input.imeSetComposition", {"text": "かんじ", "selectionStart": 3, "selectionEnd": 3})
    enter(13)
    assert texts(page) == []
    keys.send("Input.insertText", {"text": "漢字"})
    enter(229)
    assert texts(page) == [] and field(page).input_value() == "漢字"
    field(page).press("Enter")
    sent(page, "漢字")
    assert [each["text"] for each in service.messages(room)] == ["漢字"]


@pytest.mark.parametrize("text", ["", "   \n ", "\u2800", "\u200b\u2063\u3164"])
def test_what_cannot_be_seen_is_not_sent(people, room, text):
    page = people.enter(room)
    field(page).fill(text)
    expect(page.locator(".send")).to_be_disabled()
    field(page).press("Enter")
    assert texts(page) == []


def test_a_coarse_pointer_breaks_lines_with_enter_and_sends_with_the_button(people, service, room):
    page = people.enter(room, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 760})
    field(page).tap()
    page.keyboard.type("one")
    page.keyboard.press("Enter")
    page.keyboard.type("two")
    assert field(page).input_value() == "one\ntwo"
    page.locator(".send").tap()
    sent(page, "one\ntwo")


def test_drafts_are_kept_for_each_room_and_through_reloads(people, service, room):
    service.post(f"{room}-b", "x")
    page = people.enter(room)
    field(page).fill("half a thought")
    page.locator(f"[data-room='{room}-b']").click()
    people.ready(page)
    assert field(page).input_value() == ""
    field(page).fill("another")
    page.reload()
    people.ready(page)
    assert field(page).input_value() == "another"
    page.locator(f"[data-room='{room}']").click()
    people.ready(page)
    assert field(page).input_value() == "half a thought"
    field(page).press("Enter")
    sent(page, "half a thought")
    page.reload()
    people.ready(page)
    assert field(page).input_value() == ""


@pytest.mark.parametrize("is_echo_first", [True, False])
def test_echo_and_answer_in_either_order_leave_one_row(people, service, room, is_echo_first):
    page = people.page()
    if not is_echo_first:
        # Holds the socket's frames until the answer was there.
        page.add_init_script("""
          window.held = [];
          const native = Object.getOwnPropertyDescriptor(WebSocket.prototype, 'onmessage');
          Object.defineProperty(WebSocket.prototype, 'onmessage', { ...native, set(handler) {
            native.set.call(this, (event) => window.holding ? held.push(() => handler(event)) : handler(event));
          } });""")
    people.enter(room, page=page)
    answers = []
    if is_echo_first:
        page.route(POSTS, lambda route: answers.append((route, route.fetch())))
    else:
        page.evaluate("window.holding = true")
    say(page, "once")
    assert page.locator(".row.own").count() == 1
    if is_echo_first:
        sent(page, "once")
        for route, answer in answers:
            route.fulfill(response=answer)
    else:
        sent(page, "once")
        page.evaluate("() => { window.holding = false; for (const each of held.splice(0)) each(); }")
    say(page, "twice")
    sent(page, "twice")
    assert texts(page) == ["once", "twice"]
    page.unroute_all(behavior="ignoreErrors")


def hurry(page):
    """Presses Retry, unless the page has tried again by itself meanwhile."""
    page.evaluate("document.querySelector('.resend')?.click()")


def test_a_lost_answer_does_not_send_twice(people, service, room):
    page = people.page()
    page.add_init_script("window.WebSocket = class { close() {} send() {} };")
    people.enter(room, page=page)
    lost = []
    def lose(route):
        if not lost:
            route.fetch()
        lost.append(json.loads(route.request.post_data)["client_id"])
        route.abort()
    page.route(POSTS, lose)
    say(page, "only once")
    expect(page.locator(".row.waiting .failure")).to_contain_text("Not sent yet")
    page.unroute(POSTS)
    hurry(page)
    sent(page, "only once")
    assert len(set(lost)) == 1
    assert [each["text"] for each in service.messages(room)] == ["only once"]


def test_a_refused_message_can_be_retried_and_deleted_and_holds_up_nothing(people, service, room):
    page = people.enter(room)
    page.route(POSTS, lambda route: route.fulfill(
        status=403, json={"error": {"code": "forbidden", "message": "no"}}), times=2)
    say(page, "refused")
    expect(page.locator(".row.failed .failure")).to_contain_text("Not sent")
    say(page, "also refused")
    expect(page.locator(".row.failed")).to_have_count(2)
    say(page, "taken")
    sent(page, "taken")
    row(page, "refused").locator(".resend").click()
    sent(page, "refused")
    row(page, "also refused").locator(".discard").click()
    expect(row(page, "also refused")).to_have_count(0)
    assert [each["text"] for each in service.messages(room)] == ["taken", "refused"]


def test_messages_arrive_in_the_order_in_which_they_were_written(people, service, room):
    page = people.enter(room)
    held = []
    page.route(POSTS, lambda route: held.append(route), times=1)
    for text in ("first", "second", "third"):
        say(page, text)
    eventually(page, lambda: held)
    assert texts(page) == ["first", "second", "third"]
    assert service.room and page.locator(".row.sending").count() == 3
    held[0].continue_()
    sent(page, "third")
    assert [each["text"] for each in service.messages(room)] == ["first", "second", "third"]


def test_what_was_not_sent_survives_a_reload(people, service, room):
    page = people.enter(room)
    page.route(POSTS, lambda route: route.abort())
    say(page, "later")
    expect(page.locator(".row.waiting")).to_have_count(1)
    page.reload()
    people.ready(page)
    expect(row(page, "later")).to_have_count(1)
    page.unroute(POSTS)
    hurry(page)
    sent(page, "later")
    assert [each["text"] for each in service.messages(room)] == ["later"]


def test_a_send_shows_at_once(people, room):
    page = people.enter(room)
    page.route(POSTS, lambda route: None)
    field(page).fill("quick")
    took = page.evaluate("""() => new Promise((done) => {
      const start = performance.now();
      new MutationObserver(() => document.querySelector('.row.sending') && done(performance.now() - start))
        .observe(document.querySelector('#log'), { childList: true, subtree: true });
      document.querySelector('.composer').requestSubmit();
    })""")
    print(f"\na send is shown after {took:.0f} ms")
    assert took < 250
    page.unroute_all(behavior="ignoreErrors")


# Typing

def test_typing_is_told_every_three_seconds_at_most_and_ended_by_sending(people, service, room):
    page = people.page()
    frames = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: frames.append(json.loads(frame))))
    # A clock that goes when the test says so, however slow the machine is.
    page.add_init_script("window.passed = 0; const start = Date.now(); Date.now = () => start + passed;")
    people.enter(room, page=page)

    def typing():
        return [frame["on"] for frame in frames if frame["type"] == "typing"]

    field(page).press_sequentially("a longer sentence")
    eventually(page, lambda: typing() == [True])
    page.evaluate("passed = 2900")
    field(page).press_sequentially(" that")
    page.evaluate("passed = 3100")
    field(page).press_sequentially(" goes on")
    eventually(page, lambda: typing() == [True, True])
    field(page).press("Enter")
    eventually(page, lambda: typing() == [True, True, False])
    field(page).fill("x")
    field(page).fill("")
    eventually(page, lambda: typing() == [True, True, False, True, False])


def test_two_people_talk(people, room):
    bob = people.enter(room)
    ada = people.enter(room, name="ada")
    field(ada).press_sequentially("hi b")
    expect(bob.locator(".typing")).to_have_text("ada is typing…")
    field(ada).fill("hi bob")
    field(ada).press("Enter")
    expect(row(bob, "hi bob")).to_be_visible()
    expect(bob.locator(".typing")).to_have_text("2 members")
    say(bob, "hi ada")
    expect(row(ada, "hi ada")).to_be_visible()
    choose(ada, "hi bob", "edit")
    field(ada).fill("hi, bob")
    field(ada).press("Enter")
    expect(row(bob, "hi, bob").locator(".edited")).to_be_visible()
    expect(row(ada, "hi, bob").locator(".read")).to_have_text("Read")
    open_menu(bob, "hi, bob").locator("[data-emoji='👍']").click()
    expect(row(ada, "hi, bob").locator(".reaction")).to_have_text("👍1")
    choose(ada, "hi, bob", "remove")
    ada.locator(".question .yes").click()
    expect(bob.locator(".row .text").first).to_have_text("Message deleted")


def test_one_person_in_two_places_sees_the_same(people, room):
    one = people.enter(room)
    two = people.enter(room)
    say(one, "from here")
    expect(row(two, "from here")).to_be_visible()
    expect(row(two, "from here")).to_have_class(re.compile("own"))
    say(two, "from there")
    sent(two, "from there")
    expect(row(one, "from there")).to_be_visible()
    assert texts(one) == texts(two)


def test_the_server_is_killed_and_comes_back(people, service, room):
    page = people.enter(room)
    say(page, "before")
    sent(page, "before")
    service.kill()
    say(page, "while it is away")
    expect(page.locator(".row.waiting")).to_have_count(1)
    expect(page.locator(".offline")).to_be_visible()
    service.start()
    page.evaluate("dispatchEvent(new Event('online'))")
    sent(page, "while it is away")
    expect(page.locator(".offline")).to_be_hidden(timeout=PATIENCE)
    service.post(room, "and on")
    expect(row(page, "and on")).to_be_visible(timeout=PATIENCE)
    assert texts(page) == ["before", "while it is away", "and on"]
