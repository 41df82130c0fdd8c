"""Pictures of the main states of the pages, to be looked at: python screenshots.py FOLDER [NAME...]"""
import math
import os
import pathlib
import re
import struct
import sys
import tempfile
import zlib

from acts import chunk, expect, field, open_menu, row, say, sent
from conftest import People
from demo import Demo
from playwright.sync_api import sync_playwright
from service import Service
from test_services import Start

PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
DESKTOP = {"viewport": {"width": 1180, "height": 760}}
# Minutes before now, who, and what.
ENGLISH = [
    (1500, "grace", "Has anybody tried the ferry between the two chats yet? ⛴️"),
    (1499, "ada", "Yes! It carries edits and pictures too."),
    (1498, "bob", "Even reactions, where both sides have them."),
    (60, "ada", "The crossing this morning, see https://example.org/timetable."),
    (59, "ada", None),
    (57, "bob", "Beautiful! How long did it take?"),
    (55, "grace", "@bob about twenty minutes. The sea was calm, and everybody stood outside: it was the first warm day, "
                  "and you could see both shores at once."),
    (54, "grace", "🚢🌊"),
    (3, "bob", "I will take the next one."),
]
JAPANESE = [
    (1500, "さくら", "フェリーのチャットはもう試しましたか？⛴️"),
    (1499, "健太", "はい！編集も画像もちゃんと届きますよ。"),
    (60, "さくら", "今朝の景色です。時刻表は https://example.org/jikoku をどうぞ。"),
    (59, "さくら", None),
    (57, "花子", "きれいですね！どのくらいかかりましたか？"),
    (55, "健太", "@花子 20分ほどです。海が穏やかで、みんな甲板に出ていました。春らしい一日で、両方の岸が一度に見えました。"),
    (54, "健太", "🚢🌊"),
    (3, "花子", "次の便に乗ります。"),
]


def sea(width=480, height=320):
    """A boat on the sea, as a PNG."""
    rows = b""
    for y in range(height):
        line = bytearray(b"\0")
        for x in range(width):
            horizon = height * 0.55
            if y > horizon + 3 * math.sin(x / 14):
                depth = (y - horizon) / (height - horizon)
                wave = 18 * math.sin(x / 11 + y / 5) * math.sin(y / 9)
                colour = (40 + wave - 25 * depth, 120 + wave - 50 * depth, 170 + wave - 50 * depth)
            else:
                high = y / horizon
                colour = (120 + 125 * high, 175 + 45 * high, 225 - 30 * high)
            if (x - width * 0.76) ** 2 + (y - height * 0.26) ** 2 < (height * 0.09) ** 2:
                colour = (255, 236, 170)
            u, v = (x - width * 0.4) / (width * 0.19), (y - horizon) / (height * 0.09)
            if -0.15 < v < 0.9 and abs(u) < 1 - max(v, 0) * 0.28:
                colour = (235, 240, 245) if v < 0.35 else (176, 52, 48)
            if -1.0 < v <= -0.15 and abs(u + 0.08) < 0.62:
                windows = -0.75 < v < -0.45 and int((u + 2) * 11) % 2
                colour = (60, 90, 120) if windows else (248, 250, 252)
            if -2.1 < v <= -1.0 and abs(u + 0.25) < 0.1:
                colour = (214, 96, 60)
            line += bytes(max(0, min(255, int(part))) for part in colour)
        rows += bytes(line)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def tell(service, room, conversation, me, now):
    posted = []
    for minutes, by, text in conversation:
        draft = {"author": {"id": by, "name": by}, "text": text or "", "time": now - minutes * 60_000}
        if text is None:
            file = service.upload(sea(), "crossing.png", "image/png")
            draft["attachments"] = [{"file": file["sha256"], "name": "crossing.png"}]
        posted.append(service.post_many(room, [draft])[0])
    service.edit(room, posted[1], posted[1]["text"])
    for by in {by for _, by, _ in conversation}:
        service.join(room, by)
        if by != me:
            service.mark(room, by, posted[-1])
    service.mark(room, me, posted[3])
    photo = next(message for message, said in zip(posted, conversation) if said[2] is None)
    for by in {by for _, by, _ in conversation} - {photo["author"]["id"]}:
        service.react(room, photo, "❤️", by)
    service.react(room, posted[-2], "👍", me)


def main(folder, wanted):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        scratch = pathlib.Path(scratch)
        chromium = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"),
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb",
                  "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"])
        service = Service(scratch / "service")
        service.folder.mkdir()
        service.start()
        people = People(chromium, service)

        def shot(name, page):
            page.wait_for_timeout(400)
            page.screenshot(path=folder / f"{name}.png")
            print(folder / f"{name}.png")
            page.context.close()
            people.contexts.remove(page.context)

        def isWanted(name):
            return not wanted or any(each in name for each in wanted)

        import time
        now = int(time.time() * 1000)
        for room, text in (("harbour", "Boat 7 is in."), ("timetable", "Winter times from Monday."), ("random", "🐟")):
            service.post_many(room, [{"author": {"id": "grace"}, "text": text, "time": now - 7_200_000}])
        tell(service, "ferry", ENGLISH, "bob", now)
        tell(service, "フェリー", JAPANESE, "花子", now)

        states = [(f"{device}-{scheme}", options, scheme) for device, options in (("phone", PHONE), ("desktop", DESKTOP))
                  for scheme in ("light", "dark")]
        for name, options, scheme in states:
            if isWanted(name):
                page = people.enter("ferry", color_scheme=scheme, **options)
                service.type("ferry", "grace")
                shot(name, page)
            if isWanted(f"japanese-{name}"):
                page = people.enter("フェリー", name="花子", color_scheme=scheme, locale="ja-JP", **options)
                shot(f"japanese-{name}", page)
            if isWanted(f"menu-{name}"):
                page = people.enter("ferry", color_scheme=scheme, **options)
                open_menu(page, "I will take the next one.")
                shot(f"menu-{name}", page)
            if isWanted(f"sign-in-{name}"):
                page = people.page(color_scheme=scheme, **options)
                page.goto(service.url + "/chat")
                page.locator(".sign-in").wait_for()
                shot(f"sign-in-{name}", page)
            if isWanted(f"writing-{name}"):
                page = people.enter("ferry", color_scheme=scheme, **options)
                page.locator(".composer input[type=file]").set_input_files(
                    {"name": "crossing.png", "mimeType": "image/png", "buffer": sea()})
                expect(page.locator(".send")).to_be_enabled()
                field(page).press_sequentially("Look, @")
                page.locator("#names li").first.wait_for()
                shot(f"writing-{name}", page)
            if isWanted(f"search-{name}"):
                page = people.enter("ferry", color_scheme=scheme, **options)
                page.locator(".find").click()
                page.locator(".search input").fill("you")
                page.locator(".results button").first.wait_for()
                shot(f"search-{name}", page)
            if isWanted(f"editing-{name}"):
                page = people.enter("ferry", color_scheme=scheme, **options)
                open_menu(page, "I will take the next one.").locator("[data-action=edit]").click()
                shot(f"editing-{name}", page)
        if isWanted("rooms-phone"):
            page = people.enter("ferry", **PHONE)
            page.locator(".back").click()
            shot("rooms-phone", page)
        if isWanted("picture-desktop"):
            page = people.enter("ferry", **DESKTOP)
            page.locator(".enlarge").click()
            page.locator(".viewer img").wait_for()
            shot("picture-desktop", page)
        if isWanted("offline-desktop"):
            page = people.enter("ferry", **DESKTOP)
            page.route(re.compile("/v1/"), lambda route: route.abort())
            service.kill()
            say(page, "Is anybody there?")
            page.locator(".offline").wait_for()
            page.locator(".row.waiting").wait_for()
            shot("offline-desktop", page)
            service.start()
        if isWanted("start"):
            (scratch / "demo").mkdir()
            demo = Demo(scratch / "demo")
            for scheme in ("light", "dark"):
                start = Start(people, demo, color_scheme=scheme)
                if scheme == "light":
                    converse(start)
                shot(f"start-{scheme}", start.page)
            demo.stop()
        service.stop()
        chromium.close()


def converse(start):
    """So that every pane says something, and shows what the others said."""
    local, twilio, pusher, backendless = (start.panes[name] for name in ("Local", "Twilio", "Pusher", "Backendless"))

    def speak(pane, text):
        say(pane, text)
        for each in start.panes.values():
            expect(row(each, text)).to_have_count(1)

    speak(local, "Good morning from the local server!")
    speak(twilio, "And from Twilio. Who has a picture of the crossing?")
    pusher.locator(".composer input[type=file]").set_input_files(
        {"name": "crossing.png", "mimeType": "image/png", "buffer": sea()})
    expect(pusher.locator(".send")).to_be_enabled()
    say(pusher, "Taken on the Pusher side")
    for each in start.panes.values():
        expect(each.locator(".picture img")).to_have_count(1)
    speak(backendless, "Beautifull!")
    field(backendless).press("ArrowUp")
    field(backendless).fill("Beautiful!")
    field(backendless).press("Enter")
    for each in start.panes.values():
        expect(row(each, "Beautiful!")).to_have_count(1)
    open_menu(local, "Beautiful!").locator("[data-emoji='❤️']").click()
    field(twilio).press_sequentially("The next boat leaves at")
    expect(local.locator(".typing")).to_contain_text("is typing")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "screenshots"), sys.argv[2:])
