"""Real browsers against a real server. FERRY_PAGES=disk takes the pages' files from the source folder instead of
from the program, so that a change is seen without building."""
import itertools
import os
import re
import urllib.parse

import pytest
from playwright.sync_api import expect, sync_playwright

from service import PAGES, Service

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
# As slow as a busy machine may be.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)
rooms = (f"room-{number}" for number in itertools.count(1))


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    service = Service(tmp_path_factory.mktemp("service"))
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb", "--js-flags=--expose-gc"]
        if os.environ.get("FERRY_PAGES") == "disk":
            # A page that the test hands over counts as one from the internet, which may not talk to this machine.
            arguments.append("--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets")
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def room():
    return next(rooms)


def from_disk(route):
    name = urllib.parse.urlsplit(route.request.url).path.strip("/")
    path = PAGES / {"": "start/start.html", "chat": "chat/chat.html"}.get(name, name)
    if not path.is_file() or path.suffix not in TYPES:
        return route.continue_()
    if path.suffix == ".html":
        return route.fulfill(response=route.fetch(), body=path.read_bytes())
    return route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])


class People:
    """Opens pages for people, each in a browser profile of their own, and looks after what goes wrong in them."""

    def __init__(self, chromium, service):
        self.chromium = chromium
        self.service = service
        self.contexts = []
        self.problems = []

    def context(self, **options):
        context = self.chromium.new_context(**{
            "viewport": {"width": 1100, "height": 700}, "locale": "en-GB", "timezone_id": "Europe/Berlin", **options})
        context.set_default_timeout(PATIENCE)
        if os.environ.get("FERRY_PAGES") == "disk":
            context.route(lambda url: urllib.parse.urlsplit(url).path in ("/", "/chat")
                          or urllib.parse.urlsplit(url).path.startswith(("/chat/", "/start/")), from_disk)
        self.contexts.append(context)
        return context

    def watch(self, page):
        page.on("pageerror", lambda error: self.problems.append(f"{error.message}\n{error.stack}"))
        page.on("console", lambda message: message.type == "error" and "Failed to load resource" not in message.text
                and "WebSocket connection" not in message.text and self.problems.append(message.text))
        return page

    def page(self, **options):
        return self.watch(self.context(**options).new_page())

    def url(self, room, name="bob", base=None, token="owner", **more):
        query = {"room": room, "name": name, "token": token, **more}
        return f"{base or self.service.url}/chat?" + urllib.parse.urlencode(query)

    def enter(self, room, name="bob", page=None, base=None, token="owner", before=None, more=None, **options):
        """A page in a room, loaded."""
        page = page or self.page(**options)
        if before:
            before(page)
        page.goto(self.url(room, name, base, token, **(more or {})))
        self.ready(page)
        return page

    @staticmethod
    def ready(page):
        page.locator(".overlay").wait_for(state="hidden")
        page.locator("#app").wait_for()
        expect(page.locator(".typing")).to_have_text(re.compile(r"\S"), timeout=PATIENCE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    # A failure is understood by what the pages complained about.
    people = item.funcargs.get("people") if hasattr(item, "funcargs") else None
    if report.failed and people and people.problems:
        report.sections.append(("problems on the pages", "\n".join(people.problems)))
    return report


@pytest.fixture
def people(chromium, service):
    people = People(chromium, service)
    yield people
    for context in people.contexts:
        context.close()
    assert not people.problems, "\n".join(people.problems)
