"""What the console shows: accounts, lanes, events, traces, the map, test messages."""
import re

from acts import eventually, expect, stays
from consoles import busy, dead, desk, live, relayed, rows  # noqa: F401
from relay import READ_TOKEN

LONG = 90_000


def card(page, account):
    return page.locator(f"[data-account={account}]")


def test_a_relay_that_is_well_says_so_in_the_first_line(desk, relayed):
    message = relayed.say("hello")
    relayed.eventually(lambda: relayed.settled(message))
    page = desk.open(relayed)
    # The facade was started before the relay: no gap, no dead letter, nothing that waits.
    expect(page.locator("h1.verdict")).to_have_text("All is well", timeout=LONG)
    expect(page.locator(".troubles li")).to_have_count(0)
    assert page.locator("h1").first.inner_text() == "All is well"
    here = card(page, "here")
    expect(here.locator(".state")).to_have_text("Connected")
    expect(here.locator(".since")).to_have_text(re.compile(r"^for \d"))
    expect(here.locator("dd:not(.rate)").first).to_have_text(re.compile(r"\d\d:\d\d:\d\d.* ago$"))
    expect(card(page, "site").locator("dd:not(.rate)").last).to_have_text(re.compile(r"\d\d:\d\d:\d\d.* ago$"))
    expect(page.locator("figure.plot")).to_have_count(3)
    expect(page.locator("figure.plot svg").first).to_have_attribute("aria-label", re.compile("^Received: now .*, at most "))


def test_an_outage_is_an_account_error_and_a_lane_that_grows_older(desk, relayed):
    page = desk.open(relayed)
    expect(card(page, "site").locator(".state")).to_have_text("Connected")
    relayed.pusher.stop()
    for number in range(4):
        relayed.say(f"unheard {number}")
    expect(card(page, "site").locator(".state")).to_have_class("state error", timeout=LONG)
    expect(card(page, "site").locator(".reason")).to_have_text(re.compile("Last error"))
    expect(card(page, "site").locator(".remedy")).to_have_text(re.compile("goes on trying"))
    # Worst first: in the first line, in the list of what is wrong, and among the accounts.
    expect(page.locator(".verdict")).to_have_class("verdict error")
    expect(page.locator(".verdict")).to_have_text(re.compile(r"^\d error"))
    expect(page.locator(".troubles li").first).to_have_text(re.compile("Account site"))
    expect(page.locator(".account").first).to_have_attribute("data-account", "site")
    assert page.title().startswith("1 error")
    # That it is tried again and again hides nothing.
    stays(page, lambda: card(page, "site").locator(".state").get_attribute("class") == "state error", 4000)
    assert "less than" not in card(page, "site").locator(".since").inner_text()
    # The map shows both directions as broken.
    eventually(page, "[...document.querySelectorAll('.bridge .leg')].every((leg) => leg.dataset.state === 'error')")

    page.get_by_role("link", name="Lanes").click()
    lane = rows(page).filter(has_text="site:chatroom")
    age = lane.locator("td[data-title='Oldest waits']")
    first = eventually(page, lambda: int(re.match(r"(\d+) s$", age.inner_text())[1]) if re.match(r"\d+ s$", age.inner_text()) else 0)
    eventually(page, lambda: re.match(r"(\d+) s$", age.inner_text()) and int(age.inner_text().split()[0]) > first)
    expect(lane.locator("td[data-title='Pending']")).to_have_text("4")
    expect(lane.locator("td[data-title='Next attempt']")).to_have_text(re.compile(r"^(now|in \d+)"))
    expect(lane.locator(".reason")).to_have_text(re.compile("does not accept connections"))
    # After half a minute the age alone is a warning, after five minutes an error.
    relayed.age(30)
    expect(lane.locator(".state")).to_have_text("Warning", timeout=LONG)
    relayed.age(300)
    expect(lane.locator(".state")).to_have_text("Error", timeout=LONG)
    assert rows(page).first.inner_text().find("site:chatroom") >= 0

    relayed.start_pusher()
    expect(lane.locator("td[data-title='Pending']")).to_have_text("0", timeout=LONG)
    expect(lane.locator("td[data-title='Oldest waits']")).to_have_text("–")


def test_after_fifteen_seconds_of_silence_everything_is_unknown(desk, relayed):
    page = desk.page()
    page.clock.install()
    desk.open(relayed, page=page)
    relayed.relay.pause()
    page.clock.fast_forward(15_500)
    expect(page.locator(".verdict")).to_have_text("Nothing heard from the relay", timeout=LONG)
    expect(page.locator(".verdict")).to_have_class("verdict unknown")
    expect(page.locator(".fresh")).to_have_text(re.compile(r"^Last heard \d+ s ago"))
    assert int(re.search(r"\d+", page.locator(".fresh").inner_text())[0]) >= 15
    for state in page.locator("#view .state").all():
        expect(state).to_have_text("Unknown")
    assert set(page.eval_on_selector_all(".node, .leg", "(all) => all.map((each) => each.dataset.state)")) == {"unknown"}
    page.get_by_role("link", name="Lanes").click()
    for state in page.locator("#view .state").all():
        expect(state).to_have_text("Unknown")
    relayed.relay.pause(False)
    live(page)
    expect(page.locator("#view .state").first).to_have_text("Well")


def test_a_relay_that_starts_again_is_followed_again(desk, relayed):
    page = desk.page()
    page.clock.install()
    desk.open(relayed, page=page)
    relayed.relay.stop()
    page.clock.fast_forward(15_500)
    expect(page.locator(".verdict")).to_have_class("verdict unknown", timeout=LONG)
    relayed.start_relay()
    live(page)
    message = relayed.say("after the start")
    page.get_by_role("link", name="Events").click()
    expect(rows(page).filter(has_text=str(message))).to_be_visible(timeout=LONG)


def test_a_relay_that_is_down_is_told_once_and_not_in_a_dialog_each_second(desk, relayed):
    relayed.pusher.stop()
    relayed.say("unheard")
    page = desk.open(relayed, "events")
    # Under way, so that the list is asked for again and again.
    expect(page.locator("#view .state").first).to_have_text("0 of 1", timeout=LONG)
    failed = []
    page.on("requestfailed", lambda request: "/api/events" in request.url and failed.append(request.url))
    relayed.relay.stop()
    expect(page.locator(".verdict")).to_have_class("verdict unknown", timeout=LONG)
    assert failed
    expect(page.locator("dialog")).to_have_count(0)


def test_events_come_live_and_a_trace_is_found_by_a_copy(desk, relayed):
    page = desk.open(relayed, "events")
    expect(page.locator("#view .note")).to_have_text("Nothing was received yet.")
    message = relayed.say("the words of ada")
    row = rows(page).filter(has_text=message)
    expect(row.locator(".state")).to_have_text("1 of 1", timeout=LONG)
    expect(row.locator(".state")).to_have_class("state ok")
    copy = relayed.get(f"trace?id={message}")["messages"][0]["copies"][0]["id"]
    assert copy != message
    box = page.get_by_label("Id of a message, a copy, an event or a delivery")
    box.fill(copy)
    box.press("Enter")
    trace = page.locator(".trace")
    expect(trace.locator("h3")).to_have_text(re.compile(f"Original.*{message}.*here:lobby"))
    expect(trace.locator(".rules")).to_have_text(re.compile("lobby carries messages, edits"))
    expect(trace.locator(".deliveries > li")).to_have_text(re.compile("done.*lobby → site:chatroom.*Attempts: 1"))
    expect(trace.locator(".copies li")).to_have_text(re.compile(f"site:chatroom.*{re.escape(copy)}"))
    expect(trace.locator("h2")).to_be_focused()
    # The address names what is shown; what people wrote is shown on a click and not before.
    assert copy in page.evaluate("decodeURIComponent(location.search)")
    assert "the words of ada" not in page.content()
    trace.get_by_role("button", name="Show the text").click()
    expect(trace.locator(".said")).to_have_text("the words of ada")
    expect(trace.locator(".said")).to_be_focused()
    page.go_back()
    expect(trace).to_be_hidden()


def test_a_trace_tells_attempts_and_errors_and_is_found_by_a_delivery(desk, dead):
    page = desk.open(dead, "dead")
    page.get_by_role("link", name="Trace dead-7", exact=True).click()
    trace = page.locator(".trace")
    expect(trace.locator(".deliveries > li")).to_have_text(re.compile("failed for good.*number 7 is refused"))
    expect(trace.locator(".deliveries .attempts")).to_have_text(re.compile("Attempts: 3"))
    delivery = trace.locator("[data-delivery]").get_attribute("data-delivery")
    page.locator("input[name=id]").fill(delivery)
    page.get_by_role("button", name="Find").click()
    expect(page.locator(f".trace [data-delivery='{delivery}']")).to_be_visible()
    page.locator("input[name=id]").fill("no such id")
    page.get_by_role("button", name="Find").click()
    expect(trace.locator(".note")).to_have_text("The journal knows nothing of this id.")


def test_the_map_says_what_its_table_says(desk, busy):
    page = desk.open(busy)
    for name, addresses, legs in [("lobby", 2, 2), ("odd", 3, 2), ("ring", 4, 12)]:
        bridge = page.locator(f"[data-bridge={name}]")
        expect(bridge.locator(".node")).to_have_count(addresses)
        expect(bridge.locator(".leg")).to_have_count(legs)
        bridge.get_by_text("As a table").click()
        expect(bridge.locator("tbody tr")).to_have_count(legs)
        drawn = bridge.locator(".leg").evaluate_all("(legs) => legs.map((leg) => leg.dataset.state)")
        told = bridge.locator("tbody .state").evaluate_all("(states) => states.map((state) => state.classList[1])")
        assert drawn == told
        # Every arrow has a way and a head, and none lies on another.
        ways = bridge.locator(".way").evaluate_all("(ways) => ways.map((way) => way.getAttribute('d'))")
        assert len(set(ways)) == legs and all(len(way) > 20 for way in ways)
        # One name a box, in full for who points at it.
        assert bridge.locator(".node title").count() == addresses
    assert page.locator("[data-bridge=ring] .map > svg").get_attribute("aria-label").startswith("Map of the bridge ring")


def test_a_test_message_is_confirmed_and_each_leg_is_timed(desk, relayed):
    page = desk.open(relayed)
    page.get_by_role("button", name="Send a test message").click()
    dialog = page.locator("dialog")
    expect(dialog.locator(".ask")).to_have_text("People will see it at here:lobby and site:chatroom.")
    dialog.get_by_role("button", name="Cancel").click()
    assert relayed.get("events") == []
    expect(page.get_by_role("button", name="Send a test message")).to_be_focused()
    page.get_by_role("button", name="Send a test message").click()
    dialog.locator("select").select_option("here:lobby")
    dialog.get_by_role("button", name="Send it").click()
    expect(dialog.locator(".summary")).to_have_text("Arrived at 1 of 1", timeout=LONG)
    for step in ("posted", "received", "leg site:chatroom"):
        expect(dialog.locator(f"[data-step='{step}'] .state")).to_have_text(re.compile(r"^[\d,]+ ms$"))
    dialog.get_by_role("button", name="Close").click()
    assert [event["kind"] for event in relayed.get("events")] == ["message"]


def test_a_test_message_through_a_broken_leg_says_why(desk, relayed):
    page = desk.open(relayed)
    relayed.pusher.stop()
    page.get_by_role("button", name="Send a test message").click()
    dialog = page.locator("dialog")
    dialog.locator("select").select_option("here:lobby")
    dialog.get_by_role("button", name="Send it").click()
    leg = dialog.locator("[data-step='leg site:chatroom']")
    expect(leg.locator(".state")).to_have_class("state error", timeout=LONG)
    expect(leg.locator(".reason")).to_have_text(re.compile("Not there within 30 seconds.*does not accept connections"))
    expect(dialog.locator(".summary")).to_have_text("Arrived at 0 of 1")


def test_times_switch_between_local_and_utc(desk, relayed):
    message = relayed.say("hello")
    page = desk.open(relayed, "events", timezone_id="Asia/Tokyo")
    time = rows(page).filter(has_text=message).locator("time")
    iso = time.get_attribute("datetime")
    hour = int(iso[11:13])
    expect(time).to_have_text(re.compile(f"{(hour + 9) % 24:02}:"))
    page.get_by_role("button", name="Times: local").click()
    expect(time).to_have_text(re.compile(f"{hour:02}:"))
    expect(page.get_by_role("button", name="Times: UTC")).to_be_visible()
    page.reload()
    expect(time).to_have_text(re.compile(f"{hour:02}:"))


def test_who_may_only_look_sees_no_actions(desk, dead):
    page = desk.open(dead, token=READ_TOKEN)
    expect(page.locator(".foot")).to_contain_text("Read only")
    expect(page.locator(".bridge")).to_have_count(1)
    expect(page.get_by_role("button", name="Send a test message")).to_have_count(0)
    page.get_by_role("link", name="Dead letters").click()
    expect(rows(page).first).to_be_visible()
    for name in ("Retry", "Drop"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
    expect(page.locator("input[type=checkbox]")).to_have_count(0)
    expect(page.get_by_role("link", name="Trace").first).to_be_visible()


def test_the_configuration_is_shown_without_secrets(desk, busy):
    page = desk.open(busy, "settings")
    row = rows(page).filter(has_text="accounts.site.secret")
    expect(row.locator("td").first).to_have_text("••••••")
    expect(row.locator("td").last).to_have_text("file, secret")
    expect(rows(page).filter(has_text="relay.image_bytes").locator("td").last).to_have_text("default")
    everything = rows(page).count()
    page.get_by_label("Filter").fill("relay token")
    expect(rows(page)).to_have_count(2)
    assert everything > 15
