"""The WebSocket, by a client library that is not ours, and the server killed in the middle."""
import json
import pathlib
import threading
import urllib.parse

import jsonschema
import pytest
import referencing
import referencing.jsonschema
import websockets
import websockets.sync.client
import yaml

DOCUMENT = yaml.safe_load((pathlib.Path(__file__).parents[3] / "providers/local/openapi.yaml").read_text())
REGISTRY = referencing.Registry().with_resource(
    "urn:api", referencing.jsonschema.DRAFT202012.create_resource(DOCUMENT))
FRAMES = jsonschema.Draft202012Validator({"$ref": "urn:api#/components/schemas/LiveFrame"}, registry=REGISTRY)


class Live:
    def __init__(self, server, token="owner"):
        url = f"ws://127.0.0.1:{server.port}/v1/live?token={urllib.parse.quote(token)}"
        self.socket = websockets.sync.client.connect(url, max_size=None, proxy=None, close_timeout=0.2, legacy=True)

    def say(self, **message):
        self.socket.send(json.dumps(message))

    def next(self):
        frame = json.loads(self.socket.recv(timeout=20))
        FRAMES.validate(frame)
        return frame

    def subscribe(self, room, after=None):
        self.say(type="subscribe", room=room, **({} if after is None else {"after": after}))
        frame = self.next()
        assert frame["type"] == "subscribed" and frame["room"] == room, frame
        return frame["sequence"]

    def close(self):
        self.socket.close()


def post(server, text, key, room="lobby"):
    body = {"author": {"id": "ada"}, "text": text, "client_id": key}
    return server.json("POST", f"/v1/rooms/{room}/messages", body)


def test_everything_is_told_in_the_declared_form(server):
    live = Live(server)
    live.subscribe("lobby")
    message = post(server, "hello 👋🏽", "k1")
    path = f"/v1/rooms/lobby/messages/{message['id']}"
    server.json("PATCH", path, {"text": "edited"})
    server.json("PUT", path + "/reactions/%F0%9F%91%8D?user=bob")
    server.json("PUT", "/v1/rooms/lobby/reads/bob", {"id": message["id"]})
    server.json("PUT", "/v1/rooms/lobby/members/bob", {"name": "Bob"})
    server.json("DELETE", "/v1/rooms/lobby/members/bob")
    server.json("POST", "/v1/rooms/lobby/typing", {"by": {"id": "bob"}})
    server.json("DELETE", path)
    frames = [live.next() for _ in range(8)]
    assert [frame.get("event", frame).get("kind", frame["type"]) for frame in frames] == [
        "message", "edit", "reaction", "read", "join", "leave", "typing", "delete"]
    assert frames[0]["event"]["message"] == message
    live.say(type="nonsense")
    assert live.next()["type"] == "error"
    live.close()


def test_all_rooms_at_once(server):
    live = Live(server)
    live.say(type="subscribe", all=True)
    assert live.next()["all"] is True
    for room in ("one", "two"):
        message = post(server, "x", "k", room)
        assert live.next()["event"]["message"] == message
    live.close()


def test_what_is_no_upgrade_is_refused(server):
    assert server.request("GET", "/v1/live")[0] in (400, 426)
    with pytest.raises(websockets.InvalidStatus) as refused:
        Live(server, token="wrong")
    assert refused.value.response.status_code == 401


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(server):
    """Writers post without a pause while the server is killed and started again, and retry under the same client id."""
    writers, each = 4, 60
    start = Live(server)
    first = start.subscribe("lobby")
    start.close()
    acknowledged = []
    done = threading.Event()

    def write(writer):
        for number in range(each):
            while True:
                try:
                    message = post(server, f"{writer} {number}", f"{writer}-{number}")
                    acknowledged.append((message["id"], message["text"]))
                    break
                except (OSError, AssertionError, ValueError, EOFError):
                    done.wait(0.01)
                except Exception as error:  # http.client raises several kinds of its own
                    assert type(error).__module__ == "http.client", error
                    done.wait(0.01)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    for thread in threads:
        thread.start()
    seen, after = [], first
    for _ in range(5):
        before = len(acknowledged)
        end = threading.Event()
        while len(acknowledged) < before + 20 and any(thread.is_alive() for thread in threads):
            end.wait(0.002)
        server.kill()
        server.start()
        live = Live(server)
        live.subscribe("lobby", after)
        for _ in range(10):
            if len(seen) == len(acknowledged) and not any(thread.is_alive() for thread in threads):
                break
            frame = live.next()
            seen.append((frame["event"]["message"]["id"], frame["event"]["message"]["text"]))
            after = frame["sequence"]
        live.close()
    for thread in threads:
        thread.join()
    live = Live(server)
    live.subscribe("lobby", after)
    while len(seen) < writers * each:
        frame = live.next()
        seen.append((frame["event"]["message"]["id"], frame["event"]["message"]["text"]))
    live.close()
    assert len(set(seen)) == len(seen) == writers * each
    assert set(seen) == set(acknowledged)
    for writer in range(writers):
        texts = [text for _, text in seen if text.startswith(f"{writer} ")]
        assert texts == [f"{writer} {number}" for number in range(each)]
