"""With the keyboard alone, and for screen readers."""
import re

import pytest
from acts import choose, eventually, expect, field, open_menu, picture, row, say, scroll, sent, stays, texts
from axe_playwright_python.sync_playwright import Axe


def test_everything_can_be_done_with_the_keyboard_alone(people, service, room):
    service.post(room, "hello")
    page = people.enter(room)
    press = page.keyboard.press
    expect(field(page)).to_be_focused()
    page.keyboard.type("mine")
    press("Enter")
    sent(page, "mine")
    press("Shift+Tab")
    press("Shift+Tab")
    # The log is one stop, and begins at the last message.
    expect(row(page, "mine")).to_be_focused()
    press("ArrowUp")
    expect(row(page, "hello")).to_be_focused()
    press("Enter")
    expect(page.locator("[role=menuitem]").first).to_be_focused()
    press("Enter")
    expect(row(page, "hello").locator(".reaction")).to_have_text("👍1")
    expect(row(page, "hello")).to_be_focused()
    press("End")
    expect(row(page, "mine")).to_be_focused()
    press("Enter")
    expect(page.locator("[role=menuitem]").first).to_be_focused()
    press("End")
    press("ArrowUp")
    press("ArrowUp")
    expect(page.locator("[data-action=edit]")).to_be_focused()
    press("Enter")
    expect(field(page)).to_be_focused()
    page.keyboard.type(", better")
    press("Enter")
    expect(row(page, "mine, better")).to_be_visible()
    expect(field(page)).to_be_focused()
    press("Shift+Tab")
    press("Shift+Tab")
    expect(row(page, "mine, better")).to_be_focused()
    press("Enter")
    expect(page.locator("[role=menuitem]").first).to_be_focused()
    press("End")
    press("ArrowUp")
    expect(page.locator("[data-action=remove]")).to_be_focused()
    press("Enter")
    expect(page.locator(".question .yes")).to_be_focused()
    press("Enter")
    expect(page.locator(".row .text").last).to_have_text("Message deleted")
    eventually(page, "document.activeElement.classList.contains('row')")
    press("Home")
    expect(row(page, "hello")).to_be_focused()
    press("Escape")
    expect(field(page)).to_be_focused()


def test_a_menu_takes_the_focus_and_gives_it_back(people, service, room):
    service.post(room, "hello")
    page = people.enter(room)
    row(page, "hello").focus()
    page.keyboard.press("Enter")
    # It is loaded when somebody first asks for it.
    expect(page.locator(".menu [role=menuitem]").first).to_be_focused()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "Home", "End"):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('role')") == "menuitem"
    page.keyboard.press("Escape")
    expect(row(page, "hello")).to_be_focused()
    expect(page.locator(".menu")).to_have_count(0)


def test_a_focused_row_stays_when_it_is_scrolled_away(people, service, room):
    service.fill(room, 400)
    page = people.enter(room)
    row(page, "message 399").focus()
    for _ in range(6):
        height = page.locator("#log").evaluate("(log) => log.scrollHeight")
        scroll(page, 0)
        eventually(page, lambda: page.locator("#log").evaluate("(log) => log.scrollHeight") > height)
    expect(row(page, "message 399")).to_be_focused()
    assert row(page, "message 390").count() == 0
    page.keyboard.press("ArrowUp")
    expect(row(page, "message 398")).to_be_focused()
    expect(row(page, "message 398")).to_be_in_viewport()


def test_only_others_new_messages_are_spoken_once_a_second(people, service, room):
    service.fill(room, 10)
    page = people.enter(room)
    assert page.locator("#log").get_attribute("role") == "log"
    assert page.locator("#log").get_attribute("aria-live") == "off"
    status = page.locator("#status")
    stays(page, lambda: status.inner_text() == "", 1200)
    say(page, "my own")
    sent(page, "my own")
    service.post(room, "news", by="grace")
    expect(status).to_have_text("grace: news")
    page.evaluate("""() => {
      window.spoken = [];
      new MutationObserver(() => spoken.push(status.textContent)).observe(status, { childList: true, characterData: true, subtree: true });
    }""".replace("status", "document.querySelector('#status')"))
    for number in range(3):
        service.post(room, f"more {number}", by="grace")
    expect(status).to_have_text("3 new messages")
    assert page.evaluate("spoken.length") <= 2


def test_the_names_list_is_pointed_at_and_its_size_is_spoken(people, service, room):
    service.join(room, "ada")
    page = people.enter(room)
    box = field(page)
    assert box.evaluate("(box) => box.tagName") == "TEXTAREA" and box.get_attribute("role") is None
    assert box.get_attribute("aria-autocomplete") == "list"
    box.press_sequentially("@")
    listing = page.locator("#names")
    expect(listing).to_be_visible()
    assert box.get_attribute("aria-controls") == "names" and listing.get_attribute("role") == "listbox"
    active = page.locator("#" + box.get_attribute("aria-activedescendant"))
    assert active.get_attribute("role") == "option" and active.get_attribute("aria-selected") == "true"
    expect(page.locator("#status")).to_have_text("2 names")
    expect(box).to_be_focused()


def screens(page, service, room):
    """Each screen in turn."""
    yield "room"
    open_menu(page, "mine")
    yield "menu"
    page.keyboard.press("Escape")
    field(page).fill("@")
    page.locator("#names li").first.wait_for()
    yield "names"
    field(page).fill("")
    choose(page, "mine", "remove")
    yield "question"
    page.locator(".question button").first.click()
    choose(page, "mine", "edit")
    yield "editing"
    page.keyboard.press("Escape")
    page.locator(".find").click()
    page.locator(".search input").fill("mine")
    expect(page.locator(".results button")).to_have_count(1)
    yield "search"
    page.locator(".search .close").click()
    page.locator(".enlarge").click()
    expect(page.locator(".viewer img")).to_be_visible()
    yield "picture"
    page.keyboard.press("Escape")
    page.locator(".sign-out").click()
    page.locator(".sign-in").wait_for()
    yield "sign-in"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(people, service, room, scheme):
    first = service.post(room, "hello https://example.org")
    service.mark(room, "bob", first)
    service.react(room, first, "👍")
    service.post(room, "an answer", reply_to=first["id"], by="grace")
    picture(service, room, text="look")
    page = people.enter(room, color_scheme=scheme)
    expect(page.locator(".picture img")).to_be_visible()
    say(page, "mine")
    sent(page, "mine")
    axe = Axe()
    found = []
    for screen in screens(page, service, room):
        result = axe.run(page, options={"resultTypes": ["violations"]})
        for violation in result.response["violations"]:
            nodes = [f"{node['html'][:150]} {node.get('failureSummary', '')[:200]}" for node in violation["nodes"][:3]]
            found.append(f"{screen}: {violation['impact']} {violation['id']}: {nodes}")
    assert not found, "\n".join(found)
