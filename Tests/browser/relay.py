"""A relay and the services that it bridges, each its own process, so that either can be stopped."""
import http.client
import json
import os
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.parse

from service import FERRY

TOKEN, READ_TOKEN = "console-token-f00d", "reading-token-beef"
# What must appear in no answer and on no page.
SECRETS = ["local-secret-1f2e", "pusher-secret-3d4c", TOKEN, READ_TOKEN]


class Process:
    """One `ferry` command that says when it is ready."""

    def __init__(self, folder, name):
        self.folder, self.name = folder, name
        self.process = None

    def launch(self, command, config):
        path = self.folder / f"{self.name}.yaml"
        path.write_text(config)
        ready = self.folder / f"{self.name}.ready"
        ready.unlink(missing_ok=True)
        with open(self.folder / f"{self.name}.log", "ab") as log:
            self.process = subprocess.Popen(
                [FERRY, command, "--config", str(path), "--ready-file", str(ready)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        tick = threading.Event()
        for _ in range(12000):
            if ready.exists():
                return json.loads(ready.read_text())
            assert self.process.poll() is None, (self.folder / f"{self.name}.log").read_text()
            tick.wait(0.005)
        raise AssertionError(f"{self.name} did not become ready")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)

    def pause(self, isPaused=True):
        """As a machine that has stopped answering."""
        self.process.send_signal(signal.SIGSTOP if isPaused else signal.SIGCONT)


def port_of(url):
    return urllib.parse.urlsplit(url).port


class Relayed:
    """Two services, `here` (local) and `site` (Pusher), and a relay between them. Bridges are YAML."""

    LOBBY = "  lobby: { between: [here:lobby, site:chatroom], mirror: [messages, edits, deletes] }\n"

    def __init__(self, folder, bridges=LOBBY, more=""):
        self.folder, self.bridges, self.more = folder, bridges, more
        self.local, self.pusher, self.relay = (Process(folder, name) for name in ("local", "pusher", "relay"))
        self.ports = {"local": 0, "pusher": 0, "relay": 0}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.ports['relay']}"

    @property
    def journal(self):
        return self.folder / "relay.db"

    def start(self):
        self.start_local()
        self.start_pusher()
        self.start_relay()
        return self

    def start_local(self):
        urls = self.local.launch("serve", f"""
serve:
  data: {self.folder}/local-data
  local: {{ listen: "127.0.0.1:{self.ports['local']}", tokens: [local-secret-1f2e] }}
""")
        self.ports["local"] = port_of(urls["local"])

    def start_pusher(self):
        urls = self.pusher.launch("serve", f"""
serve:
  data: {self.folder}/pusher-data
  facades:
    - {{ provider: pusher, listen: "127.0.0.1:{self.ports['pusher']}", app_id: "1001", key: app-key, secret: pusher-secret-3d4c }}
""")
        self.ports["pusher"] = port_of(urls["pusher"])

    def start_relay(self):
        urls = self.relay.launch("relay", f"""
accounts:
  here: {{ provider: local, url: "http://127.0.0.1:{self.ports['local']}", token: local-secret-1f2e }}
  site: {{ provider: pusher, app_id: "1001", key: app-key, secret: pusher-secret-3d4c, host: 127.0.0.1, port: {self.ports['pusher']}, tls: false }}
bridges:
{self.bridges}
relay:
  listen: 127.0.0.1:{self.ports['relay']}
  journal: {self.journal}
  token: {TOKEN}
  read_token: {READ_TOKEN}
  allow_hosts: [127.0.0.1]
{self.more}
""")
        self.ports["relay"] = port_of(urls["relay"])

    def stop(self):
        for process in (self.relay, self.pusher, self.local):
            if process.process and process.process.poll() is None:
                process.process.send_signal(signal.SIGCONT)
            process.stop()

    # Asking

    def ask(self, method, path, body=None, token=TOKEN, **headers):
        """Status, headers and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["relay"], timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def get(self, path):
        status, _, body = self.ask("GET", f"/api/{path}")
        assert status == 200, (path, status, body)
        return json.loads(body)

    def say(self, text, room="lobby"):
        """Somebody says something at `here`; returns the message's id."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["local"], timeout=60)
        try:
            connection.request(
                "POST", f"/v1/rooms/{urllib.parse.quote(room, safe='')}/messages",
                json.dumps({"author": {"id": "ada", "name": "ada"}, "text": text}),
                {"Authorization": "Bearer local-secret-1f2e", "Content-Type": "application/json"})
            response = connection.getresponse()
            answer = json.loads(response.read())
        finally:
            connection.close()
        assert response.status < 300, answer
        return answer["id"]

    def eventually(self, check, what="", patience=60):
        end = time.monotonic() + patience
        tick = threading.Event()
        while True:
            value = check()
            if value:
                return value
            assert time.monotonic() < end, f"{what or check} did not come about; it is {value!r}"
            tick.wait(0.05)

    def connected(self):
        return all(account["state"] in ("connected", "idle") for account in self.get("status")["accounts"])

    def settled(self, message):
        """Whether a message has arrived everywhere."""
        return any(event["message"] == message and event["settled"] == event["deliveries"] for event in self.get("events"))

    # What only the journal can be made to hold. The relay must not be running.

    def with_journal(self, change):
        database = sqlite3.connect(self.journal)
        try:
            change(database)
            database.commit()
        finally:
            database.close()

    def age(self, seconds):
        """What waits was accepted so much earlier: nobody has to wait with it."""
        def change(database):
            database.execute("UPDATE events SET accepted = accepted - ?", (seconds * 1000,))
        self.with_journal(change)

    def bury(self, count, reason=lambda number: f"bad_request: number {number} is refused", key="dead-{}", first=0):
        """Dead letters to site:chatroom: events like one that was received, under names of their own."""
        def change(database):
            body, account, channel = database.execute(
                "SELECT body, account, channel FROM events WHERE kind = 'message' AND account = 'here' ORDER BY id LIMIT 1").fetchone()
            now = int(time.time() * 1000)
            for number in range(first, first + count):
                name = key.format(number)
                event = json.loads(body)
                event["key"] = name
                event["kind"]["posted"]["_0"]["id"] = name
                cursor = database.execute(
                    "INSERT INTO events(account, channel, key, kind, message, time, accepted, body) VALUES (?,?,?,'message',?,?,?,?)",
                    (account, channel, name, name, now, now, json.dumps(event)))
                database.execute(
                    "INSERT INTO deliveries(event, bridge, account, channel, state, attempts, error, updated) VALUES (?,'lobby','site','chatroom',3,3,?,?)",
                    (cursor.lastrowid, reason(number), now))
        self.with_journal(change)
