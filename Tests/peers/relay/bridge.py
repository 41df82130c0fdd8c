"""Ferry's processes, as a user starts them, and the official clients at the far end."""
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import threading
import time
import urllib.parse

import pusher
import pysher
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
FERRY = os.environ.get("FERRY_BIN", str(ROOT / ".build/debug/ferry"))
APP = {"app_id": "1001", "key": "demo-key", "secret": "demo-secret"}
TOKEN = "demo-token"


def wait_until(condition, seconds=30, what="the condition"):
    """Polls often; the time is only a limit for a machine that is very slow."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"{what} did not come about within {seconds} s")


class Process:
    """A ferry command that runs until told otherwise."""

    started = []

    def __init__(self, folder, command, config, *options):
        self.ready = folder / f"{command}-{random.randrange(1 << 40)}.json"
        self.log = folder / f"{command}.log"
        self.stderr = open(self.log, "ab")
        self.process = subprocess.Popen(
            [FERRY, command, "--config", str(config), "--ready-file", str(self.ready), *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.stderr)
        Process.started.append(self)
        wait_until(lambda: self.ready.exists() or self.process.poll() is not None, what=f"ferry {command} ready")
        assert self.process.poll() is None, self.log.read_text()
        self.urls = json.loads(self.ready.read_text())

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.stderr.close()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(timeout=20) == 0, self.log.read_text()[-2000:]
        self.stderr.close()


class Local:
    """The local server's HTTP API, over one connection."""

    def __init__(self, url):
        self.host = urllib.parse.urlsplit(url).netloc
        self.connection = http.client.HTTPConnection(self.host, timeout=30)

    def call(self, method, path, body=None, raw=None, headers=None):
        headers = {"Authorization": f"Bearer {TOKEN}", **(headers or {})}
        if body is not None:
            raw = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        self.connection.request(method, path, raw, headers)
        response = self.connection.getresponse()
        data = response.read()
        assert response.status < 300 or response.status == 404, (response.status, data)
        return json.loads(data) if data and "json" in (response.getheader("Content-Type") or "") else data

    def post(self, room, author, text, client_id):
        body = {"client_id": client_id, "author": {"id": author, "name": author}, "text": text}
        return self.call("POST", f"/v1/rooms/{room}/messages", body)

    def messages(self, room):
        found, after = [], None
        while True:
            query = f"?order=oldest&limit=200" + (f"&after={after}" if after else "")
            page = self.call("GET", f"/v1/rooms/{room}/messages{query}")
            found += page.get("messages", [])
            after = page.get("next")
            if not after:
                return found


class Subscriber:
    """pysher on one channel, collecting what arrives."""

    def __init__(self, url, channel, events, secret=None):
        parts = urllib.parse.urlsplit(url)
        self.events = []
        self.times = []
        self.subscribed = threading.Event()
        self.client = pysher.Pusher(
            APP["key"], secure=False, custom_host=parts.hostname, port=parts.port, secret=secret or APP["secret"],
            user_data={"user_id": "watcher"}, reconnect_interval=1)

        def connected(_):
            subscription = self.client.subscribe(channel)
            subscription.bind("pusher_internal:subscription_succeeded", lambda _: self.subscribed.set())
            for event in events:
                subscription.bind(event, lambda data, event=event: self.took(event, data))

        self.client.connection.bind("pusher:connection_established", connected)
        self.client.connect()
        assert self.subscribed.wait(20), "not subscribed"

    def took(self, event, data):
        self.times.append(time.monotonic())
        self.events.append((event, json.loads(data)))

    def close(self):
        # Its thread may not notice that its socket was closed; it is a daemon.
        self.client.connection.disconnect(timeout=0.5)


def official(url):
    parts = urllib.parse.urlsplit(url)
    return pusher.Pusher(**APP, ssl=False, host=parts.hostname, port=parts.port)


def services_config(folder):
    path = folder / "serve.yaml"
    path.write_text(f"""
serve:
  data: {folder}/data
  local: {{ listen: "127.0.0.1:0", tokens: [{TOKEN}] }}
  facades:
    - {{ provider: pusher, listen: "127.0.0.1:0", app_id: "1001", key: demo-key, secret: demo-secret }}
""")
    return path


def relay_config(folder, local_url, pusher_url, mirror="messages, edits, deletes, typing, images, members"):
    pusher_at = urllib.parse.urlsplit(pusher_url)
    path = folder / "relay.yaml"
    path.write_text(f"""
accounts:
  here: {{ provider: local, url: "{local_url}", token: {TOKEN} }}
  site: {{ provider: pusher, app_id: "1001", key: demo-key, secret: demo-secret, host: 127.0.0.1, port: {pusher_at.port}, tls: false }}
bridges:
  lobby: {{ between: [here:lobby, site:chatroom], mirror: [{mirror}] }}
relay: {{ listen: "127.0.0.1:0", journal: {folder}/relay.db, token: {TOKEN}, allow_hosts: [127.0.0.1] }}
""")
    return path


@pytest.fixture(autouse=True)
def leave_nothing():
    """Ends what a failed test left running."""
    yield
    for process in Process.started:
        if process.process.poll() is None:
            process.process.kill()
            process.process.wait()
    Process.started.clear()


@pytest.fixture
def services(tmp_path):
    process = Process(tmp_path, "serve", services_config(tmp_path))
    yield process
    process.stop()


@pytest.fixture
def demo(tmp_path):
    """Everything in one process, on free ports."""
    path = tmp_path / "demo.yaml"
    path.write_text(f"""
accounts:
  here: {{ provider: local, url: "http://127.0.0.1:0", token: {TOKEN} }}
  site: {{ provider: pusher, app_id: "1001", key: demo-key, secret: demo-secret, host: 127.0.0.1, port: 0, tls: false }}
bridges:
  lobby: {{ between: [here:lobby, site:chatroom], mirror: [messages, edits, deletes, typing, images, members] }}
relay: {{ listen: "127.0.0.1:0", token: {TOKEN}, allow_hosts: [127.0.0.1] }}
{services_config(tmp_path).read_text()}
""")
    process = Process(tmp_path, "demo", path, "--data", str(tmp_path / "demo-data"))
    client = relay_config(tmp_path, process.urls["local"], process.urls["pusher"])
    process.client_config = client
    wait_ready(process.urls["relay"])
    yield process
    process.stop()


def wait_ready(relay_url):
    host = urllib.parse.urlsplit(relay_url).netloc

    def ready():
        connection = http.client.HTTPConnection(host, timeout=5)
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200

    wait_until(ready, what="the relay connected")


def ferry(config, *arguments, stdin=None, timeout=30):
    """Runs a command to its end: (exit code, standard output, standard error)."""
    done = subprocess.run(
        [FERRY, *arguments, "--config", str(config)], input=stdin, capture_output=True, timeout=timeout)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def happenings():
    """(kind, author, text) of every message, join and leave: the real chat log where there is one, and made up elsewhere."""
    path = os.environ.get("FERRY_CHATLOG") or ROOT.parent / "shared/data/chatlog.jsonl"
    if pathlib.Path(path).exists():
        lines = [json.loads(line) for line in open(path, encoding="utf-8")]
        kinds = {"message": "say", "action": "say", "join": "join", "leave": "leave"}
        return [(kinds[e["kind"]], e["author"], e.get("text")) for e in lines]
    generator = random.Random(7)
    words = ["hello", "naïve", "日本語", "👩‍👩‍👧", "<b>", "a\\b", "\"quoted\"", "שלום", "e\u0301", "tab\there"]
    kinds = generator.choices(["say", "join", "leave"], [8, 1, 1], k=3000)
    return [(kind, f"guest{generator.randrange(30)}", " ".join(generator.choices(words, k=generator.randrange(1, 40))))
            for kind in kinds]


def conversation():
    """(author, text) of every message."""
    return [(author, text) for kind, author, text in happenings() if kind == "say"]
