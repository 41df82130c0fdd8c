"""Every operation of the OpenAPI document, against the running server."""
import hashlib
import json
import os
import pathlib
import random
import urllib.parse

import pytest
import yaml

ROOM = "/v1/rooms/{room}"
MESSAGES = ROOM + "/messages"
MESSAGE = MESSAGES + "/{id}"
REACTION = MESSAGE + "/reactions/{emoji}"
STAMP = {"bridge": "b", "origin": "site:chat", "id": "7", "revision": 0, "part": 0}
ADA = {"id": "ada", "name": "Ada"}
VERBS = ("get", "put", "post", "patch", "delete")


DOCUMENT = yaml.safe_load(
    (pathlib.Path(__file__).parents[3] / "providers/local/openapi.yaml").read_text(encoding="utf-8"))


@pytest.fixture
def document():
    return DOCUMENT


def operations(document):
    return [(verb.upper(), path) for path, item in document["paths"].items() for verb in VERBS if verb in item]


def test_every_declared_answer_is_given(api, document):
    everything(api)
    declared = {
        (method, path, status) for method, path in operations(document)
        for status in document["paths"][path][method.lower()]["responses"]}
    # Upgrades and what is no upgrade are in test_local_live.py.
    missing = {each for each in declared - api.covered if each[1] != "/v1/live"}
    assert not missing


def everything(api):
    room = {"room": "a room/ä"}
    api.call(200, "GET", "/healthz", token=None)

    # Rooms
    api.call(404, "GET", ROOM, **room)
    api.call(201, "PUT", ROOM, {"title": "The room"}, **room)
    api.call(200, "PUT", ROOM, **room)
    api.call(403, "PUT", ROOM, {"title": "Mine"}, token="adas", **room)
    api.call(400, "PUT", ROOM, {"title": "x" * 257}, **room)
    assert api.call(200, "GET", ROOM, **room)["title"] == "The room"
    assert api.call(200, "GET", "/v1/rooms", query={"limit": 1})["next"] == room["room"]
    assert not api.call(200, "GET", "/v1/rooms", query={"after": room["room"]})["rooms"]
    api.call(400, "GET", "/v1/rooms", query={"limit": "all"})

    # Files
    png = b"\x89PNG\r\n\x1a\n" + os.urandom(5 << 20)
    sha256 = hashlib.sha256(png).hexdigest()
    stored = api.call(201, "POST", "/v1/files", png, query={"name": "ä.png", "sha256": sha256})
    assert (stored["sha256"], stored["type"], stored["size"]) == (sha256, "image/png", len(png))
    assert api.call(200, "GET", "/v1/files/{sha256}", sha256=sha256) == png
    api.call(304, "GET", "/v1/files/{sha256}", headers={"If-None-Match": f'"{sha256}"'}, sha256=sha256)
    api.call(404, "GET", "/v1/files/{sha256}", sha256="0" * 64)
    api.call(404, "GET", "/v1/files/{sha256}", sha256="../local.db")
    api.call(400, "POST", "/v1/files", b"other", query={"sha256": sha256})
    api.call(415, "POST", "/v1/files", b"--x--", headers={"Content-Type": "multipart/form-data; boundary=x"})
    api.call(413, "POST", "/v1/files", os.urandom(6 << 20 | 1))

    # Messages
    draft = {
        "client_id": "k1", "author": {**ADA, "avatar": "https://example.org/a.png"}, "text": "hé\u0000llo 👋🏽\n",
        "format": "markdown", "time": "2016-08-05T03:10:50.123Z", "mentions": ["bob"], "stamp": STAMP,
        "attributes": {"any": [1, 2.5, None, True, "x"]},
        "attachments": [{"file": sha256, "name": "ä.png"}, {"url": "https://example.org/x", "type": "text/html"}]}
    message = api.call(201, "POST", MESSAGES, draft, **room)
    for name in draft.keys() - {"attachments"}:
        assert message[name] == draft[name], name
    assert message["attachments"][0] == {
        "file": sha256, "name": "ä.png", "sha256": sha256, "size": len(png), "type": "image/png"}
    assert api.call(200, "POST", MESSAGES, {**draft, "text": "again"}, **room) == message
    batch = {"messages": [{"author": ADA, "text": str(n), "client_id": f"b{n}"} for n in range(256)]}
    posted = api.call(201, "POST", MESSAGES, batch, **room)
    assert api.call(200, "POST", MESSAGES, batch, **room) == posted
    reply = api.call(201, "POST", MESSAGES, {"text": "yes", "reply_to": message["id"]}, token="adas", **room)
    assert reply["author"] == {"id": "ada", "name": "ada"} and reply["reply_to"] == message["id"]
    api.call(400, "POST", MESSAGES, {"author": ADA, "text": 5}, **room)
    api.call(403, "POST", MESSAGES, {"author": {"id": "bob"}, "text": "x"}, token="adas", **room)
    api.call(413, "POST", MESSAGES, {"author": ADA, "text": "x" * 65537}, **room)
    api.call(415, "POST", MESSAGES, b"text=x", headers={"Content-Type": "text/plain"}, **room)
    page = api.call(200, "GET", MESSAGES, query={"limit": 2}, **room)
    assert [m["text"] for m in page["messages"]] == ["yes", "255"]
    older = api.call(200, "GET", MESSAGES, query={"limit": 500, "before": page["next"]}, **room)
    assert len(older["messages"]) == 256 and "next" not in older
    opened = api.call(200, "GET", MESSAGES, query={"user": "bob", "limit": 1}, **room)
    assert opened["title"] == "The room" and opened["unread"] == 100 and "read" not in opened and "user" not in opened
    assert api.call(200, "GET", MESSAGES, query={"user": "bob"}, token="adas", **room)["user"] == "ada"
    found = api.call(200, "GET", MESSAGES, query={"text": "YE"}, **room)
    assert [m["text"] for m in found["messages"]] == ["yes"] and found["sequence"]
    mine = api.call(200, "GET", "/v1/rooms", token="adas")
    # What one wrote oneself is not unread.
    assert mine["user"] == "ada" and mine["rooms"][0]["unread"] == 0
    assert api.call(200, "GET", ROOM, query={"user": "bob"}, **room)["unread"] == 100
    found = api.call(200, "GET", MESSAGES, query={"client_id": ["b9", "nothing", "k1"]}, **room)
    assert [m["id"] for m in found["messages"]] == [posted["messages"][9]["id"], message["id"]]
    api.call(400, "GET", MESSAGES, query={"order": "best"}, **room)
    api.call(404, "GET", MESSAGES, room="nowhere")

    # One message
    here = {**room, "id": message["id"]}
    assert api.call(200, "GET", MESSAGE, **here) == message
    edited = api.call(200, "PATCH", MESSAGE, {"text": "hello", "revision": 0, "stamp": STAMP}, **here)
    assert edited["revision"] == 1 and edited["edited"]
    api.call(409, "PATCH", MESSAGE, {"text": "late", "revision": 0}, **here)
    api.call(400, "PATCH", MESSAGE, {}, **here)
    api.call(413, "PATCH", MESSAGE, {"text": "x" * 65537}, **here)
    api.call(415, "PATCH", MESSAGE, b"x", headers={"Content-Type": "text/plain"}, **here)
    other = {**room, "id": posted["messages"][0]["id"]}
    api.call(204, "PUT", REACTION, {"by": ADA}, emoji="👍🏽", **other)
    api.call(204, "PUT", REACTION, query={"user": "bob"}, emoji="👍🏽", **other)
    assert [user["id"] for user in api.call(200, "GET", MESSAGE, **other)["reactions"][0]["users"]] == ["ada", "bob"]
    api.call(204, "DELETE", REACTION, {"by": ADA, "stamp": STAMP}, emoji="👍🏽", **other)
    for verb in ("PUT", "DELETE"):
        api.call(400, verb, REACTION, emoji="x", **other)
        api.call(403, verb, REACTION, {"by": {"id": "bob"}}, token="adas", emoji="x", **other)
        api.call(404, verb, REACTION, {"by": ADA}, emoji="x", id="1", **room)
        api.call(415, verb, REACTION, b"x", headers={"Content-Type": "text/plain"}, emoji="x", **other)
    bobs = api.call(201, "POST", MESSAGES, {"author": {"id": "bob"}, "text": "bob's"}, **room)
    api.call(403, "PATCH", MESSAGE, {"text": "ada's"}, token="adas", id=bobs["id"], **room)
    api.call(403, "DELETE", MESSAGE, token="adas", id=bobs["id"], **room)
    api.call(415, "DELETE", MESSAGE, b"x", headers={"Content-Type": "text/plain"}, id=bobs["id"], **room)
    api.call(204, "DELETE", MESSAGE, token="mods", id=bobs["id"], **room)
    api.call(204, "DELETE", MESSAGE, {"by": ADA, "stamp": STAMP}, **here)
    assert api.call(200, "GET", MESSAGE, **here)["deleted"]
    api.call(404, "PATCH", MESSAGE, {"text": "x"}, **here)
    api.call(404, "GET", MESSAGE, id="1", **room)
    api.call(404, "DELETE", MESSAGE, id="1", **room)

    # Members
    member = ROOM + "/members/{user}"
    api.call(201, "PUT", member, {"name": "Bob", "stamp": STAMP}, user="bob", **room)
    api.call(200, "PUT", member, user="bob", **room)
    api.call(403, "PUT", member, user="bob", token="adas", **room)
    api.call(400, "PUT", member, {"avatar": "javascript:x"}, user="bob", **room)
    api.call(415, "PUT", member, b"x", headers={"Content-Type": "text/plain"}, user="bob", **room)
    assert api.call(200, "GET", ROOM + "/members", **room)["members"] == [{"id": "bob", "name": "bob"}]
    api.call(404, "GET", ROOM + "/members", room="nowhere")
    api.call(403, "DELETE", member, user="bob", token="adas", **room)
    api.call(415, "DELETE", member, b"x", headers={"Content-Type": "text/plain"}, user="bob", **room)
    api.call(204, "DELETE", member, {"stamp": STAMP}, user="bob", **room)
    api.call(404, "DELETE", member, user="bob", room="nowhere")

    # Marks
    read = ROOM + "/reads/{user}"
    api.call(204, "PUT", read, {"id": other["id"], "state": "delivered", "name": "Bob"}, user="bob", **room)
    api.call(204, "PUT", read, {"id": other["id"], "stamp": STAMP}, user="bob", **room)
    assert len(api.call(200, "GET", ROOM + "/reads", **room)["reads"]) == 2
    api.call(404, "GET", ROOM + "/reads", room="nowhere")
    api.call(400, "PUT", read, {}, user="bob", **room)
    api.call(403, "PUT", read, {"id": other["id"]}, user="bob", token="adas", **room)
    api.call(404, "PUT", read, {"id": "1"}, user="bob", **room)
    api.call(415, "PUT", read, b"x", headers={"Content-Type": "text/plain"}, user="bob", **room)
    typing = ROOM + "/typing"
    api.call(204, "POST", typing, {"by": ADA, "on": True, "stamp": STAMP}, **room)
    api.call(204, "POST", typing, token="adas", **room)
    api.call(400, "POST", typing, {"on": True}, **room)
    api.call(403, "POST", typing, {"by": {"id": "bob"}}, token="adas", **room)
    api.call(415, "POST", typing, b"x", headers={"Content-Type": "text/plain"}, **room)
    api.call(415, "PUT", ROOM, b"x", headers={"Content-Type": "text/plain"}, **room)

    # The log
    log, after = [], 0
    while after is not None:
        page = api.call(200, "GET", "/v1/events", query={"room": room["room"], "after": after, "limit": 100})
        log += page["events"]
        after = page.get("next")
    kinds = [entry["event"]["kind"] for entry in log]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "message": 259, "edit": 1, "reaction": 3, "delete": 2, "join": 1, "leave": 1, "read": 2}
    assert [e["sequence"] for e in log] == sorted({e["sequence"] for e in log})
    api.call(400, "GET", "/v1/events", query={"after": "x"})
    withheld = api.call(200, "GET", "/v1/events", query={"room": room["room"], "deleted": "withheld", "limit": 500})
    gone = [e["event"]["message"] for e in withheld["events"] if "deleted" in e["event"].get("message", {})]
    assert gone and not any(message["text"] or message["attachments"] for message in gone)
    api.call(404, "GET", "/v1/events", query={"room": "nowhere", "deleted": "withheld"})
    api.call(400, "GET", "/v1/events", query={"deleted": "withheld"})

    # The past
    past = {"room": "the past"}
    items = [
        {"kind": "message", "key": "1", "time": 1470366650123, "by": ADA, "text": "frist", "stamp": STAMP},
        {"kind": "message", "key": "2", "time": 1470366650123, "by": ADA, "text": "waves", "action": True, "reply_to": "1"},
        {"kind": "edit", "key": "e", "of": "1", "time": 1470366651000, "by": ADA, "text": "first"},
        {"kind": "join", "key": "j", "time": 1470366652000, "by": {"id": "bob"}},
        {"kind": "reaction", "key": "r", "of": "2", "time": 1470366653000, "by": ADA, "emoji": "x"},
        {"kind": "read", "key": "m", "of": "2", "time": 1470366654000, "by": ADA},
        {"kind": "leave", "key": "l", "time": 1470366655000, "by": {"id": "bob"}},
        {"kind": "delete", "key": "d", "of": "2", "time": 1470366656000, "by": ADA}]
    for _ in range(2):
        ids = api.call(200, "POST", ROOM + "/import", {"items": items}, **past)["ids"]
        assert ids[0] and ids[1] and ids[2:] == [None] * 6
        history = api.call(200, "GET", MESSAGES, query={"order": "oldest"}, **past)["messages"]
        assert [(m["id"], m["text"], m["time"][-13:]) for m in history] == [
            (ids[0], "first", "03:10:50.123Z"), (ids[1], "", "03:10:50.123Z")]
        events = api.call(200, "GET", "/v1/events", query={"room": past["room"]})["events"]
        assert [e["event"]["kind"] for e in events] == [item["kind"] for item in items]
        assert events[4]["event"]["time"] == "2016-08-05T03:10:53.000Z"
    api.call(400, "POST", ROOM + "/import", {"items": [{"kind": "join", "key": "x", "time": 1}]}, **past)
    api.call(403, "POST", ROOM + "/import", {"items": items}, token="adas", **past)

    # Nobody without a token
    values = {"room": "r", "id": "1", "user": "u", "emoji": "x", "sha256": "0" * 64}
    for method, path in [each for each in operations(DOCUMENT) if each[1] not in ("/healthz", "/v1/live")]:
        for token in (None, "wrong"):
            used = {name: value for name, value in values.items() if "{" + name + "}" in path}
            api.call(401, method, path, token=token, **used)


def test_other_methods_are_refused_with_those_allowed(server, document):
    values = {"room": "r", "id": "1", "user": "u", "emoji": "x", "sha256": "0" * 64}
    for path, item in document["paths"].items():
        allowed = {verb.upper() for verb in VERBS if verb in item}
        for name, value in values.items():
            path = path.replace("{" + name + "}", value)
        for method in {"GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} - allowed:
            status, headers, data = server.request(method, path)
            assert status == 405, (method, path, status)
            assert {each.strip() for each in headers["Allow"].split(",")} == allowed
            assert json.loads(data)["error"]["code"] == "method_not_allowed"


def test_nonsense_is_refused_and_never_a_fault_of_the_server(server, document):
    """Random bodies, paths and queries: the answer is a declared refusal, and the server lives."""
    generator = random.Random(2)

    def value(depth=0):
        kind = generator.randrange(8 if depth < 3 else 6)
        if kind == 6:
            return [value(depth + 1) for _ in range(generator.randrange(4))]
        if kind == 7:
            return body(depth + 1)
        return generator.choice([None, True, -1, 1e300, "", "x", "👩‍👩‍👧", "\u0000", "' OR 1=1 --", 2 ** 70, "x" * 300])

    def body(depth=0):
        names = ["client_id", "author", "text", "format", "time", "attachments", "reply_to", "mentions", "stamp",
                 "attributes", "messages", "by", "on", "id", "state", "name", "avatar", "title", "revision"]
        return {name: value(depth) for name in generator.sample(names, generator.randrange(6))}

    for method, path in operations(document) * 12:
        if path == "/v1/live":
            continue
        operation = document["paths"][path][method.lower()]
        for name in ("room", "id", "user", "emoji", "sha256"):
            junk = generator.choice(["r", "1", "%00", "%ff%fe", "..%2f..", "x" * 300, "%F0%9F%91%8D", "%zz", "a b"])
            path = path.replace("{" + name + "}", junk.replace(" ", "+"))
        query = urllib.parse.urlencode({name: generator.choice(["", "x", "-1", "\x00", "9" * 30, "1"])
                                        for name in generator.sample(["limit", "after", "order", "room", "user"], 2)})
        raw = generator.choice([json.dumps(body()).encode(), generator.randbytes(50), b"", b"[" * 5000, b'{"text":"\xff"}'])
        sent = raw if method != "GET" else None
        status, headers, data = server.request(
            method, f"{path}?{query}", sent, headers={"Content-Type": "application/json"} if sent else {})
        declared = set(operation["responses"]) | {"400", "404", "413"}
        assert str(status) in declared, (method, path, query, raw[:200], status, data)
        if status >= 400:
            assert json.loads(data)["error"]["message"]
    assert server.json("GET", "/healthz", token=None) == {"status": "ok"}
