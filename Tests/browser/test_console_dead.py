"""Dead letters in the console: lists, filters, decisions; and that nothing moves under somebody's hand."""
import re

from acts import eventually, expect, stays
from consoles import busy, dead, desk, live, relayed, rows  # noqa: F401

LONG = 90_000


def numbers(page):
    """The numbers in the reasons, as listed."""
    return [int(number) for number in re.findall(r"number (\d+) is refused", page.locator("#view table").inner_text())]


def count(relay):
    return relay.get("dead")["count"]


def test_the_newest_come_first_and_filters_live_in_the_address(desk, busy):
    page = desk.open(busy, "dead")
    expect(page.locator(".shown")).to_have_text("50 of 63 shown")
    expect(page.locator(".tabs .count")).to_have_text("63")
    listed = numbers(page)
    assert listed == sorted(listed, reverse=True) and len(listed) == 47
    page.get_by_role("button", name="Show more").click()
    expect(rows(page)).to_have_count(63)
    expect(page.get_by_role("button", name="Show more")).to_be_hidden()

    page.get_by_label("Contains").fill("number 5")
    page.get_by_label("Contains").press("Enter")
    expect(page.locator(".shown")).to_have_text("11 of 11 shown")
    page.locator("select[name=to]").select_option("site:chatroom")
    page.locator("select[name=bridge]").select_option("lobby")
    eventually(page, "new URLSearchParams(location.search).get('bridge') === 'lobby'")
    page.reload()
    live(page)
    expect(rows(page)).to_have_count(11)
    expect(page.get_by_label("Contains")).to_have_value("number 5")
    expect(page.locator("select[name=bridge]")).to_have_value("lobby")
    expect(page.locator("select[name=to]")).to_have_value("site:chatroom")
    listed = numbers(page)
    assert listed == sorted(listed, reverse=True)
    page.locator("select[name=bridge]").select_option("ring")
    expect(page.locator("#view .note")).to_have_text("None match.")


def test_a_lane_leads_to_its_dead_letters(desk, busy):
    page = desk.open(busy, "lanes")
    page.get_by_role("link", name="lobby → site:chatroom").click()
    expect(page.locator("select[name=to]")).to_have_value("site:chatroom")
    expect(page.locator(".shown")).to_have_text("50 of 63 shown")


def test_all_that_match_are_retried_after_the_count_was_confirmed(desk, dead):
    page = desk.open(dead, "dead", query={"text": "number 1"})
    expect(rows(page)).to_have_count(11)
    page.get_by_role("button", name="Retry all matching (11)").click()
    expect(page.locator("dialog h2")).to_have_text("Send 11 deliveries again?")
    page.get_by_role("button", name="Cancel").click()
    assert count(dead) == 40
    page.get_by_role("button", name="Retry all matching (11)").click()
    page.locator("dialog").get_by_role("button", name="Retry").click()
    expect(rows(page)).to_have_count(0)
    expect(page.locator("#status")).to_have_text("11 deliveries are sent again.")
    expect(page.locator("#view .note")).to_have_text("None match.")
    assert count(dead) == 29
    # They were sent again, and arrive.
    dead.eventually(lambda: sum(event["settled"] for event in dead.get("events?limit=100")) == 12, "delivered")
    expect(page.locator(".tabs .count")).to_have_text("29", timeout=LONG)


def test_selected_ones_are_dropped_and_the_rest_stays(desk, dead):
    page = desk.open(dead, "dead")
    expect(rows(page)).to_have_count(40)
    boxes = page.locator("tbody input[type=checkbox]")
    boxes.nth(0).check()
    boxes.nth(2).check()
    page.get_by_role("button", name="Drop selected (2)").click()
    expect(page.locator("dialog h2")).to_have_text("Forget 2 deliveries? They are never sent.")
    page.locator("dialog").get_by_role("button", name="Drop").click()
    expect(rows(page)).to_have_count(38)
    assert numbers(page)[:2] == [38, 36]
    assert count(dead) == 38
    expect(page.get_by_role("button", name="Drop selected (0)")).to_be_disabled()
    page.get_by_label("Select all that are shown").check()
    expect(page.get_by_role("button", name="Retry selected (38)")).to_be_enabled()
    page.get_by_label("Select all that are shown").uncheck()
    expect(page.get_by_role("button", name="Retry selected (0)")).to_be_disabled()


def test_one_is_retried_at_once_and_the_next_has_the_focus(desk, dead):
    page = desk.open(dead, "dead")
    expect(rows(page)).to_have_count(40)
    first = rows(page).nth(1)
    second = rows(page).nth(2).locator("button").first
    label = second.get_attribute("aria-label")
    first.get_by_role("button", name="Retry").focus()
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(39)
    eventually(page, lambda: page.evaluate("document.activeElement.getAttribute('aria-label')") == label)
    assert count(dead) == 39


def test_what_somebody_is_at_does_not_move(desk, dead):
    page = desk.open(dead, "dead")
    expect(rows(page)).to_have_count(40)
    button = rows(page).nth(3).get_by_role("button", name="Drop")
    button.focus()
    top = button.bounding_box()["y"]
    dead.bury(3, key="late-{}", first=100)
    expect(page.get_by_role("button", name="Show 3 new")).to_be_visible(timeout=LONG)
    expect(page.locator(".tabs .count")).to_have_text("43")
    assert numbers(page)[0] == 39
    stays(page, lambda: abs(button.bounding_box()["y"] - top) < 1)
    expect(button).to_be_focused()
    page.get_by_role("button", name="Show 3 new").click()
    expect(rows(page)).to_have_count(43)
    assert numbers(page)[:3] == [102, 101, 100]

    # Nor does what is selected.
    box = page.locator("tbody input[type=checkbox]").nth(4)
    box.check()
    page.evaluate("document.activeElement.blur()")
    top = box.bounding_box()["y"]
    dead.bury(1, key="later-{}", first=200)
    expect(page.get_by_role("button", name="Show 1 new")).to_be_visible(timeout=LONG)
    stays(page, lambda: abs(box.bounding_box()["y"] - top) < 1)
    expect(box).to_be_checked()


def test_a_lane_that_is_focused_keeps_its_place(desk, relayed):
    message = relayed.say("first")
    relayed.eventually(lambda: relayed.settled(message), "settled")
    page = desk.open(relayed, "lanes")
    expect(rows(page)).to_have_count(2)
    first = rows(page).first.get_by_role("link")
    assert first.inner_text() == "lobby → here:lobby"
    first.focus()
    top = first.bounding_box()["y"]
    relayed.bury(1)
    expect(rows(page).nth(1).locator(".state")).to_have_text("Warning", timeout=LONG)
    assert rows(page).first.get_by_role("link").inner_text() == "lobby → here:lobby"
    assert abs(first.bounding_box()["y"] - top) < 1
    expect(first).to_be_focused()
    page.evaluate("document.activeElement.blur()")
    expect(rows(page).first.get_by_role("link")).to_have_text("lobby → site:chatroom", timeout=LONG)


def test_a_thousand_dead_letters(desk, dead):
    dead.bury(1000, key="many-{}", first=1000)
    page = desk.open(dead, "dead")
    expect(page.locator(".shown")).to_have_text("50 of 1,040 shown", timeout=LONG)
    for shown in range(100, 1040, 50):
        page.get_by_role("button", name="Show more").click()
        expect(page.locator(".shown")).to_have_text(f"{shown:,} of 1,040 shown")
    listed = numbers(page)
    assert listed == sorted(listed, reverse=True) and len(listed) == 1000
    page.get_by_role("button", name="Drop all matching (1,040)").click()
    expect(page.locator("dialog h2")).to_have_text("Forget 1,040 deliveries? They are never sent.")
    page.locator("dialog").get_by_role("button", name="Drop").click()
    expect(page.get_by_text("No delivery has failed for good.")).to_be_visible(timeout=LONG)
    assert count(dead) == 0
