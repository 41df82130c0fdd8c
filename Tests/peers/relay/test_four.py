"""A bridge of all four services."""
import random
import threading
import time

import pytest
from bridge import Local, happenings, wait_until
from corners import NAMES, corners
from four import CHANNEL, Four
from test_replay import Gate
from watching import digest, fetch


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


def wait_for(there, expected, what):
    """Looks seldom: reading everything is work for whoever should be writing it."""
    end = time.monotonic() + 900
    while (found := there()) != expected:
        if time.monotonic() > end:
            extra, missing = [m for m in found if m not in expected], [m for m in expected if m not in found]
            raise AssertionError(f"{what}: {len(found)} of {len(expected)}; {extra[:5]} for {missing[:5]}")
        time.sleep(1)


def tell(corner, events):
    """Everything that happens at one service, some of it changed a little later. Returns what is left of it,
    and who is there."""
    # Who comes twice, or goes without having come, is nobody's business.
    present, said = set(), []
    for number, (kind, author, text) in enumerate(events):
        if kind == "say":
            said.append([corner.say(author, text), author, text])
        elif kind == "join" and author not in present:
            corner.join(author)
            present.add(author)
        elif kind == "leave" and author in present:
            corner.leave(author)
            present.discard(author)
        if number % 40 == 39 and len(said) > 5:
            changed = said[-5]
            changed[2] += " (corrected)"
            corner.edit(*changed)
        if number % 60 == 59 and len(said) > 5:
            corner.delete(said.pop(-3)[0])
    return [(author, text) for _, author, text in said], present


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("source", NAMES)
def test_a_conversation_reaches_the_three_others_through_ten_kills_and_an_outage(gated, source):
    gated.start_ready()
    all = corners(gated)
    left = []
    writer = threading.Thread(target=lambda: left.extend(tell(all[source], happenings())))
    writer.start()
    # What is said at Pusher while nobody listens is lost: it keeps nothing.
    kill_and_part(gated, kills=0 if source == "pusher" else 10)
    writer.join()
    expected, present = left
    places = {
        "local": lambda: at_local(gated), "pusher": lambda: list(all["pusher"].shown().values()),
        "twilio": lambda: at_twilio(gated), "backendless": lambda: at_app(gated)}
    for name, there in places.items():
        wait_for(there, expected, f"everything from {source} at {name}")
    # Of who came and went while the relay was away the local room alone tells afterwards.
    if source == "local":
        wait_until(lambda: all["twilio"].members() >= present, 120, "the members of the local room at Twilio")
    for corner in all.values():
        corner.close()


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
        wait_for(there, expected, "everything")


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
def test_a_text_with_a_picture_is_one_row_that_is_edited_and_deleted(four):
    four.start_ready()
    picture = b"\x89PNG\r\n\x1a\n" + random.Random(5).randbytes(200_000)
    file = four.local.call("POST", "/v1/files?name=p.png", raw=picture, headers={"Content-Type": "image/png"})
    body = {"author": {"id": "ann", "name": "ann"}, "text": "look", "attachments": [{"file": file["sha256"], "name": "p.png"}]}
    posted = four.local.call("POST", "/v1/rooms/lobby/messages", body)
    wait_until(lambda: at_app(four) == [("ann", "look")], 30, "the message in the table")
    assert digest(fetch(four.rows()[0]["pictureUrl"])) == digest(picture)
    four.local.call("PATCH", f"/v1/rooms/lobby/messages/{posted['id']}", {"text": "look here"})
    wait_until(lambda: at_app(four) == [("ann", "look here")], 30, "the edit in the table")
    four.local.call("DELETE", f"/v1/rooms/lobby/messages/{posted['id']}")
    wait_until(lambda: at_app(four) == [], 30, "the delete in the table")
