"""Export, import and migrate with the built binary, between the services that keep a history."""
import json
import os
import pathlib
import random
import signal
import time

import pytest

from moving import interrupt, wait_for
from served import ROOT

CHATLOG = pathlib.Path(os.environ.get("FERRY_CHATLOG") or ROOT.parent / "shared/data/chatlog.jsonl")
START = 1470366650123
PEOPLE = [{"id": "ada", "name": "ada"}, {"id": "u2", "name": "bob ü"}, {"id": "c", "name": "cid"}]
ODD = ["plain", " spaces ", "two\nlines", "e\u0301 \u00e9", "👩‍👩‍👧‍👦", "\"quotes\" \\ {}", "<b>&amp;</b>", "0"]


def conversation(count, seed=1, edits=True):
    """Items of a room's past: messages with odd texts, edits and deletions among them."""
    generator = random.Random(seed)
    items, alive = [], []
    for number in range(count):
        time_ = START + number * 1777
        key = f"m{number}"
        item = {"kind": "message", "key": key, "time": time_, "by": generator.choice(PEOPLE),
                "text": f"{generator.choice(ODD)} {number}"}
        if alive and generator.random() < 0.1:
            item["reply_to"] = generator.choice(alive)
        items.append(item)
        alive.append(key)
        if edits and generator.random() < 0.1:
            items.append({"kind": "edit", "key": f"e{number}", "of": generator.choice(alive), "time": time_ + 500,
                          "by": PEOPLE[0], "text": f"edited {number}"})
        if edits and generator.random() < 0.05:
            gone = generator.choice(alive)
            alive.remove(gone)
            items.append({"kind": "delete", "key": f"d{number}", "of": gone, "time": time_ + 900})
    return items


def shown(messages, exact=True):
    return [(m["author"]["name"], m["text"], m["time"], bool(m["edited"]) if not exact else m["edited"])
            for m in messages]


@pytest.mark.parametrize("there", ["here:copy", "support:copy", "app:copy"])
def test_a_room_moves_whole_and_only_once(services, there):
    services.fill("lobby", conversation(150))
    original = services.history("here:lobby")
    summary = services.summary("migrate", "here:lobby", there)
    assert summary["state"] == "done" and summary["messages"] >= len(original)
    assert shown(services.history(there)) == shown(original)
    # With its state, and without.
    for state in ([], ["--state", services.folder / "elsewhere"]):
        again = services.summary("migrate", "here:lobby", there, *state)
        assert again["messages"] == 0 or there == "here:copy", again
        assert shown(services.history(there)) == shown(original)


@pytest.mark.parametrize("there", ["here:copy", "support:copy", "app:copy"])
def test_an_archive_goes_round_and_comes_back_equal(services, there):
    services.fill("lobby", conversation(120))
    services.run("export", "here:lobby", "first.ferry")
    services.run("import", "first.ferry", there)
    services.run("export", there, "second.ferry")
    services.run("import", "second.ferry", "here:back")
    assert shown(services.history("here:back")) == shown(services.history("here:lobby"))
    replies = [bool(m["reply_to"]) for m in services.history("here:lobby")]
    assert [bool(m["reply_to"]) for m in services.history("here:back")] == replies
    # Both again: nothing is new.
    assert services.summary("import", "first.ferry", there)["messages"] == 0
    assert services.summary("export", there, "second.ferry")["messages"] == 0


@pytest.mark.parametrize("there", ["here:log", "support:log", "app:log"])
@pytest.mark.skipif(not CHATLOG.exists(), reason="no chat log here")
def test_a_chat_log_keeps_its_times_actions_joins_and_leaves(services, there):
    lines = [json.loads(line) for line in CHATLOG.read_text().splitlines()]
    said = [line for line in lines if line["kind"] in ("message", "action")]
    summary = services.summary("import", CHATLOG, there, "--state", services.folder / "state")
    assert summary["messages"] == len(said)
    history = services.history(there)
    assert [(m["author"]["name"], m["text"], m["time"]) for m in history] == [
        (line["author"], line["text"], line["time"].replace("Z", ".000Z")) for line in said]
    services.run("export", there, "log.ferry")
    records = [json.loads(line) for path in sorted((services.folder / "log.ferry/data/log").iterdir())
               for line in path.read_text().splitlines()]
    assert sum(record.get("action", False) for record in records) == sum(line["kind"] == "action" for line in lines)
    if not there.startswith("support"):
        for kind in ("join", "leave"):
            kept = [(r["author"]["name"], r["time"]) for r in records if r["kind"] == kind]
            assert len(kept) <= sum(line["kind"] == kind for line in lines)
            assert len(kept) > 250
            if there.startswith("here"):
                told = {(line["author"], line["time"].replace("Z", ".000Z")) for line in lines if line["kind"] == kind}
                assert set(kept) == told


@pytest.mark.parametrize("there", ["here:copy", "support:copy", "app:copy"])
def test_killed_at_random_moments_it_goes_on(services, there):
    kills = int(os.environ.get("FERRY_KILLS", "8"))
    services.fill("lobby", conversation(400, seed=3))
    original = services.history("here:lobby")
    generator = random.Random(5)
    killed = 0
    for _ in range(kills):
        process = services.begin("migrate", "here:lobby", there)
        time.sleep(generator.random() * 0.6)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            killed += 1
        process.communicate()
    services.run("migrate", "here:lobby", there)
    assert shown(services.history(there)) == shown(original)


def test_an_export_that_is_killed_goes_on(services):
    kills = int(os.environ.get("FERRY_KILLS", "8"))
    services.fill("lobby", conversation(3000, seed=4))
    generator = random.Random(6)
    for number in range(kills):
        process = services.begin("export", "here:lobby", "a.ferry")
        time.sleep(generator.random() * 0.4)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    services.run("export", "here:lobby", "a.ferry")
    services.run("import", "a.ferry", "here:back")
    assert shown(services.history("here:back")) == shown(services.history("here:lobby"))


@pytest.mark.parametrize("service,there", [("twilio", "support:copy"), ("backendless", "app:copy")])
@pytest.mark.parametrize("plan", [
    {"fail": 5, "status": 503}, {"fail": 3, "status": 429, "retry_after": 1}, {"drop": 4}, {"lose": 4}])
def test_outages_end_in_the_destination(services, service, there, plan):
    services.fill("lobby", conversation(60, seed=7))
    services.run("migrate", "here:lobby", there, "--until", "2016-08-05T03:11:20Z")
    services.rehearse(service, **plan)
    summary = services.summary("migrate", "here:lobby", there)
    assert summary["state"] == "done" and not [each for each in summary["lost"] if each.startswith("message")]
    assert shown(services.history(there)) == shown(services.history("here:lobby"))


def test_interrupting_ends_cleanly_and_says_how_to_go_on(services):
    services.fill("lobby", conversation(500))
    process = services.begin("migrate", "here:lobby", "support:copy", "--rate", "20")
    wait_for(lambda: process.poll() is None and len(services.run("history", "support:copy", code=None).splitlines()) > 3)
    code, _, errors = interrupt(process)
    assert code == 130 and "To go on" in errors
    services.run("migrate", "here:lobby", "support:copy")
    assert shown(services.history("support:copy")) == shown(services.history("here:lobby"))


def test_files_travel_and_one_that_is_gone_is_told(services):
    picture = services.folder / "cat.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + os.urandom(300_000))
    services.run("post", "here:lobby", "look", "--image", picture, "--as", "ann")
    services.fill("lobby", [{
        "kind": "message", "key": "gone", "time": START, "by": PEOPLE[0], "text": "lost",
        "attachments": [{"url": services.urls["local"] + "/nowhere.png", "name": "gone.png"}]}])
    report = services.folder / "report.jsonl"
    services.run("export", "here:lobby", "files.ferry", "--report", report)
    assert [json.loads(line)["what"] for line in report.read_text().splitlines()] == ["attachment"]
    sums = set()
    for there in ("here:copy", "support:copy", "app:copy"):
        services.run("import", "files.ferry", there)
        services.run("export", there, "again.ferry", "--state", services.folder / there.replace(":", "-"))
        blobs = [path.name for path in (services.folder / "again.ferry/data/blobs").rglob("*") if path.is_file()]
        sums.add(tuple(blobs))
        os.rename(services.folder / "again.ferry", services.folder / f"again-{there[:4]}.ferry")
    assert len(sums) == 1 and len(sums.pop()) == 1


def test_following_while_the_source_is_written_to(services):
    count = int(os.environ.get("FERRY_FOLLOWED", "300"))
    services.fill("followed", conversation(300, seed=9))
    process = services.begin("migrate", "here:followed", "here:follower", "--follow")
    generator = random.Random(10)
    ids = [m["id"] for m in services.local("GET", "/v1/rooms/followed/messages?limit=100")["messages"] if not m.get("deleted")]
    for number in range(count):
        started = time.monotonic()
        posted = services.local("POST", "/v1/rooms/followed/messages", {"author": PEOPLE[0], "text": f"live {number}"})
        ids.append(posted["id"])
        if generator.random() < 0.2:
            services.local("PATCH", f"/v1/rooms/followed/messages/{generator.choice(ids)}", {"text": f"edited live {number}"})
        time.sleep(max(0, 0.02 - (time.monotonic() - started)))
    original = [(m["author"]["name"], m["text"], m["time"]) for m in services.history("here:followed")]

    def equal():
        assert process.poll() is None, process.communicate()
        return [(m["author"]["name"], m["text"], m["time"]) for m in services.history("here:follower")] == original
    wait_for(equal)
    code, _, errors = interrupt(process, signal.SIGTERM)
    assert code == 130, errors
    # The bridge takes over on the same journal: nothing doubles, and an edit of an old message finds its copy.
    relay = services.begin("relay")
    services.local("PATCH", f"/v1/rooms/followed/messages/{ids[0]}", {"text": "edited at last"})
    services.local("POST", "/v1/rooms/followed/messages", {"author": PEOPLE[1], "text": "the day after"})
    original = [m["text"] for m in services.history("here:followed")]
    wait_for(lambda: [m["text"] for m in services.history("here:follower")] == original)
    interrupt(relay, signal.SIGTERM)


def test_what_is_odd_ends_in_the_report_or_the_destination(services):
    huge = "0123456789abcdef" * int(os.environ.get("FERRY_HUGE", "65536"))
    lines = [
        {"time": "2016-08-05T03:10:50Z", "kind": "message", "author": "", "text": "nameless"},
        {"time": "2016-08-05T03:10:50Z", "kind": "message", "author": "ada", "text": "same time"},
        {"time": "2016-08-05T03:10:51Z", "kind": "message", "author": "ada", "text": huge}]
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    text += b'{"time": "2016-08-05T03:10:52Z", "kind": "message", "author": "bob", "text": "b\xffd"}\n{broken\n'
    (services.folder / "odd.jsonl").write_bytes(text)
    for there in ("here:odd", "support:odd", "app:odd"):
        summary = services.summary("import", "odd.jsonl", there, code=65)
        assert summary["state"] == "done" and summary["messages"] == 4
        history = services.history(there)
        assert "".join(m["text"] for m in history if m["text"].startswith(("0123", "4567", "89ab", "cdef"))) in huge
        assert {"same time", "nameless"} <= {m["text"] for m in history}
