"""How it looks: colours, shapes, sizes, themes, paper."""
import re

import pytest
from acts import PATIENCE, at_bottom, choose, eventually, expect, field, open_menu, picture, row, say, scroll, sent, texts

LIGHT = {
    "ground": "#7194C2", "own": ("#111111", "#85E249"), "other": ("#111111", "#FFFFFF"), "label": "#0F1B2A",
    "own link": "#003A8C", "other link": "#0B57D0", "own edited": "#2F5214", "other edited": "#595959",
    "day": ("#FFFFFF", "#2B3F59"), "unread": ("#FFFFFF", "#B00020"), "line": "#8C0018", "composer": ("#111111", "#FFFFFF"),
    "placeholder": "#595959", "border": "#6B7785", "send": ("#FFFFFF", "#0B57D0"), "mention": ("#111111", "#FFF3B0"),
}
DARK = {
    "ground": "#16202C", "own": ("#FFFFFF", "#2F6B1A"), "other": ("#F2F5F8", "#2C3A4B"), "label": "#B8C4D2",
    "own link": "#D6E8FF", "other link": "#9CC2FF", "own edited": "#DCEFD2", "other edited": "#B8C4D2",
    "day": ("#F2F5F8", "#34465C"), "unread": ("#FFFFFF", "#B3261E"), "line": "#FF8A80", "composer": ("#F2F5F8", "#1E2A38"),
    "placeholder": "#9AA8B8", "border": "#7C8B9C", "send": ("#0B1726", "#9CC2FF"), "mention": ("#111111", "#E6C84B"),
}
COLOURS = """() => {
  const hex = (text) => '#' + text.match(/[0-9.]+/g).slice(0, 3).map((each) => Number(each).toString(16).padStart(2, '0'))
    .join('').toUpperCase();
  const of = (selector, property = 'color', pseudo) =>
    hex(getComputedStyle(document.querySelector(selector), pseudo)[property]);
  const pair = (selector) => [of(selector), of(selector, 'backgroundColor')];
  return {
    ground: of('.conversation', 'backgroundColor'), own: pair('.own .bubble'), other: pair('.other .bubble'),
    label: of('.meta'), 'own link': of('.own .text a'), 'other link': of('.other .text a'), 'own edited': of('.own .edited'),
    'other edited': of('.other .edited'), day: pair('.day time'), unread: pair('.unread-line span'), line: of('.unread-line'),
    composer: pair('textarea'), placeholder: of('textarea', 'color', '::placeholder'), border: of('textarea', 'borderTopColor'),
    send: pair('.send'), mention: pair('mark'),
  };
}"""


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def everything(service, room):
    first = service.post(room, "read already")
    service.mark(room, "bob", first)
    theirs = service.post(room, "see https://example.org, @bob")
    service.edit(room, theirs, "see https://example.org/, @bob")
    mine = service.post(room, "https://example.org/mine", by="bob")
    service.edit(room, mine, "https://example.org/mine!")


@pytest.mark.parametrize("scheme,expected", [("light", LIGHT), ("dark", DARK)])
def test_colours_are_as_specified_and_have_contrast(people, service, room, scheme, expected):
    everything(service, room)
    page = people.enter(room, color_scheme=scheme)
    found = page.evaluate(COLOURS)
    assert {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()} == expected
    for name in ("own", "other", "day", "unread", "composer", "send", "mention"):
        assert contrast(*expected[name]) >= 4.5, name
    for text, ground in (("label", expected["ground"]), ("own link", expected["own"][1]), ("own edited", expected["own"][1]),
                         ("other link", expected["other"][1]), ("other edited", expected["other"][1]),
                         ("placeholder", expected["composer"][1])):
        assert contrast(expected[text], ground) >= 4.5, text
    assert contrast(expected["line"], expected["ground"]) >= 3
    assert contrast(expected["border"], expected["composer"][1]) >= 3


def test_the_tail_stands_outside_the_bubble_in_its_colour(people, service, room):
    service.post(room, "theirs")
    page = people.enter(room)
    say(page, "mine")
    sent(page, "mine")
    page.mouse.move(5, 5)
    box = row(page, "mine").locator(".bubble").bounding_box()
    assert pixel(page, box["x"] + box["width"] + 3, box["y"] + 15) == (0x85, 0xE2, 0x49)
    assert pixel(page, box["x"] + box["width"] + 11, box["y"] + 15) != (0x85, 0xE2, 0x49)
    box = row(page, "theirs").locator(".bubble").bounding_box()
    assert pixel(page, box["x"] - 2, box["y"] + 2) == (255, 255, 255)
    assert pixel(page, box["x"] - 9, box["y"] + 2) != (255, 255, 255)


def pixel(page, x, y):
    """The colour at a point of the window, read from a picture of it."""
    import struct
    import zlib
    data = page.screenshot(clip={"x": round(x), "y": round(y), "width": 1, "height": 1})
    at, packed, kind = 8, b"", None
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        if name == b"IHDR":
            kind = body[9]
        if name == b"IDAT":
            packed += body
        at += 12 + length
    assert kind in (2, 6)
    return tuple(zlib.decompress(packed)[1:4])


def test_shapes_and_gaps(people, service, room):
    service.post_many(room, [{"author": {"id": "ada"}, "text": text} for text in ("one", "two")])
    service.post(room, "three", by="grace")
    service.post(room, "wide " * 100, by="grace")
    page = people.enter(room)
    one, two, three, wide = (each.bounding_box() for each in page.locator(".bubble").all())
    assert abs(two["y"] - one["y"] - one["height"] - 3) < 0.5
    name = page.locator(".name").nth(1).bounding_box()
    assert abs(name["y"] - two["y"] - two["height"] - 12) < 1
    style = page.locator(".bubble").first.evaluate("(bubble) => ({ ...getComputedStyle(bubble) }, "
                                                   "[getComputedStyle(bubble).borderRadius, getComputedStyle(bubble).padding])")
    assert style == ["15px", "8px 12px"]
    assert wide["width"] <= 36 * 16 + 1
    time = page.locator(".row").nth(2).locator(".meta").bounding_box()
    assert abs(time["x"] - three["x"] - three["width"] - 6) < 1
    assert abs(time["y"] + time["height"] - three["y"] - three["height"]) < 1


@pytest.mark.parametrize("text,is_large", [
    ("👨‍👩‍👧", True), ("🙏🏻", True), ("🚢🚢 🚢", True), ("🚢🚢🚢🚢", False), ("1", False), ("#", False), ("ok 🚢", False), ("🇯🇵", True)])
def test_emoji_alone_are_large(people, service, room, text, is_large):
    service.post(room, text)
    page = people.enter(room)
    expect(page.locator(".large")).to_have_count(1 if is_large else 0)
    expect(page.locator(".text")).to_have_css("font-size", "40px" if is_large else "16px")


def test_nothing_scrolls_sideways_in_a_narrow_window(people, service, room):
    service.post(room, "https://example.org/" + "a" * 800)
    service.post(room, "w" * 500, by="bob")
    picture(service, room)
    page = people.enter(room, viewport={"width": 320, "height": 600})
    for selector in ("html", "#log", ".conversation"):
        assert page.locator(selector).evaluate("(each) => each.scrollWidth <= each.clientWidth"), selector
    open_menu(page, "w" * 500)
    assert page.locator("html").evaluate("(html) => html.scrollWidth <= 320")


SMALL = """(least) => [...document.querySelectorAll('button, input, textarea, a:not(.text a), [role=option]')].filter((each) => {
  const { width, height } = each.getBoundingClientRect();
  return width > 0 && each.checkVisibility() && !each.closest('.unseen') && (width < least - .1 || height < least - .1);
}).map((each) => `${each.className} ${each.getBoundingClientRect().width} ${each.getBoundingClientRect().height}`)"""


@pytest.mark.parametrize("is_touch", [True, False])
def test_targets_are_large_enough_on_every_screen_and_nothing_scrolls_sideways(people, service, room, is_touch):
    message = service.post(room, "x" * 2500)
    service.mark(room, "bob", message)
    service.react(room, message, "👍")
    service.post(room, "", attachments=[{"file": service.upload(b"x", "a.txt")["sha256"], "name": "a.txt"}])
    service.post(room, "answer", reply_to=message["id"])
    picture(service, room, text="look")
    options = {"has_touch": True, "is_mobile": True} if is_touch else {}
    page = people.enter(room, viewport={"width": 320, "height": 620}, **options)
    least = 44 if is_touch else 24
    found = []
    for screen in screens(page, service, room):
        found += [f"{screen}: {each}" for each in page.evaluate(SMALL, least)]
        for selector in ("html", "body"):
            if not page.locator(selector).evaluate("(each) => each.scrollWidth <= 320 && innerWidth <= 320"):
                found.append(f"{screen}: {selector} scrolls sideways")
    assert found == []


def screens(page, service, room):
    """Each screen in turn."""
    expect(page.locator(".picture img")).to_be_visible()
    yield "room"
    page.locator(".back").click()
    yield "rooms"
    page.locator(f"[data-room='{room}']").click()
    expect(row(page, "look")).to_be_visible()
    row(page, "look").locator(".more").click()
    expect(page.locator(".menu")).to_be_visible()
    yield "menu"
    page.locator("[data-action=reply]").click()
    expect(page.locator(".purpose")).to_be_visible()
    yield "reply"
    page.locator(".purpose .cancel").click()
    field(page).fill("@")
    page.locator("#names li").first.wait_for()
    yield "names"
    field(page).fill("")
    page.locator(".composer input[type=file]").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"x"})
    expect(page.locator(".send")).to_be_enabled()
    yield "tray"
    page.locator(".upload .detach").click()
    page.locator(".find").click()
    page.locator(".search input").fill("look")
    expect(page.locator(".results button")).to_have_count(1)
    yield "search"
    page.locator(".search .close").click()
    page.locator(".enlarge").click()
    expect(page.locator(".viewer img")).to_be_visible()
    yield "picture"
    page.locator(".viewer .shut").click()
    page.evaluate("sessionStorage.clear()")
    page.goto(page.url.split("?")[0])
    page.locator(".sign-in").wait_for()
    yield "sign-in"


@pytest.mark.parametrize("text", ["x" * 100_000, "word " * 20_000, "\n" * 50_000 + "x" * 50_000, "👩‍👩‍👧 " * 8000])
def test_a_message_of_100_kilobytes_breaks_nothing(people, service, room, text):
    first = service.post(room, "before")
    service.mark(room, "bob", first)
    service.post(room, "placeholder")
    service.post(room, "after")
    page = people.page(viewport={"width": 390, "height": 700})

    def lengthen(route):
        answer = route.fetch()
        body = answer.json()
        for message in body["messages"]:
            if message["text"] == "placeholder":
                message["text"] = text
        route.fulfill(response=answer, json=body)

    page.route(re.compile(r"/messages\?"), lengthen)
    people.enter(room, page=page)
    long = page.locator(".row", has=page.locator(".fold"))
    # The room opens at the unread line, however tall what follows is.
    expect(page.locator(".unread-line")).to_be_in_viewport()
    assert page.locator("html").evaluate("(html) => html.scrollWidth <= 390")
    assert page.locator("#log").evaluate("(log) => log.scrollWidth <= log.clientWidth")
    assert len(long.locator(".text").inner_text()) < 2200
    long.locator(".fold").evaluate("(button) => button.click()")
    expect(long.locator(".fold")).to_have_text("Show less")
    assert long.locator(".text").evaluate("(text) => text.textContent.length") == len(text.encode("utf-16-le")) // 2
    # What was at the upper edge still is.
    expect(page.locator(".unread-line")).to_be_attached()
    assert not at_bottom(page)
    assert page.locator("#log").evaluate("(log) => log.scrollWidth <= log.clientWidth")
    scroll(page, 1e7)
    expect(row(page, "after")).to_be_in_viewport()
    page.unroute_all(behavior="ignoreErrors")


def test_on_a_phone_the_rooms_and_the_room_are_two_screens(people, service, room):
    service.post(f"{room}-b", "over here")
    page = people.enter(room, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 760})
    expect(page.locator(".side")).to_be_hidden()
    page.locator(".back").tap()
    expect(page.locator(".side")).to_be_visible()
    expect(page.locator(".conversation")).to_be_hidden()
    page.locator(f"[data-room='{room}-b']").tap()
    expect(row(page, "over here")).to_be_visible()


def test_the_keyboard_of_a_phone_covers_neither_the_field_nor_the_last_message(people, service, room):
    service.fill(room, 40)
    page = people.enter(room, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 700})
    page.set_viewport_size({"width": 390, "height": 400})
    expect(row(page, "message 39")).to_be_in_viewport()
    expect(field(page)).to_be_in_viewport(ratio=1)
    eventually(page, lambda: at_bottom(page))


def test_less_motion_and_forced_colours(people, service, room):
    service.post(room, "x")
    page = people.enter(room, reduced_motion="reduce", forced_colors="active")
    assert page.locator(".overlay .spinner").evaluate("(spinner) => getComputedStyle(spinner).animationName") == "none"
    assert page.locator(".bubble").evaluate("(bubble) => getComputedStyle(bubble).borderTopWidth") == "1px"
    page.keyboard.press("Shift+Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_paper_shows_all_that_is_loaded_on_white(people, service, room):
    service.fill(room, 150)
    page = people.enter(room)
    for _ in range(2):
        height = page.locator("#log").evaluate("(log) => log.scrollHeight")
        scroll(page, 0)
        eventually(page, lambda: page.locator("#log").evaluate("(log) => log.scrollHeight") > height)
    page.emulate_media(media="print")
    expect(page.locator(".row")).to_have_count(150)
    assert page.locator(".composer").is_hidden() and page.locator(".side").is_hidden()
    assert page.locator("body").evaluate("(body) => getComputedStyle(body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("body").evaluate("(body) => body.scrollHeight") > 4000
    page.emulate_media(media="screen")
    eventually(page, lambda: page.locator(".row").count() < 100)


def test_japanese(people, service, room):
    message = service.post(room, "こんにちは", by="bob")
    service.mark(room, "ada", message)
    page = people.enter(room, locale="ja-JP")
    assert page.locator("html").get_attribute("lang") == "ja"
    expect(field(page)).to_have_attribute("placeholder", "メッセージを入力")
    expect(page.locator(".day")).to_have_text("今日")
    expect(page.locator(".read")).to_have_text("既読")
    for name in ("grace", "carl"):
        service.join(room, name)
    service.mark(room, "grace", message)
    expect(page.locator(".read")).to_have_text("既読 2")
    tools = page.context.new_cdp_session(page)
    tools.send("DOM.enable")
    tools.send("CSS.enable")
    root = tools.send("DOM.getDocument", {"depth": -1})["root"]["nodeId"]
    node = tools.send("DOM.querySelector", {"nodeId": root, "selector": ".bubble .text"})["nodeId"]
    fonts = tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    assert any("CJK JP" in font["familyName"] for font in fonts), fonts


def test_text_from_right_to_left_is_right_inside_its_bubble(people, service, room):
    service.post(room, "مرحبا بالعالم (a)", by="ada", name="عادة")
    page = people.enter(room)
    text = page.locator(".text")
    assert text.evaluate("(text) => getComputedStyle(text).direction") == "rtl"
    assert page.locator(".name bdi").inner_text() == "عادة"
    say(page, "left to right")
    sent(page, "left to right")
    assert row(page, "left to right").locator(".text").evaluate("(text) => getComputedStyle(text).direction") == "ltr"
