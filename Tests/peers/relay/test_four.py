"""A bridge of all four services."""
import hashlib
import json
import random
import threading
import time
import urllib.request

import pytest
from bridge import Local, Subscriber, conversation, official, wait_until
from four import APP_ID, APP_KEY, CHANNEL, Four
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


def kill_and_part(four, kills):
    """Ends the relay so many times and starts it again; the Backendless side is out of reach for thirty seconds."""
    generator = random.Random(4)
    for kill in range(10):
        if kill == 5:
            four.gate.shut()
            time.sleep(30)
            four.gate.is_open = True
        time.sleep(generator.uniform(0.2, 1.0))
        if kill < kills:
            four.relay.kill()
            four.start()


def wait_for_all(there, count):
    """Looks seldom: reading everything is work for whoever should be writing it."""
    end = time.monotonic() + 900
    while len(there()) < count:
        assert time.monotonic() < end, len(there())
        time.sleep(1)


def sayer(four, source):
    """How somebody says something at that service."""
    if source == "backendless":
        return four.say
    if source == "twilio":
        return lambda author, text: four.conversation.messages.create(author=author, body=text or "\u200b")
    if source == "pusher":
        client = official(four.urls["pusher"])
        return lambda author, text: client.trigger("chatroom", "new_message", {"sender": author, "text": text})
    local, number = Local(four.urls["local"]), iter(range(10**9))
    return lambda author, text: local.post("lobby", author, text, f"log-{next(number)}")


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("source", ["local", "pusher", "twilio", "backendless"])
def test_a_conversation_reaches_the_three_others_through_ten_kills_and_an_outage(gated, source):
    expected = conversation()
    subscriber = Subscriber(gated.urls["pusher"], "chatroom", ["new_message"])
    gated.start_ready()
    say = sayer(gated, source)
    writer = threading.Thread(target=lambda: [say(author, text) for author, text in expected])
    writer.start()
    # What is said at Pusher while nobody listens is lost: it keeps nothing.
    kill_and_part(gated, kills=0 if source == "pusher" else 10)
    writer.join()
    for there in (lambda: at_local(gated), lambda: at_pusher(subscriber), lambda: at_twilio(gated), lambda: at_app(gated)):
        wait_for_all(there, len(expected))
        assert there() == expected
    subscriber.close()


@pytest.mark.timeout(900)
def test_services_that_are_killed_and_started_again_lose_and_repeat_nothing(four):
    expected = [("ann", f"number {number}") for number in range(300)]
    four.start_ready()

    def until_it_succeeds(*call):
        while True:
            try:
                return four.rest(*call)
            except OSError:
                time.sleep(0.05)

    def write():
        for number, (author, text) in enumerate(expected):
            row = {"objectId": f"row-{number}", "userName": author, "messageText": text, "channel": CHANNEL}
            saved = until_it_succeeds("PUT", "/data/ChatMessage/upsert", row)
            until_it_succeeds("POST", f"/messaging/{CHANNEL}", {"message": saved, "publisherId": author})

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(3):
        time.sleep(1)
        four.kill_services()
    writer.join()
    four.local = Local(four.urls["local"])
    for there in (lambda: at_local(four), lambda: at_twilio(four), lambda: at_app(four)):
        wait_for_all(there, len(expected))
        assert there() == expected


@pytest.mark.timeout(300)
@pytest.mark.parametrize("method, match", [("PUT", "/data/"), ("POST", "/messaging/")])
def test_what_is_saved_or_published_and_whose_answer_is_lost_is_there_once(four, method, match):
    four.start_ready()
    four.rehearse({"lose": 6, "match": match, "method": method})
    texts = [f"number {number}" for number in range(6)]
    ids = [four.local.post("lobby", "ann", text, text)["id"] for text in texts]
    wait_until(lambda: len(at_app(four)) >= len(texts), 120, "everything in the table")
    assert at_app(four) == [("ann", text) for text in texts]
    four.rehearse({"lose": 2, "match": match, "method": "PUT"})
    four.local.call("PATCH", f"/v1/rooms/lobby/messages/{ids[0]}", {"text": "edited"})
    wait_until(lambda: at_app(four)[0] == ("ann", "edited"), 60, "the edit")
    four.rehearse({"lose": 2, "match": match, "method": "DELETE"})
    four.local.call("DELETE", f"/v1/rooms/lobby/messages/{ids[1]}")
    expected = [("ann", text) for text in ["edited"] + texts[2:]]
    wait_until(lambda: at_app(four) == expected, 60, "the deletion")
    # And nothing of it came back.
    four.say("bob", "the end")
    wait_until(lambda: ("bob", "the end") in at_local(four), 60, "the last message")
    assert at_local(four) == expected + [("bob", "the end")]


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
