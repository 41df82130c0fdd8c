"""Notices of the system, for who allowed them and looks elsewhere."""
import pytest
from acts import eventually, expect, row, say, sent, stays

# A browser that says what the test wants, and remembers what it is asked.
FAKE = """
  window.notices = [];
  window.asked = 0;
  window.looking = true;
  document.hasFocus = () => window.looking;
  window.Notification = class {
    static permission = localStorage.getItem('test.permission') ?? 'default';
    static async requestPermission() {
      window.asked += 1;
      window.wasClick = navigator.userActivation.isActive;
      localStorage.setItem('test.permission', Notification.permission = 'granted');
      return 'granted';
    }
    constructor(title, options) { notices.push({ title, ...options, made: this }); }
    close() { this.isClosed = true; }
  };
"""


@pytest.fixture
def page(people, room):
    page = people.page()
    page.add_init_script(FAKE)
    return people.enter(room, page=page)


def notices(page):
    return page.evaluate("notices.map(({ title, body, tag }) => ({ title, body, tag }))")


def test_permission_is_asked_on_a_click_only(page):
    expect(page.locator(".bell")).to_be_visible()
    assert page.evaluate("asked") == 0
    page.locator(".bell").click()
    expect(page.locator(".bell")).to_be_hidden()
    assert page.evaluate("[asked, wasClick]") == [1, True]
    page.reload()
    expect(page.locator(".bell")).to_be_hidden()


def test_notices_come_of_others_messages_while_nobody_looks_one_for_each_room(page, service, room):
    page.locator(".bell").click()
    expect(page.locator(".bell")).to_be_hidden()
    service.post(room, "looked at", by="ada")
    expect(row(page, "looked at")).to_be_visible()
    page.evaluate("window.looking = false")
    say(page, "my own")
    sent(page, "my own")
    service.post(room, "for you\u202e", by="ada", name="Ada")
    service.post(f"{room}-b", "elsewhere", by="grace")
    eventually(page, lambda: len(notices(page)) == 2)
    first, second = notices(page)
    assert (first["title"], first["body"], first["tag"]) == (f"Ada · {room}", "for you", f"ferry:{room}")
    assert (second["body"], second["tag"]) == ("elsewhere", f"ferry:{room}-b")
    # A click on one leads to its room.
    page.evaluate("notices[1].made.onclick()")
    expect(row(page, "elsewhere")).to_be_visible()
    assert page.evaluate("notices[1].made.isClosed")


def test_without_permission_there_are_none(page, service, room):
    page.evaluate("window.looking = false")
    service.post(room, "quiet", by="ada")
    expect(row(page, "quiet")).to_be_visible()
    assert notices(page) == []
