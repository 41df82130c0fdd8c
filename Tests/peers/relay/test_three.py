"""A bridge of three services: the local server, Pusher and Twilio, the official clients at the far ends."""
import hashlib
import json
import random
import threading
import time
import urllib.request

import pytest
from bridge import Local, Subscriber, conversation, official, wait_until
from three import Three

EVENTS = ["new_message", "message_updated", "message_deleted", "user_typing", "user_joined", "message_read"]


@pytest.fixture
def three(tmp_path):
    services = Three(tmp_path)
    yield services
    services.stop()


@pytest.fixture
def smooth(tmp_path):
    """The same, with webhooks that arrive, and every request to Twilio held against its OpenAPI document."""
    services = Three(tmp_path, spied=True, lose=0, repeat=0, swap=0)
    yield services
    services.stop()
    assert services.spy.faults == []
    assert len(services.spy.contract.asked) > 4


def at_local(three):
    return [(m["author"]["name"], m["text"]) for m in three.local.messages("lobby") if "deleted" not in m]


def at_twilio(three):
    # Twilio takes no empty text: the conversation's one empty message is a zero-width space there.
    return [(m.author, "" if m.body in (None, "\u200b") else m.body) for m in three.at_twilio()]


def at_pusher(subscriber):
    return [(d["sender"], d["text"]) for event, d in list(subscriber.events) if event == "new_message"]


def replay(three, expected, kills, say):
    """Says everything while the relay is ended and started again so many times."""
    generator = random.Random(len(expected))
    writer = threading.Thread(target=lambda: [say(author, text) for author, text in expected])
    writer.start()
    for _ in range(kills):
        time.sleep(generator.uniform(0.2, 1.2))
        three.relay.kill()
        three.start()
    return writer


@pytest.mark.timeout(600)
def test_from_the_local_room_to_both_through_ten_kills(three):
    expected = conversation()
    subscriber = Subscriber(three.urls["pusher"], "chatroom", ["new_message"])
    three.start()
    local, number = Local(three.urls["local"]), iter(range(10**9))
    writer = replay(three, expected, 10, lambda a, t: local.post("lobby", a, t, f"log-{next(number)}"))
    writer.join()
    wait_until(lambda: len(at_pusher(subscriber)) >= len(expected), 240, "everything at Pusher")
    wait_until(lambda: three.at_twilio() and len(at_twilio(three)) >= len(expected), 240, "everything at Twilio")
    assert at_pusher(subscriber) == expected
    assert at_twilio(three) == expected
    subscriber.close()


@pytest.mark.timeout(600)
def test_from_twilio_to_both_through_ten_kills_with_half_of_the_webhooks_lost(three):
    expected = conversation()
    subscriber = Subscriber(three.urls["pusher"], "chatroom", ["new_message"])
    three.start()
    say = lambda a, t: three.conversation.messages.create(
        author=a, body=t or "\u200b", x_twilio_webhook_enabled="true")
    writer = replay(three, expected, 10, say)
    writer.join()
    wait_until(lambda: len(at_local(three)) >= len(expected), 240, "everything in the local room")
    wait_until(lambda: len(at_pusher(subscriber)) >= len(expected), 240, "everything at Pusher")
    assert at_local(three) == expected
    assert at_pusher(subscriber) == expected
    print("webhooks", three.rough.counts)
    assert min(three.rough.counts.values()) > 0
    subscriber.close()


@pytest.mark.timeout(600)
def test_from_pusher_to_both(three):
    expected = conversation()
    three.start()
    client = official(three.urls["pusher"])
    for author, text in expected:
        client.trigger("chatroom", "new_message", {"sender": author, "text": text})
    wait_until(lambda: len(at_local(three)) >= len(expected), 240, "everything in the local room")
    wait_until(lambda: len(at_twilio(three)) >= len(expected), 240, "everything at Twilio")
    assert at_local(three) == expected
    assert at_twilio(three) == expected


@pytest.mark.timeout(300)
def test_what_twilio_did_while_the_relay_was_down_converges(three):
    subscriber = Subscriber(three.urls["pusher"], "chatroom", EVENTS)
    three.start()
    first = three.conversation.messages.create(author="ann", body="first")
    gone = three.conversation.messages.create(author="ann", body="to be deleted")
    wait_until(lambda: len(at_local(three)) == 2, 60, "both messages")
    three.relay.kill()
    while_down = three.conversation.messages.create(author="bob", body="while you were out")
    while_down.update(body="while you were out, edited")
    while_down.update(body="while you were out, edited twice")
    first.update(body="first, edited")
    gone.delete()
    three.start()
    expected = [("ann", "first, edited"), ("bob", "while you were out, edited twice")]
    wait_until(lambda: at_local(three) == expected, 60, "the local room converged")

    def pusher_shows():
        texts = {}
        for event, data in list(subscriber.events):
            if event in ("new_message", "message_updated"):
                texts[data["ID"]] = data["text"]
            elif event == "message_deleted":
                texts.pop(data["ID"], None)
        return list(texts.values())

    wait_until(lambda: pusher_shows() == [text for _, text in expected], 60, "Pusher converged")
    subscriber.close()


@pytest.mark.timeout(300)
def test_no_message_appears_twice_when_every_answer_is_lost(smooth):
    smooth.start()
    texts = [f"number {i}" for i in range(6)]
    smooth.rehearse(json.dumps({"lose": 6, "match": "/Messages", "method": "POST"}))
    for i, text in enumerate(texts):
        smooth.local.post("lobby", "ann", text, f"lost-{i}")
    wait_until(lambda: len(at_twilio(smooth)) >= len(texts), 200, "everything at Twilio")
    wait_until(lambda: lanes(smooth) == 0, 60, "nothing open")
    assert at_twilio(smooth) == [("ann", text) for text in texts]


@pytest.mark.timeout(300)
def test_an_edit_and_a_deletion_survive_the_many_messages_said_after_them_during_an_outage(smooth):
    smooth.start()
    first = smooth.conversation.messages.create(author="ann", body="first")
    gone = smooth.conversation.messages.create(author="ann", body="to be deleted")
    wait_until(lambda: len(at_local(smooth)) == 2, 60, "both messages")
    smooth.relay.kill()
    first.update(body="first, edited")
    gone.delete()
    texts = [f"number {i}" for i in range(1200)]
    for text in texts:
        smooth.conversation.messages.create(author="bob", body=text)
    smooth.start()
    expected = [("ann", "first, edited")] + [("bob", text) for text in texts]
    wait_until(lambda: len(at_local(smooth)) == len(expected) and at_local(smooth) == expected, 120, "everything")


@pytest.mark.timeout(300)
def test_every_kind_of_write_is_done_once_when_its_answer_is_lost(smooth):
    smooth.start()
    local, twilio = smooth.local, smooth.conversation
    people = lambda: [p.identity for p in twilio.participants.list()]
    kept, gone = [local.post("lobby", "ann", text, text)["id"] for text in ("to edit", "to delete")]
    wait_until(lambda: len(smooth.at_twilio()) == 2, 60, "both messages")

    def lose(method, match, act, done, what):
        smooth.rehearse(json.dumps({"lose": 2, "match": match, "method": method}))
        act()
        wait_until(done, 60, what)

    lose("POST", "/Messages/", lambda: local.call("PATCH", f"/v1/rooms/lobby/messages/{kept}", {"text": "edited"}),
         lambda: at_twilio(smooth)[0] == ("ann", "edited"), "the edit")
    lose("DELETE", "/Messages/", lambda: local.call("DELETE", f"/v1/rooms/lobby/messages/{gone}"),
         lambda: len(smooth.at_twilio()) == 1, "the deletion")
    lose("POST", "/Participants", lambda: local.call("PUT", "/v1/rooms/lobby/members/zoe", {"name": "Zoe"}),
         lambda: people().count("here:zoe") == 1, "zoe's coming")
    lose("DELETE", "/Participants", lambda: local.call("DELETE", "/v1/rooms/lobby/members/zoe"),
         lambda: "here:zoe" not in people(), "zoe's going")
    picture = random.Random(5).randbytes(50_000)
    file = local.call("POST", "/v1/files?name=p.png", raw=picture, headers={"Content-Type": "image/png"})
    body = {"author": {"id": "ann", "name": "ann"}, "text": "", "attachments": [{"file": file["sha256"], "name": "p.png"}]}
    lose("POST", "/Media", lambda: local.call("POST", "/v1/rooms/lobby/messages", body),
         lambda: [len(m.media or []) for m in smooth.at_twilio()] == [0, 1], "the picture")
    wait_until(lambda: lanes(smooth) == 0, 60, "nothing open")
    assert [len(m.media or []) for m in smooth.at_twilio()] == [0, 1]


def lanes(three):
    request = urllib.request.Request(
        three.relay.urls["relay"] + "/status", headers={"Authorization": "Bearer demo-token"})
    status = json.loads(urllib.request.urlopen(request, timeout=10).read())
    assert all(lane["dead"] == 0 for lane in status["lanes"]), status
    return sum(lane["pending"] for lane in status["lanes"])


@pytest.mark.timeout(300)
def test_images_edits_deletes_members_and_reads_go_in_all_directions(smooth):
    subscriber = Subscriber(smooth.urls["pusher"], "chatroom", EVENTS)
    smooth.start()
    picture = b"\x89PNG\r\n\x1a\n" + random.Random(3).randbytes(300_000)
    digest = hashlib.sha256(picture).hexdigest()
    file = smooth.local.call("POST", "/v1/files?name=p.png", raw=picture, headers={"Content-Type": "image/png"})
    body = {"author": {"id": "ann", "name": "ann"}, "text": "look", "attachments": [{"file": file["sha256"], "name": "p.png"}]}
    posted = smooth.local.call("POST", "/v1/rooms/lobby/messages", body)
    wait_until(lambda: len(smooth.at_twilio()) == 2, 60, "text and picture at Twilio")
    media = smooth.at_twilio()[1].media[0]
    assert (media["content_type"], media["size"]) == ("image/png", len(picture))
    assert hashlib.sha256(fetch_media(smooth, media["sid"])).hexdigest() == digest
    wait_until(lambda: any(e == "new_message" for e, _ in subscriber.events), 30, "the picture at Pusher")
    url = next(d["image"] for e, d in subscriber.events if e == "new_message")
    assert hashlib.sha256(urllib.request.urlopen(url, timeout=10).read()).hexdigest() == digest

    # An edit in the local room; the picture stays where it is.
    smooth.local.call("PATCH", f"/v1/rooms/lobby/messages/{posted['id']}", {"text": "look here"})
    wait_until(lambda: [m.body for m in smooth.at_twilio()][:1] == ["look here"], 30, "the edit at Twilio")
    wait_until(lambda: any(e == "message_updated" and d["text"] == "look here" for e, d in subscriber.events), 30)

    # From Pusher: an edit and a delete by the app's own id.
    client = official(smooth.urls["pusher"])
    client.trigger("chatroom", "new_message", {"ID": 7, "sender": "bob", "text": "from pusher"})
    wait_until(lambda: ("bob", "from pusher") in at_local(smooth) and ("bob", "from pusher") in at_twilio(smooth), 30)
    client.trigger("chatroom", "message_updated", {"ID": 7, "sender": "bob", "text": "from pusher, edited"})
    wait_until(lambda: ("bob", "from pusher, edited") in at_local(smooth), 30)
    wait_until(lambda: ("bob", "from pusher, edited") in at_twilio(smooth), 30)
    client.trigger("chatroom", "message_deleted", {"ID": "7"})
    wait_until(lambda: not any("from pusher" in t for _, t in at_local(smooth) + at_twilio(smooth)), 30)

    # From Twilio: a message, read by a participant; a member who joins; a picture.
    smooth.conversation.participants.create(identity="carol", x_twilio_webhook_enabled="true")
    members = lambda: smooth.local.call("GET", "/v1/rooms/lobby/members")["members"]
    wait_until(lambda: any(m["name"] == "carol" for m in members()), 30, "carol in the local room")
    wait_until(lambda: any(e == "user_joined" for e, _ in subscriber.events), 30, "carol at Pusher")
    message = smooth.conversation.messages.create(author="carol", body="hello", x_twilio_webhook_enabled="true")
    wait_until(lambda: ("carol", "hello") in at_local(smooth), 30)
    carol = smooth.conversation.participants.list()[-1]
    smooth.conversation.participants(carol.sid).update(
        last_read_message_index=message.index, x_twilio_webhook_enabled="true")
    reads = lambda: smooth.local.call("GET", "/v1/rooms/lobby/reads")["reads"]
    wait_until(lambda: any("carol" in json.dumps(r) for r in reads()), 30, "the read mark in the local room")
    sid = upload_media(smooth, picture)
    smooth.conversation.messages.create(author="carol", media_sid=sid, x_twilio_webhook_enabled="true")
    found = lambda: [a["sha256"] for m in smooth.local.messages("lobby") for a in m["attachments"]]
    wait_until(lambda: found().count(digest) == 2, 60, "the picture in the local room")
    subscriber.close()


def credentials():
    import base64

    from three import ACCOUNT, TWILIO
    return "Basic " + base64.b64encode(f"{ACCOUNT}:{TWILIO['auth_token']}".encode()).decode()


def fetch_media(three, sid):
    from three import SERVICE
    request = urllib.request.Request(
        f"{three.urls['twilio']}/v1/Services/{SERVICE}/Media/{sid}", headers={"Authorization": credentials()})
    record = json.loads(urllib.request.urlopen(request, timeout=10).read())
    return urllib.request.urlopen(record["links"]["content_direct_temporary"], timeout=10).read()


def upload_media(three, data):
    from three import SERVICE
    request = urllib.request.Request(
        f"{three.urls['twilio']}/v1/Services/{SERVICE}/Media?Filename=c.png", data,
        {"Authorization": credentials(), "Content-Type": "image/png"})
    return json.loads(urllib.request.urlopen(request, timeout=10).read())["sid"]
