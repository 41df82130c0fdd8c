"""A bridge of all four services."""
import hashlib
import json
import random
import threading
import time
import urllib.request

import pytest
from bridge import Local, Subscriber, conversation, wait_until
from four import APP_ID, APP_KEY, Four
from test_replay import Gate

EVENTS = ["new_message", "message_updated", "message_deleted", "user_typing", "user_joined", "message_read"]


@pytest.fixture
def four(tmp_path):
    services = Four(tmp_path)
    yield services
    services.stop()


@pytest.fixture
def gated(tmp_path):
    services = Four(tmp_path, gate=Gate)
    yield services
    services.stop()


def at_local(four):
    return [(m["author"]["name"], m["text"]) for m in four.local.messages("lobby") if "deleted" not in m]


def at_twilio(four):
    found = four.conversation.messages.list(page_size=100)
    return [(m.author, "" if m.body in (None, "\u200b") else m.body) for m in found]


def at_pusher(subscriber):
    return [(d["sender"], d["text"]) for event, d in list(subscriber.events) if event == "new_message"]


def at_app(four):
    return [(row["userName"], row["messageText"] or "") for row in four.rows()]


def replay(four, expected, say):
    """Says everything while the relay is ended and started again ten times and the Backendless side is out of reach
    for thirty seconds."""
    generator = random.Random(4)

    def write():
        for author, text in expected:
            say(author, text)

    writer = threading.Thread(target=write)
    writer.start()
    for kill in range(10):
        if kill == 5:
            four.gate.shut()
            time.sleep(30)
            four.gate.is_open = True
        time.sleep(generator.uniform(0.2, 1.0))
        four.relay.kill()
        four.start()
    writer.join()


@pytest.mark.timeout(600)
def test_from_backendless_to_the_others_through_ten_kills_and_an_outage(gated):
    expected = conversation()
    subscriber = Subscriber(gated.urls["pusher"], "chatroom", ["new_message"])
    gated.start_ready()
    replay(gated, expected, gated.say)
    wait_until(lambda: len(at_local(gated)) >= len(expected), 240, "everything in the local room")
    wait_until(lambda: len(at_pusher(subscriber)) >= len(expected), 240, "everything at Pusher")
    wait_until(lambda: len(at_twilio(gated)) >= len(expected), 240, "everything at Twilio")
    assert at_local(gated) == expected
    assert at_pusher(subscriber) == expected
    assert at_twilio(gated) == expected
    subscriber.close()


@pytest.mark.timeout(600)
def test_from_the_local_room_to_backendless_through_ten_kills_and_an_outage(gated):
    expected = conversation()
    gated.start_ready()
    local, number = Local(gated.urls["local"]), iter(range(10**9))
    replay(gated, expected, lambda a, t: local.post("lobby", a, t, f"log-{next(number)}"))
    wait_until(lambda: len(at_app(gated)) >= len(expected), 240, "everything at Backendless")
    assert at_app(gated) == expected


@pytest.mark.timeout(300)
def test_edits_deletes_images_and_joins_go_from_and_to_backendless(four):
    subscriber = Subscriber(four.urls["pusher"], "chatroom", EVENTS)
    four.start_ready()
    row = four.say("dora", "from the app")
    wait_until(lambda: ("dora", "from the app") in at_local(four), 30, "the message in the local room")
    wait_until(lambda: ("dora", "from the app") in at_twilio(four), 30, "the message at Twilio")
    four.rest("PUT", "/data/ChatMessage", {"objectId": row["objectId"], "messageText": "from the app, edited"})
    wait_until(lambda: ("dora", "from the app, edited") in at_local(four), 30, "the edit in the local room")
    wait_until(lambda: ("dora", "from the app, edited") in at_twilio(four), 30, "the edit at Twilio")
    wait_until(lambda: any(e == "message_updated" for e, _ in subscriber.events), 30, "the edit at Pusher")
    four.rest("DELETE", f"/data/ChatMessage/{row['objectId']}")
    wait_until(lambda: not at_local(four) and not at_twilio(four), 30, "the delete")

    picture = b"\x89PNG\r\n\x1a\n" + random.Random(5).randbytes(200_000)
    digest = hashlib.sha256(picture).hexdigest()
    four.say("dora", "", pictureUrl=upload(four, picture))
    found = lambda: [a["sha256"] for m in four.local.messages("lobby") for a in m["attachments"]]
    wait_until(lambda: digest in found(), 60, "the picture in the local room")

    file = four.local.call("POST", "/v1/files?name=p.png", raw=picture, headers={"Content-Type": "image/png"})
    body = {"author": {"id": "ann", "name": "ann"}, "text": "look", "attachments": [{"file": file["sha256"], "name": "p.png"}]}
    posted = four.local.call("POST", "/v1/rooms/lobby/messages", body)
    look = lambda: next((row for row in four.rows() if row["messageText"] == "look"), None)
    wait_until(lambda: look() is not None, 30, "the message in the table")
    assert hashlib.sha256(urllib.request.urlopen(look()["pictureUrl"], timeout=10).read()).hexdigest() == digest
    four.local.call("PATCH", f"/v1/rooms/lobby/messages/{posted['id']}", {"text": "look here"})
    wait_until(lambda: ("ann", "look here") in at_app(four), 30, "the edit in the table")
    four.local.call("DELETE", f"/v1/rooms/lobby/messages/{posted['id']}")
    wait_until(lambda: ("ann", "look here") not in at_app(four), 30, "the delete in the table")

    # A join notice of the app is a join, not a message.
    four.say("eve", "joined")
    members = lambda: four.local.call("GET", "/v1/rooms/lobby/members").get("members", [])
    wait_until(lambda: any(m["name"] == "eve" for m in members()), 30, "eve in the local room")
    assert ("eve", "joined") not in at_local(four)
    subscriber.close()


def upload(four, data):
    boundary = "a-boundary-of-the-test"
    body = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"p.png\"\r\n"
            f"Content-Type: image/png\r\n\r\n").encode() + data + f"\r\n--{boundary}--\r\n".encode()
    request = urllib.request.Request(
        f"{four.app_url}/{APP_ID}/{APP_KEY}/files/tmpChatFiles/p.png?overwrite=true", body,
        {"Content-Type": f"multipart/form-data; boundary={boundary}"})
    return json.loads(urllib.request.urlopen(request, timeout=10).read())["fileURL"]
