"""Pictures of the console's main states, to be looked at: python console_screenshots.py FOLDER"""
import pathlib
import sys
import tempfile

from playwright.sync_api import expect, sync_playwright

from conftest import PATIENCE
from consoles import Desk
from relay import READ_TOKEN, Relayed

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
BRIDGES = """  lobby: { between: [here:lobby, site:chatroom], mirror: [messages, edits, deletes, reactions] }
  support: { between: [here:support, here:archive, site:support, site:alerts] }
  news: { from: here:news, to: [site:news, site:updates] }
"""


def take(desk, relay, folder, names, token=None, **options):
    """Pictures of views: by name, what is opened and what is done there."""
    for name, (view, query, act) in names.items():
        page = desk.open(relay, view, query=query, **({"token": token} if token else {}), **options)
        page.wait_for_timeout(500)
        if act:
            act(page)
            page.wait_for_timeout(400)
        page.screenshot(path=folder / f"console-{name}.png")
        page.context.close()
        desk.contexts.remove(page.context)


def send_test(page):
    page.locator("[data-bridge=support]").get_by_role("button", name="Send a test message").click()
    page.locator("dialog select").select_option(label="here:support")
    page.get_by_role("button", name="Send it").click()
    expect(page.locator("dialog .summary")).to_have_text("Arrived at 3 of 3", timeout=PATIENCE)



def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb",
                  "--disable-features=LocalNetworkAccessChecks,LocalNetworkAccessChecksWebSockets"])
        desk = Desk(chromium)
        relay = Relayed(pathlib.Path(place), BRIDGES).start()
        try:
            relay.eventually(relay.connected)
            for number in range(12):
                message = relay.say(f"Crossing number {number} has arrived.", ["lobby", "support", "news"][number % 3])
            relay.eventually(lambda: relay.settled(message))
            signed_out = desk.page(**DESKTOP)
            signed_out.goto(relay.url)
            signed_out.locator(".sign-in").wait_for()
            signed_out.screenshot(path=folder / "console-sign-in.png")
            well = {"overview": ("", None, None)}
            take(desk, relay, folder, {"test": ("", None, send_test)}, **DESKTOP)
            take(desk, relay, folder, well, **DESKTOP)
            take(desk, relay, folder, {"events": ("events", None, None), "configuration": ("settings", None, None)}, **DESKTOP)
            take(desk, relay, folder, {"overview-dark": well["overview"]}, color_scheme="dark", **DESKTOP)
            take(desk, relay, folder, {"overview-phone": well["overview"]}, **PHONE)
            take(desk, relay, folder, {"read-only": ("dead", None, None)}, token=READ_TOKEN, **DESKTOP)

            relay.bury(130, reason=lambda number: f"too_large: The picture has {8 + number} MB; this service takes 8 MB. "
                                                  "Shrink it, then retry.")
            relay.pusher.stop()
            for number in range(8):
                relay.say(f"Is anybody there? {number}", ["lobby", "support", "news", "lobby"][number % 4])
            relay.eventually(lambda: any(account["state"] == "degraded" for account in relay.get("status")["accounts"]))
            broken = {"broken": ("", None, None), "lanes": ("lanes", None, None), "dead": ("dead", None, None)}
            take(desk, relay, folder, broken, **DESKTOP)
            take(desk, relay, folder, {f"{name}-phone": each for name, each in broken.items()}, **PHONE)
            take(desk, relay, folder, {"broken-dark": broken["broken"]}, color_scheme="dark", **DESKTOP)
            take(desk, relay, folder, {"broken-ja": broken["broken"], "lanes-ja": broken["lanes"]}, locale="ja-JP", **DESKTOP)
            take(desk, relay, folder, {"dead-ja-phone": broken["dead"]}, locale="ja-JP", color_scheme="dark", **PHONE)
            waiting = next(event for event in relay.get("events") if event["settled"] < event["deliveries"])
            take(desk, relay, folder, {"trace": ("events", {"id": waiting["message"]}, None)}, **DESKTOP)
            page = desk.open(relay, **DESKTOP)
            relay.relay.pause()
            expect(page.locator(".verdict")).to_have_class("verdict unknown", timeout=90_000)
            page.screenshot(path=folder / "console-stale.png")
        finally:
            relay.stop()
        chromium.close()
        print("\n".join(desk.problems))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
