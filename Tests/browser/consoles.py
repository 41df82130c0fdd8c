"""Relays with their consoles, and people who look at them. Test modules import these fixtures."""
import json
import os
import re
import urllib.parse

import pytest
from playwright.sync_api import expect

from conftest import PATIENCE, TYPES
from relay import TOKEN, Relayed
from service import PAGES

VIEWS = ["overview", "lanes", "events", "dead", "settings"]
# What strangers name their channels and messages, and services their refusals.
MARKUP = "<img src=x onerror=document.title='hacked'>"
RLO = "evil\u202etxt.exe"


def from_disk(route):
    name = urllib.parse.urlsplit(route.request.url).path.strip("/")
    path = PAGES / (name or "console/console.html")
    if not path.is_file():
        return route.continue_()
    if path.suffix == ".html":
        return route.fulfill(response=route.fetch(), body=path.read_bytes())
    return route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])


class Desk:
    """Opens consoles, each in a browser profile of its own, and looks after what goes wrong in them."""

    def __init__(self, chromium):
        self.chromium = chromium
        self.contexts = []
        self.problems = []

    def page(self, **options):
        context = self.chromium.new_context(**{
            "viewport": {"width": 1200, "height": 800}, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options})
        context.set_default_timeout(PATIENCE)
        if os.environ.get("FERRY_PAGES") == "disk":
            context.route(lambda url: urllib.parse.urlsplit(url).path == "/"
                          or urllib.parse.urlsplit(url).path.startswith("/console/"), from_disk)
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('violation', event.violatedDirective, event.blockedURI))")
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.problems.append(f"{error.message}\n{error.stack}"))
        page.on("console", lambda message: message.type == "error" and "Failed to load resource" not in message.text
                and self.problems.append(message.text))
        return page

    def open(self, relay, view="", token=TOKEN, page=None, query=None, **options):
        """A console that shows what the relay does now."""
        page = page or self.page(**options)
        text = urllib.parse.urlencode({**({"view": view} if view else {}), **(query or {})})
        page.goto(f"{relay.url}/?{text}#token={token}")
        live(page)
        return page


def live(page):
    expect(page.locator("#app")).to_be_visible(timeout=PATIENCE)
    expect(page.locator(".verdict span")).not_to_be_empty(timeout=PATIENCE)
    expect(page.locator(".fresh")).to_have_text(re.compile("^(Live|ライブ)"), timeout=PATIENCE)


def rows(page):
    return page.locator("#view tbody tr")


@pytest.fixture
def desk(chromium):
    desk = Desk(chromium)
    yield desk
    for context in desk.contexts:
        context.close()
    assert not desk.problems, "\n".join(desk.problems)


@pytest.fixture(scope="session")
def busy(tmp_path_factory):
    """A relay that is well but for dead letters; with names that nobody would wish for. Tests change nothing in it."""
    quoted = json.dumps(f"here:{MARKUP}"), json.dumps(f"here:{RLO}")
    relay = Relayed(tmp_path_factory.mktemp("busy"), Relayed.LOBBY + f"""
  odd: {{ from: [{quoted[0]}, {quoted[1]}], to: "site:news" }}
  ring: {{ between: [here:a, here:b, site:c, site:d] }}
""")
    relay.start()
    relay.eventually(relay.connected, "connected")
    for room in ("lobby", MARKUP, RLO):
        message = relay.say(f"{MARKUP} said in {room}", room)
        relay.eventually(lambda: relay.settled(message), f"settled {message}")
    relay.relay.stop()
    relay.bury(60, reason=lambda number: f"bad_request: number {number} is refused: {MARKUP} {RLO}")
    relay.bury(3, reason=lambda number: "too_large: too many bytes", key=MARKUP + "-{}")
    relay.start_relay()
    relay.eventually(relay.connected, "connected again")
    yield relay
    relay.stop()


@pytest.fixture
def relayed(tmp_path):
    """A relay of its own for a test that breaks something."""
    relay = Relayed(tmp_path).start()
    relay.eventually(relay.connected, "connected")
    yield relay
    relay.stop()


@pytest.fixture
def dead(relayed):
    """The same with dead letters, which would be delivered if they were tried again."""
    message = relayed.say("first")
    relayed.eventually(lambda: relayed.settled(message), "settled")
    relayed.bury(40)
    return relayed
