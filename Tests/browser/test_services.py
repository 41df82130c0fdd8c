"""The four services side by side, and the official clients of three of them, with a bridge between them all."""
import re

import pytest
from acts import choose, eventually, expect, field, open_menu, png, row, say, sent, texts
from demo import ROOMS, BackendlessSide, Demo, PusherSide, TwilioSide

PANES = list(ROOMS)
VIOLATIONS = """
  window.violations = [];
  document.addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective + event.blockedURI));
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    demo = Demo(tmp_path_factory.mktemp("demo"))
    yield demo
    demo.stop()


class Start:
    """The start page, each pane as a frame that acts work on like on a page."""

    def __init__(self, people, demo, page=None, **options):
        self.page = page or people.page(viewport={"width": 1500, "height": 800}, **options)
        self.page.add_init_script(VIOLATIONS)
        self.page.goto(demo.urls["local"] + "/")
        self.panes = {}
        for title in PANES:
            handle = self.page.locator(f"iframe[title={title}]").element_handle()
            self.panes[title] = handle.content_frame()
            expect(self.panes[title].locator(".typing")).to_have_text(re.compile(r"\S"))
            expect(self.panes[title].locator(".overlay")).to_be_hidden()

    def others(self, title):
        return [(name, pane) for name, pane in self.panes.items() if name != title]


@pytest.mark.timeout(600)
def test_what_is_done_in_one_pane_appears_in_the_others(people, demo, room):
    start = Start(people, demo)
    for number, title in enumerate(PANES):
        pane = start.panes[title]
        text = f"{room} from {title}"
        name = ["ada", "bob", "grace", "kay"][number]
        field(pane).press_sequentially(text)
        for other, view in start.others(title):
            expect(view.locator(".typing"), f"{title}: typing in {other}").to_have_text(
                # Twilio lets nobody type for somebody else.
                "Someone is typing…" if other == "Twilio" else f"{name} is typing…")
        field(pane).press("Enter")
        sent(pane, text)
        for other, view in start.others(title):
            expect(row(view, text), f"{title}: message in {other}").to_have_count(1)
            expect(view.locator(".typing"), f"{title}: typing over in {other}").not_to_have_text(re.compile("typing"))
        field(pane).press("ArrowUp")
        expect(field(pane)).to_have_value(text)
        field(pane).fill(f"{text}, edited")
        field(pane).press("Enter")
        for other, view in start.panes.items():
            expect(row(view, f"{text}, edited").locator(".edited"), f"{title}: edit in {other}").to_be_visible()
            expect(row(view, text)).to_have_count(0)
    assert start.page.evaluate("violations") == []
    for pane in start.panes.values():
        assert pane.evaluate("violations") == []
        found = [text for text in texts(pane) if room in text]
        assert found == [f"{room} from {title}, edited" for title in PANES]


@pytest.mark.timeout(600)
def test_a_picture_appears_in_every_pane(people, demo, room):
    start = Start(people, demo)
    for number, title in enumerate(PANES):
        pane = start.panes[title]
        before = {name: view.locator(".picture img").count() for name, view in start.panes.items()}
        pane.locator(".composer input[type=file]").set_input_files(
            {"name": f"cat{number}.png", "mimeType": "image/png", "buffer": png(40 + number, 30, noise=room.encode())})
        expect(pane.locator(".send")).to_be_enabled()
        field(pane).press("Enter")
        for name, view in start.panes.items():
            expect(view.locator(".picture img"), f"{title}: picture in {name}").to_have_count(before[name] + 1)
            size = view.locator(".picture img").last.evaluate("(image) => [image.naturalWidth, image.naturalHeight]")
            assert size == [40 + number, 30], (title, name)


@pytest.mark.timeout(600)
def test_deletes_and_reactions_cross_where_the_services_have_them(people, demo, room):
    start = Start(people, demo)
    pane = start.panes["Pusher"]
    say(pane, f"{room} to go")
    sent(pane, f"{room} to go")
    local = start.panes["Local"]
    expect(row(local, f"{room} to go")).to_have_count(1)
    open_menu(pane, f"{room} to go").locator("[data-emoji='👍']").click()
    expect(row(local, f"{room} to go").locator(".reaction")).to_have_text("👍1")
    choose(pane, f"{room} to go", "remove")
    pane.locator(".question .yes").click()
    for name, view in start.panes.items():
        expect(row(view, f"{room} to go"), name).to_have_count(0)


def test_nobody_who_joins_is_shown_as_a_message(people, demo, room):
    start = Start(people, demo)
    say(start.panes["Local"], f"{room} hello")
    for view in start.panes.values():
        expect(row(view, f"{room} hello")).to_have_count(1)
        assert not [text for text in texts(view) if re.search(r"^(\w+ )?joined$", text)]


@pytest.mark.timeout(600)
def test_twilios_library_talks_with_the_page(people, demo, room):
    twilio = TwilioSide(demo)
    page = people.enter("lobby", name="ada", base=demo.urls["local"], token="demo-token")
    message = twilio.post("tess", f"{room} from the library")
    expect(row(page, f"{room} from the library")).to_have_count(1)
    twilio.edit(message, f"{room} from the library, edited")
    expect(row(page, f"{room} from the library, edited").locator(".edited")).to_be_visible()
    before = page.locator(".picture img").count()
    twilio.post_picture("tess", png(64, 48, noise=room.encode()), "boat.png")
    expect(page.locator(".picture img")).to_have_count(before + 1)
    say(page, f"{room} from the page")
    sent(page, f"{room} from the page")
    eventually(page, lambda: f"{room} from the page" in twilio.bodies())
    choose(page, f"{room} from the page", "edit")
    field(page).fill(f"{room} from the page, edited")
    field(page).press("Enter")
    eventually(page, lambda: f"{room} from the page, edited" in twilio.bodies())
    message.delete()
    expect(row(page, f"{room} from the library, edited")).to_have_count(0)


@pytest.mark.timeout(600)
def test_pushers_libraries_talk_with_the_page(people, demo, room):
    client = PusherSide(demo)
    page = people.enter("lobby", name="ada", base=demo.urls["local"], token="demo-token")
    view = people.enter("chatroom", name="kay", base=demo.urls["pusher"], token="demo-token")
    client.trigger("user_typing", {"sender": "pete"})
    for each in (page, view):
        expect(each.locator(".typing")).to_have_text("pete is typing…")
    client.trigger("new_message", {"ID": f"{room}-1", "sender": "pete", "text": f"{room} from the library"})
    for each in (page, view):
        expect(row(each, f"{room} from the library")).to_have_count(1)
        expect(each.locator(".typing")).not_to_have_text(re.compile("typing"))
    client.trigger("message_updated", {"ID": f"{room}-1", "sender": "pete", "text": f"{room} edited"})
    for each in (page, view):
        expect(row(each, f"{room} edited").locator(".edited")).to_be_visible()
    link = demo.urls["pusher"] + "/files/" + upload(demo, png(50, 40, noise=room.encode())) + "/dog.png"
    before = [each.locator(".picture img").count() for each in (page, view)]
    client.trigger("new_message", {"ID": f"{room}-2", "sender": "pete", "text": "", "image": link})
    for each, count in zip((page, view), before):
        expect(each.locator(".picture img")).to_have_count(count + 1)
    for number, each in enumerate((page, view)):
        text = f"{room} from page {number}"
        field(each).press_sequentially(text)
        eventually(page, lambda: client.heard("user_typing", sender=["ada", "kay"][number]))
        field(each).press("Enter")
        sent(each, text)
        eventually(page, lambda: len(client.heard("new_message", text=text)) == 1)
        choose(each, text, "edit")
        field(each).fill(f"{text}, edited")
        field(each).press("Enter")
        eventually(page, lambda: len(client.heard("message_updated", text=f"{text}, edited")) == 1)
        first, second = client.heard("new_message", text=text)[0], client.heard("message_updated", text=f"{text}, edited")[0]
        assert first["ID"] == second["ID"]
    client.close()


def upload(demo, data):
    import http.client
    import json
    import urllib.parse
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(demo.urls["pusher"]).netloc, timeout=60)
    connection.request("POST", "/v1/files?name=dog.png", data, {
        "Authorization": "Bearer demo-token", "Content-Type": "image/png"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer["sha256"]


@pytest.mark.timeout(600)
def test_two_browsers_and_three_libraries_share_one_conversation(people, demo, room):
    twilio, pusher, backendless = TwilioSide(demo), PusherSide(demo), BackendlessSide(demo)
    ada = people.enter("lobby", name="ada", base=demo.urls["local"], token="demo-token")
    bob = people.enter("lobby", name="bob", base=demo.urls["local"], token="demo-token")
    say(ada, f"{room} from ada")
    expect(row(bob, f"{room} from ada")).to_have_count(1)
    say(bob, f"{room} from bob")
    expect(row(ada, f"{room} from bob")).to_have_count(1)
    twilio.post("tess", f"{room} from tess")
    pusher.trigger("new_message", {"ID": f"{room}-p", "sender": "pete", "text": f"{room} from pete"})
    backendless.post("bea", f"{room} from bea")
    everybody = [f"{room} from {name}" for name in ("ada", "bob", "tess", "pete", "bea")]
    for page in (ada, bob):
        for text in everybody:
            expect(row(page, text)).to_have_count(1)
    for text in everybody:
        eventually(ada, lambda: twilio.bodies().count(text) == 1, f"{text} at Twilio")
        eventually(ada, lambda: len(pusher.heard("new_message", text=text)) == 1, f"{text} at Pusher")
        eventually(ada, lambda: backendless.heard(text), f"{text} at Backendless")
    # Everybody saw the same, and nothing came round twice.
    assert [text for text in texts(ada) if room in text] == [text for text in texts(bob) if room in text]
    assert sorted(text for text in texts(ada) if room in text) == sorted(everybody)
    pusher.close()
    backendless.close()


@pytest.mark.timeout(600)
def test_socket_ios_client_hears_the_page_and_is_heard(people, demo, room):
    client = BackendlessSide(demo)
    page = people.enter("lobby", name="ada", base=demo.urls["local"], token="demo-token")
    posted = client.post("bea", f"{room} from the app")
    expect(row(page, f"{room} from the app")).to_have_count(1)
    client.edit(posted, f"{room} from the app, edited")
    expect(row(page, f"{room} from the app, edited").locator(".edited")).to_be_visible()
    say(page, f"{room} from the page")
    sent(page, f"{room} from the page")
    eventually(page, lambda: client.heard(f"{room} from the page"))
    client.close()
