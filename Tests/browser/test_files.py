"""Pictures and other files: attaching, uploading, showing."""
import hashlib
import json
import re

import pytest
from acts import PATIENCE, at_bottom, choose, eventually, expect, field, open_menu, picture, png, png_head, row, say, sent, texts

FILES = re.compile(r"/v1/files\?")
PASTE = """([bytes, text]) => {
  const data = new DataTransfer();
  if (bytes) data.items.add(new File([new Uint8Array(bytes)], 'image.png', { type: 'image/png' }));
  if (text) data.setData('text/plain', text);
  const field = document.querySelector('.composer textarea');
  field.focus();
  field.dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true, cancelable: true }));
}"""


def attach(page, data, name="cat.png", kind="image/png"):
    page.locator(".composer input[type=file]").set_input_files({"name": name, "mimeType": kind, "buffer": data})


def test_a_picture_goes_with_a_text_byte_for_byte(people, service, room):
    page = people.enter(room)
    data = png(320, 240, noise=room.encode())
    attach(page, data)
    expect(page.locator(".upload")).to_contain_text("cat.png")
    expect(page.locator(".send")).to_be_enabled()
    say(page, "look")
    sent(page, "look")
    message = service.messages(room)[-1]
    assert message["attachments"][0]["sha256"] == hashlib.sha256(data).hexdigest()
    assert (message["attachments"][0]["width"], message["attachments"][0]["name"]) == (320, "cat.png")
    expect(page.locator(".picture img")).to_be_visible()
    expect(page.locator(".upload")).to_have_count(0)
    other = people.enter(room, name="ada")
    expect(other.locator(".picture img")).to_be_visible()
    box = other.locator(".picture").bounding_box()
    assert (box["width"], box["height"]) == (240, 180)
    other.locator(".enlarge").click()
    expect(other.locator(".viewer img")).to_be_visible()
    with other.expect_download() as download:
        other.locator(".viewer .save").click()
    assert open(download.value.path(), "rb").read() == data
    other.keyboard.press("Escape")
    expect(other.locator(".viewer")).to_have_count(0)
    with other.expect_download() as download:
        choose(other, "look", "savePicture")
    assert download.value.suggested_filename == "cat.png"


def test_a_pasted_picture_is_attached_and_not_sent(people, service, room):
    page = people.enter(room)
    page.evaluate(PASTE, [list(png(8, 8)), ""])
    expect(page.locator(".upload")).to_contain_text("picture-")
    expect(page.locator(".upload")).not_to_contain_text("image.png")
    assert texts(page) == []
    page.locator(".detach").click()
    page.evaluate(PASTE, [list(png(8, 8)), "text of a word processor"])
    expect(page.locator(".upload")).to_have_count(0)


def test_the_clipboards_own_pictures_and_texts(people, service, room):
    page = people.page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    people.enter(room, page=page)
    copy = """async ([bytes, text]) => {
      const parts = { 'image/png': new Blob([new Uint8Array(bytes)], { type: 'image/png' }) };
      if (text) parts['text/plain'] = new Blob([text], { type: 'text/plain' });
      await navigator.clipboard.write([new ClipboardItem(parts)]);
      document.querySelector('.composer textarea').focus();
    }"""
    page.evaluate(copy, [list(png(8, 8)), "words and a picture of them"])
    page.keyboard.press("Control+V")
    expect(field(page)).to_have_value("words and a picture of them")
    expect(page.locator(".upload")).to_have_count(0)
    page.evaluate(copy, [list(png(8, 8)), ""])
    page.keyboard.press("Control+V")
    expect(page.locator(".upload")).to_contain_text("picture-")
    assert field(page).input_value() == "words and a picture of them" and texts(page) == []


def test_a_dropped_file_is_attached_wherever_it_falls(people, room, tmp_path):
    page = people.enter(room)
    file = tmp_path / "dropped.png"
    file.write_bytes(png(20, 20))
    tools = page.context.new_cdp_session(page)
    def drag(kind, x, y):
        tools.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": {
            "items": [], "files": [str(file)], "dragOperationsMask": 1}})
    overlay = page.locator(".drop")
    drag("dragEnter", 600, 300)
    expect(overlay).to_be_visible()
    drag("dragCancel", 600, 300)
    expect(overlay).to_be_hidden()
    drag("dragEnter", 600, 300)
    expect(overlay).to_be_visible()
    drag("dragOver", 640, 300)
    # Out of the window, which not every browser tells: the sign goes all the same.
    expect(overlay).to_be_hidden()
    url = page.url
    drag("dragEnter", 600, 20)
    drag("dragOver", 600, 20)
    expect(overlay).to_be_visible()
    drag("drop", 600, 20)
    expect(overlay).to_be_hidden()
    expect(page.locator(".upload")).to_contain_text("dropped.png")
    assert page.url == url


def test_a_file_dropped_at_once_is_attached_and_a_text_goes_into_the_field(people, room, tmp_path):
    page = people.enter(room)
    file = tmp_path / "quick.txt"
    file.write_text("quick")
    url = page.url
    page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(['quick'], 'quick.txt', { type: 'text/plain' }));
      for (const kind of ['dragenter', 'dragover', 'drop']) {
        document.querySelector('.top').dispatchEvent(
          new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true }));
      }
    }""")
    expect(page.locator(".upload")).to_contain_text("quick.txt")
    expect(page.locator(".drop")).to_be_hidden()
    assert page.url == url
    dropped = page.evaluate("""() => ['.composer textarea', '.top'].map((place) => {
      const data = new DataTransfer();
      data.setData('text/plain', 'words');
      const event = new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true });
      document.querySelector(place).dispatchEvent(event);
      return event.defaultPrevented;
    })""")
    assert dropped == [False, True]


def test_a_failed_upload_keeps_text_and_file_and_retry_sends_the_same_bytes(people, service, room):
    page = people.enter(room)
    data = png(30, 30, noise=room.encode() * 1000)
    page.route(FILES, lambda route: route.fulfill(
        status=503, json={"error": {"code": "storage", "message": "full"}}), times=1)
    field(page).fill("with a file")
    attach(page, data)
    expect(page.locator(".upload.failed")).to_contain_text("Not uploaded")
    field(page).press("Enter")
    assert texts(page) == [] and field(page).input_value() == "with a file"
    page.locator(".upload .again").click()
    expect(page.locator(".send")).to_be_enabled()
    field(page).press("Enter")
    sent(page, "with a file")
    assert service.messages(room)[-1]["attachments"][0]["sha256"] == hashlib.sha256(data).hexdigest()


def test_cancelling_an_upload_keeps_the_text_and_posts_nothing(people, service, room):
    page = people.enter(room)
    held = []
    page.route(FILES, lambda route: held.append(route), times=1)
    field(page).fill("no file after all")
    attach(page, png(30, 30))
    eventually(page, lambda: held)
    expect(page.locator(".upload progress")).to_be_visible()
    expect(page.locator(".send")).to_be_disabled()
    page.locator(".upload .detach").click()
    expect(page.locator(".upload")).to_have_count(0)
    assert field(page).input_value() == "no file after all"
    field(page).press("Enter")
    sent(page, "no file after all")
    assert service.messages(room)[-1]["attachments"] == []
    page.unroute_all(behavior="ignoreErrors")


def test_a_large_file_shows_its_progress(people, service, room):
    page = people.enter(room)
    tools = page.context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.emulateNetworkConditions", {
        "offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 3_000_000})
    page.evaluate("""() => {
      window.parts = [];
      new MutationObserver(() => {
        const bar = document.querySelector('.upload progress');
        if (bar) parts.push(Number(bar.value));
      }).observe(document.querySelector('.tray'), { attributes: true, subtree: true, childList: true });
    }""")
    attach(page, bytes(4_000_000), "big.bin", "application/octet-stream")
    expect(page.locator(".send")).to_be_enabled(timeout=PATIENCE)
    parts = page.evaluate("parts")
    assert parts == sorted(parts) and any(0 < part < 1 for part in parts), parts


def test_a_picture_that_cannot_be_loaded_says_so(people, service, room):
    page = people.page()
    page.route(re.compile(r"/v1/files/"), lambda route: route.fulfill(status=404, json={}), times=1)
    picture(service, room, "broken.png", data=png(200, 200, noise=room.encode()))
    people.enter(room, page=page)
    expect(page.locator(".broken")).to_contain_text("could not be loaded")
    expect(page.locator(".broken")).to_contain_text("broken.png")
    page.locator(".broken .again").click()
    expect(page.locator(".picture img")).to_be_visible()


def test_a_huge_picture_and_one_of_unknown_size_wait_for_a_click(people, service, room):
    picture(service, room, "huge.png", data=png_head(20_000, 20_000), text="huge")
    gif = b"GIF89a" + bytes(20)
    picture(service, room, "unknown.gif", data=gif, text="unknown")
    page = people.page()
    asked = []
    page.on("request", lambda request: "/v1/files/" in request.url and asked.append(request.url))
    people.enter(room, page=page)
    shows = page.locator(".show")
    expect(shows).to_have_count(2)
    expect(shows.first).to_contain_text("20000 × 20000")
    assert asked == []
    shows.last.click()
    expect(page.locator(".broken")).to_be_visible()
    assert len(asked) == 1


def test_pictures_elsewhere_are_links(people, service, room):
    service.post(room, "", attachments=[
        {"url": "https://tracker.example/pixel.png", "name": "pixel.png", "type": "image/png"}])
    page = people.page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    people.enter(room, page=page)
    expect(page.locator("a.file")).to_have_attribute("href", "https://tracker.example/pixel.png")
    assert not any("tracker" in url for url in asked)


def test_a_spinner_shows_until_a_picture_is_there(people, service, room):
    picture(service, room, data=png(100, 100, noise=room.encode()))
    page = people.page()
    held = []
    page.route(re.compile(r"/v1/files/"), lambda route: held.append(route))
    people.enter(room, page=page)
    expect(page.locator(".picture .spinner")).to_be_visible()
    eventually(page, lambda: held)
    held[0].continue_()
    expect(page.locator(".picture img")).to_be_visible()
    expect(page.locator(".picture .spinner")).to_have_count(0)
