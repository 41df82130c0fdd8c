"""What cannot be delivered is shown with its reason, and a person decides."""
import http.server
import json
import threading
import urllib.parse

import pytest
from bridge import Local, Process, ferry, relay_config, wait_until


class Refusing(http.server.BaseHTTPRequestHandler):
    """A service that refuses every event for good, until told otherwise."""

    refuses = True
    taken = []

    def do_GET(self):
        self.answer(200, b'{"occupied":false,"cache":{"data":"{}","ttl":1000}}')

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        events = body.get("batch", [body])
        if not any("chatroom" in event.get("channels", [event.get("channel")]) for event in events):
            return self.answer(200, b"{}")
        if Refusing.refuses:
            return self.answer(400, b"no such thing here")
        Refusing.taken += [json.loads(event["data"])["text"] for event in events]
        return self.answer(200, b"{}")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.timeout(60)
def test_dead_letters_are_listed_retried_and_dropped(services, tmp_path):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = relay_config(tmp_path, services.urls["local"], f"http://127.0.0.1:{server.server_port}")
    relay = Process(tmp_path, "relay", config)
    asking = tmp_path / "asking.yaml"
    port = urllib.parse.urlsplit(relay.urls["relay"]).port
    asking.write_text(config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    wait_until(lambda: "here: connected" in ferry(asking, "status")[1], what="the local account connected")

    local = Local(services.urls["local"])
    for text in ("one", "two"):
        local.post("lobby", "ann", text, text)

    def dead():
        code, out, err = ferry(asking, "dead", "list", "--json")
        assert code == 0, err
        return [json.loads(line) for line in out.splitlines()]

    wait_until(lambda: len(dead()) == 2, what="two dead letters")
    first, second = dead()
    assert first["destination"] == "site:chatroom"
    assert first["reason"].startswith("bad_request: ")
    Refusing.refuses = False
    assert ferry(asking, "dead", "retry", str(first["id"]))[0] == 0
    wait_until(lambda: Refusing.taken == ["one"], what="the first one delivered")
    assert ferry(asking, "dead", "drop", "all")[0] == 0
    assert dead() == []
    code, _, err = ferry(asking, "dead", "retry", str(second["id"]))
    assert (code, "404" in err or "not" in err) == (65, True), err
    assert ferry(asking, "dead", "bury", "1")[0] == 64
    assert Refusing.taken == ["one"]
    relay.stop()
    server.shutdown()
