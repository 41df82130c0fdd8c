"""What people do on the page, and how tests wait for what comes of it."""
import struct
import time
import zlib

from playwright.sync_api import expect

PATIENCE = 30_000


def eventually(page, check, what="", patience=PATIENCE / 1000):
    """Waits until `check()`, or the JavaScript expression `check`, gives something true, and returns it."""
    end = time.monotonic() + patience
    while True:
        value = page.evaluate(check) if isinstance(check, str) else check()
        if value:
            return value
        assert time.monotonic() < end, f"{what or check} did not come about; it is {value!r}"
        page.wait_for_timeout(20)


def stays(page, check, milliseconds=300):
    """Asserts that `check()` holds now and for a while: only for what must not happen."""
    end = time.monotonic() + milliseconds / 1000
    while time.monotonic() < end:
        assert page.evaluate(check) if isinstance(check, str) else check(), check
        page.wait_for_timeout(20)


def field(page):
    return page.locator(".composer textarea")


def say(page, text):
    field(page).fill(text)
    field(page).press("Enter")


def row(page, text):
    """The row whose body is exactly that."""
    return page.locator(".row", has=page.locator(".text", has_text=text)).filter(
        has=page.get_by_text(text, exact=True))


def texts(page):
    return page.locator(".row .text").all_inner_texts()


def sent(page, text):
    """Waits until the server has it."""
    one = row(page, text)
    expect(one).to_have_count(1, timeout=PATIENCE)
    expect(one).not_to_have_class("sending", timeout=PATIENCE)
    eventually(page, lambda: not {"sending", "waiting", "failed"} & set(one.get_attribute("class").split()), f"{text} sent")
    return one


def scroll(page, top):
    """Scrolls the log and waits until that has been drawn."""
    page.locator("#log").evaluate("""(log, top) => new Promise((done) => {
      log.scrollTop = top;
      requestAnimationFrame(() => requestAnimationFrame(done));
    })""", top)


def scroll_by(page, distance):
    """The same, from wherever the log is by then: what is loaded meanwhile moves it."""
    page.locator("#log").evaluate("""(log, distance) => new Promise((done) => {
      log.scrollTop += distance;
      requestAnimationFrame(() => requestAnimationFrame(done));
    })""", distance)


def at_bottom(page):
    return page.locator("#log").evaluate("(log) => log.scrollHeight - log.scrollTop - log.clientHeight < 2")


def top_of(page, text):
    """Where a row stands in the window."""
    return row(page, text).evaluate("(row) => row.querySelector('.bubble').getBoundingClientRect().top")


def open_menu(page, text):
    one = row(page, text)
    one.hover()
    one.locator(".more").click()
    page.locator(".menu").wait_for()
    return page.locator(".menu")


def choose(page, text, action):
    open_menu(page, text).locator(f"[data-action={action}]").click()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, colour=(200, 60, 40), noise=b""):
    """A picture of one colour. `noise` makes it another file."""
    line = b"\0" + bytes(colour) * width
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + (chunk(b"tEXt", b"Comment\0" + noise) if noise else b"") + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def png_head(width, height):
    """The beginning of a picture, which says how large it would be."""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", b"x")


def picture(service, room, name="cat.png", data=None, text="", by="ada"):
    file = service.upload(data or png(300, 200), name, "image/png")
    return service.post(room, text, by=by, attachments=[{"file": file["sha256"], "name": name}])


def keyboard(page):
    return page.context.new_cdp_session(page)
