"""What people read: history, places, marks, labels."""
import re

import pytest
from acts import PATIENCE, at_bottom, eventually, expect, picture, png, row, say, scroll, scroll_by, sent, stays, texts, top_of
from proxy import Proxy

# A page of the browser that says what the test wants about being looked at.
LOOKS = """
  window.looking = %s;
  document.hasFocus = () => window.looking;
  window.look = (is) => { window.looking = is; dispatchEvent(new Event(is ? 'focus' : 'blur')); };
"""


def test_while_history_loads_an_overlay_says_so_and_a_failure_offers_retry(people, service, room):
    service.fill(room, 3)
    page = people.page()
    held = []
    page.route(re.compile(r"/messages\?"), lambda route: held.append(route))
    page.goto(people.url(room))
    expect(page.locator(".overlay p")).to_have_text("Loading messages…")
    expect(page.locator(".overlay .spinner")).to_be_visible()
    eventually(page, lambda: held)
    for route in held:
        route.fulfill(status=500, json={"error": {"code": "internal", "message": "no"}})
    expect(page.locator(".overlay p")).to_have_text("The messages could not be loaded.")
    page.unroute(re.compile(r"/messages\?"))
    page.locator(".overlay button").click()
    people.ready(page)
    assert texts(page) == ["message 0", "message 1", "message 2"]


def test_ten_pages_upwards_move_nothing_by_more_than_a_pixel(people, service, room):
    service.fill(room, 600)
    page = people.enter(room)
    assert at_bottom(page)
    expect(row(page, "message 599")).to_be_visible()
    for number in range(10):
        loaded = page.locator("#log").evaluate("(log) => log.scrollHeight")
        gates = []
        page.route(re.compile(r"before="), lambda route: gates.append(route))
        scroll(page, 0)
        eventually(page, lambda: gates, "a request for an older page")
        anchor = page.locator("#log").evaluate("""(log) => {
          const edge = log.getBoundingClientRect().top;
          const row = [...log.querySelectorAll('.row')].find((row) => row.getBoundingClientRect().bottom > edge + 5);
          return { text: row.querySelector('.text').textContent,
            top: row.querySelector('.bubble').getBoundingClientRect().top };
        }""")
        assert len(gates) == 1, "one request at a time"
        gates[0].continue_()
        page.unroute(re.compile(r"before="))
        eventually(page, lambda: page.locator("#log").evaluate("(log) => log.scrollHeight") > loaded + 500, "the page")
        assert abs(top_of(page, anchor["text"]) - anchor["top"]) <= 1, f"page {number}"
    assert page.locator(".row").count() < 300


def test_scrolling_up_reaches_the_first_message_once_each(people, service, room):
    service.fill(room, 260)
    page = people.enter(room)
    seen = set(texts(page))
    for _ in range(400):
        scroll_by(page, -450)
        now = texts(page)
        assert len(now) == len(set(now))
        seen |= set(now)
        if "message 0" in seen and page.locator("#log").evaluate("(log) => log.scrollTop") == 0:
            break
    assert seen == {f"message {number}" for number in range(260)}


@pytest.mark.parametrize("is_at_bottom", [False, True])
def test_a_picture_that_is_loaded_late_moves_nothing(people, service, room, is_at_bottom):
    service.fill(room, 20)
    picture(service, room, text="a picture", data=png(500, 700, noise=room.encode()))
    service.fill(room, 4 if is_at_bottom else 40, first=20)
    page = people.page()
    held = []
    page.route(re.compile(r"/v1/files/"), lambda route: held.append(route))
    people.enter(room, page=page)
    if not is_at_bottom:
        for _ in range(30):
            if row(page, "a picture").count() and top_of(page, "a picture") > -200:
                break
            scroll_by(page, -300)
        top = page.locator("#log").evaluate("""(log) => log.scrollTop
          + log.querySelector('.picture').getBoundingClientRect().bottom - log.getBoundingClientRect().top + 60""")
        scroll(page, top)
    eventually(page, lambda: held, "a request for the picture")
    expect(page.locator(".picture .spinner")).to_have_count(1)
    last = row(page, "message 23" if is_at_bottom else "message 21")
    before = last.bounding_box()["y"]
    held[0].continue_()
    expect(page.locator(".picture img")).to_have_count(1, timeout=PATIENCE)
    assert abs(last.bounding_box()["y"] - before) <= 1
    assert at_bottom(page) == is_at_bottom


def test_anything_that_grows_above_moves_nothing(people, service, room):
    messages = service.fill(room, 60)
    page = people.enter(room)
    scroll(page, page.locator("#log").evaluate("(log) => log.scrollTop - 900"))
    text = page.locator("#log").evaluate("""(log) => [...log.querySelectorAll('.row')].find((row) =>
      row.getBoundingClientRect().top > log.getBoundingClientRect().top + 200).querySelector('.text').textContent""")
    number = int(text.split()[1])
    before = top_of(page, text)
    service.edit(room, messages[number - 9], "much longer " * 60)
    expect(page.locator(".row", has_text="much longer")).to_have_count(1)
    assert abs(top_of(page, text) - before) <= 1


def test_who_reads_history_is_not_moved_and_told_by_a_chip(people, service, room):
    service.fill(room, 60)
    page = people.enter(room)
    scroll(page, page.locator("#log").evaluate("(log) => log.scrollTop - 1000"))
    place = page.locator("#log").evaluate("(log) => log.scrollTop")
    for number in range(3):
        service.post(room, f"news {number}", by="grace")
    expect(page.locator(".chip")).to_have_text("3 new messages")
    assert page.locator("#log").evaluate("(log) => log.scrollTop") == place
    page.locator(".chip").click()
    expect(row(page, "news 0")).to_be_visible()
    expect(page.locator(".chip")).to_be_hidden()
    scroll(page, 200)
    say(page, "mine goes to the bottom")
    sent(page, "mine goes to the bottom")
    eventually(page, lambda: at_bottom(page))


def test_a_room_opens_at_its_unread_line_which_stays(people, service, room):
    messages = service.fill(room, 60)
    service.mark(room, "bob", messages[30])
    page = people.enter(room)
    line = page.locator(".unread-line")
    expect(line).to_have_count(1)
    assert line.evaluate("(line) => line.closest('.row').querySelector('.text').textContent") == "message 31"
    where = page.locator("#log").evaluate("""(log) => (log.querySelector('.unread-line').getBoundingClientRect().top
      - log.getBoundingClientRect().top) / log.clientHeight""")
    assert 0.2 < where < 0.45
    scroll(page, 1e6)
    eventually(page, lambda: service.reads(room).get(("bob", "read")) == messages[59]["id"], "the mark")
    scroll(page, page.locator("#log").evaluate("(log) => log.scrollTop - 1200"))
    expect(page.locator(".unread-line")).to_have_count(1)
    # What is seen arriving is not unread when one comes back.
    scroll(page, 1e6)
    last = service.post(room, "seen arriving")
    expect(row(page, "seen arriving")).to_be_in_viewport()
    eventually(page, lambda: service.reads(room).get(("bob", "read")) == last["id"], "the mark")
    other = next_room(service, room)
    page.locator(f"[data-room='{other}']").click()
    people.ready(page)
    page.locator(f"[data-room='{room}']").click()
    expect(row(page, "seen arriving")).to_be_in_viewport()
    expect(page.locator(".unread-line")).to_have_count(0)


def test_a_few_unread_messages_are_all_in_view(people, service, room):
    messages = service.fill(room, 60)
    service.mark(room, "bob", messages[54])
    page = people.enter(room)
    expect(page.locator(".unread-line")).to_be_in_viewport()
    assert at_bottom(page)
    eventually(page, lambda: service.reads(room).get(("bob", "read")) == messages[59]["id"], "the mark")
    expect(page.locator(".unread-line")).to_be_in_viewport()


def test_marks_are_sent_once_a_second_at_most(people, service, room):
    page = people.enter(room)
    page.evaluate("""() => {
      window.marks = [];
      const original = window.fetch;
      window.fetch = (url, options) => {
        if (options?.method === 'PUT' && String(url).includes('/reads/')) marks.push(performance.now());
        return original(url, options);
      };
    }""")
    last = None
    for number in range(12):
        last = service.post(room, f"news {number}")
        expect(row(page, f"news {number}")).to_be_visible()
    eventually(page, lambda: service.reads(room).get(("bob", "read")) == last["id"], "the mark")
    times = page.evaluate("marks")
    assert all(later - earlier > 990 for earlier, later in zip(times, times[1:])), times


def next_room(service, room):
    service.post(f"{room}-other", "something else")
    return f"{room}-other"


def test_what_is_not_looked_at_is_not_read(people, service, room):
    first = service.post(room, "one")
    service.mark(room, "bob", first)
    page = people.page()
    page.add_init_script(LOOKS % "false")
    people.enter(room, page=page)
    second = service.post(room, "two")
    expect(row(page, "two")).to_be_visible()
    expect(page).to_have_title(re.compile(r"^\(\d+\+?\) "))
    eventually(page, lambda: service.reads(room).get(("bob", "delivered")) == second["id"], "that it is delivered")
    stays(page, lambda: service.reads(room)[("bob", "read")] == first["id"], 900)
    page.evaluate("look(true)")
    eventually(page, lambda: service.reads(room)[("bob", "read")] == second["id"], "the mark")
    badge = page.locator(f"[data-room='{room}'] .badge")
    expect(badge).to_have_count(0)


def test_the_title_counts_what_is_unread(people, service, room):
    page = people.page()
    page.add_init_script(LOOKS % "false")
    people.enter(room, page=page)
    before = unread(page)
    service.post(room, "news")
    eventually(page, lambda: unread(page) == before + 1 or before >= 99)
    page.evaluate("look(true)")
    eventually(page, lambda: unread(page) == before)
    assert page.title().endswith(room)


def unread(page):
    match = re.match(r"\((\d+)\+?\)", page.title())
    return int(match[1]) if match else 0


def test_messages_are_grouped_by_author_day_and_five_minutes(people, service, room):
    noon = 1_790_000_000_000 - 1_790_000_000_000 % 86_400_000 + 10 * 3_600_000
    def at(minutes, by, text):
        return {"author": {"id": by, "name": by}, "text": text, "time": noon + int(minutes * 60_000)}
    service.post_many(room, [
        at(0, "ada", "first"), at(4.9, "ada", "same"), at(5, "ada", "five minutes"), at(6, "grace", "other author"),
        at(6.1, "grace", "same again"), at(24 * 60, "grace", "next day")])
    page = people.enter(room)
    firsts = page.locator(".row.first .text").all_inner_texts()
    assert firsts == ["first", "five minutes", "other author", "next day"]
    assert page.locator(".day").count() == 2
    assert page.locator(".tail").count() == 4
    time = page.locator(".day time").first
    assert time.get_attribute("datetime").endswith("Z") and "CEST" in time.get_attribute("title")


def test_today_becomes_yesterday_at_midnight(people, service, room):
    page = people.page()
    page.clock.install(time="2026-11-30T23:58:30+01:00")
    service.post_many(room, [{"author": {"id": "ada"}, "text": "late", "time": 1_796_079_480_000}])
    people.enter(room, page=page)
    expect(page.locator(".day")).to_have_text("Today")
    page.clock.run_for(70_000)
    expect(page.locator(".day")).to_have_text("Today")
    page.clock.run_for(60_000)
    expect(page.locator(".day")).to_have_text("Yesterday")


def test_the_order_is_the_servers_though_the_clock_is_an_hour_off(people, service, room):
    page = people.page()
    page.add_init_script("const now = Date.now; Date.now = () => now() + 3_600_000;")
    people.enter(room, page=page)
    service.post(room, "one")
    expect(row(page, "one")).to_be_visible()
    say(page, "two")
    sent(page, "two")
    service.post(room, "three")
    expect(row(page, "three")).to_be_visible()
    assert texts(page) == ["one", "two", "three"]
    times = page.locator(".row time").evaluate_all("(times) => times.map((time) => time.dateTime)")
    assert times == sorted(times)


def test_read_and_delivered(people, service, room):
    service.join(room, "ada")
    page = people.enter(room)
    say(page, "have you seen it?")
    mine = sent(page, "have you seen it?")
    expect(mine.locator(".read")).to_have_count(0)
    message = service.messages(room)[-1]
    service.mark(room, "ada", message, "delivered")
    expect(mine.locator(".read")).to_have_text("Delivered")
    service.mark(room, "ada", message)
    expect(mine.locator(".read")).to_have_text("Read")
    service.join(room, "grace")
    service.mark(room, "grace", message)
    expect(mine.locator(".read")).to_have_text("Read 2")


def test_a_gap_is_filled_whatever_happened_in_it(people, service, room):
    proxy = Proxy(service.port)
    old = service.post(room, "to be edited")
    gone = service.post(room, "to be deleted")
    page = people.enter(room, base=proxy.url)
    proxy.cut()
    expect(page.locator(".offline")).to_be_visible()
    service.fill(room, 120)
    service.edit(room, old, "edited meanwhile")
    service.delete(room, gone)
    say(page, "written offline")
    expect(page.locator(".row.waiting")).to_have_count(1)
    proxy.mend()
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(page.locator(".offline")).to_be_hidden()
    sent(page, "written offline")
    seen = set()
    scroll(page, 0)
    for _ in range(60):
        now = texts(page)
        assert len(now) == len(set(now))
        seen |= set(now)
        if at_bottom(page):
            break
        scroll(page, page.locator("#log").evaluate("(log) => log.scrollTop + 400"))
    assert seen == {f"message {number}" for number in range(120)} | {
        "edited meanwhile", "Message deleted", "written offline"}
    proxy.close()


def test_search_finds_what_is_not_loaded_and_returns(people, service, room):
    service.fill(room, 300)
    page = people.enter(room)
    assert row(page, "message 17").count() == 0
    page.locator(".find").click()
    page.locator(".search input").fill("MESSAGE 17")
    expect(page.locator(".search-status")).to_have_text("11 messages")
    page.locator(".results button").last.click()
    expect(row(page, "message 17")).to_be_visible()
    expect(page.locator(".chip")).to_have_text("Go to the latest")
    scroll(page, 1e6)
    expect(row(page, "message 67")).to_have_count(1)
    page.locator(".search .close").click()
    expect(row(page, "message 299")).to_be_visible()
    service.post(room, "100% of_it")
    page.locator(".find").click()
    page.locator(".search input").fill("0% of_")
    expect(page.locator(".results button")).to_have_count(1)
    page.locator(".search input").fill("_of")
    expect(page.locator(".search-status")).to_have_text("Nothing found.")


def test_joins_and_leaves_are_noticed(people, service, room):
    page = people.enter(room)
    service.join(room, "ada", "Ada Lovelace")
    expect(page.locator(".notice")).to_have_text("Ada Lovelace joined")
    expect(page.locator(".typing")).to_have_text("2 members")
    service.leave(room, "ada")
    expect(page.locator(".notice").last).to_have_text("Ada Lovelace left")


def test_who_comes_while_the_members_are_on_their_way_is_one_of_them(people, service, room):
    service.post(room, "hello")
    page = people.page()
    held = []
    page.route(re.compile(r"/members(\?|$)"), lambda route: held.append((route, route.fetch())))
    page.goto(people.url(room))
    eventually(page, lambda: held, "the question for the members")
    service.join(room, "grace", "Grace Hopper")
    expect(page.locator(".notice")).to_have_text("Grace Hopper joined")
    with page.expect_response(re.compile("/reads")):
        for route, answer in held:
            route.fulfill(response=answer)
    # bob, who looks, and grace.
    line = page.locator(".typing")
    expect(line).to_have_text("2 members")
    stays(page, lambda: line.inner_text() == "2 members")


def test_the_list_of_rooms_follows_what_happens(people, service, room):
    page = people.enter(room)
    service.post(f"{room}-b", "psst", by="grace")
    entry = page.locator(f"[data-room='{room}-b']")
    expect(entry.locator(".room-last")).to_have_text("grace: psst")
    expect(entry.locator(".badge")).to_have_text("1")
    entry.click()
    expect(row(page, "psst")).to_be_visible()
    expect(entry.locator(".badge")).to_have_count(0)
    page.locator(".new-room input").fill(f"{room}-c")
    page.locator(".new-room button").click()
    expect(page.locator(".heading h2")).to_have_text(f"{room}-c")
    expect(page.locator(".empty")).to_be_visible()
    say(page, "the first")
    sent(page, "the first")
    assert f"room={room}-c" in page.url


def test_typing_is_shown_until_it_ends(people, service, room):
    page = people.enter(room)
    line = page.locator(".typing")
    height = page.locator(".top").bounding_box()["height"]
    service.type(room, "ada")
    expect(line).to_have_text("ada is typing…")
    assert page.locator(".top").bounding_box()["height"] == height
    service.post(room, "done")
    expect(line).to_have_text("1 member")
    service.type(room, "ada")
    expect(line).to_have_text("ada is typing…")
    expect(line).to_have_text("1 member", timeout=PATIENCE)
    service.type(room, "bob")
    service.type(room, "grace")
    expect(line).to_have_text("grace is typing…")
