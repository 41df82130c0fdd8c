"""`ferry serve` as its own process, and what tests do to it behind the page's back."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import threading
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
FERRY = os.environ.get("FERRY_BIN", str(ROOT / ".build/debug/ferry"))
PAGES = ROOT / "Sources/FerryPages"


class Service:
    """A local server in a folder. It may be killed and started again on its port."""

    def __init__(self, folder):
        self.folder = folder
        self.port = 0

    def start(self):
        config = self.folder / "serve.yaml"
        config.write_text(f"""
serve:
  data: {self.folder}/data
  local:
    listen: 127.0.0.1:{self.port}
    tokens:
      - owner
      - {{ token: adas, user: ada }}
  facades:
    - {{ provider: pusher, listen: "127.0.0.1:0", app_id: "1", key: k, secret: s }}
""")
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        self.log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(
            [FERRY, "serve", "--config", str(config), "--ready-file", str(ready)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        tick = threading.Event()
        for _ in range(6000):
            if ready.exists():
                break
            assert self.process.poll() is None, (self.folder / "log").read_text()
            tick.wait(0.005)
        urls = json.loads(ready.read_text())
        self.url, self.pusher = urls["local"], urls["pusher"]
        self.port = urllib.parse.urlsplit(self.url).port

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def request(self, method, path, body=None, token="owner", kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = kind
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        assert response.status < 300, (method, path, response.status, data)
        return json.loads(data) if data else None

    # What other people do

    def room(self, name, *rest):
        return "/".join(["/v1/rooms", urllib.parse.quote(name, safe=""), *rest])

    def post(self, room, text, by="ada", name=None, **more):
        author = {"id": by, "name": name if name is not None else by}
        return self.request("POST", self.room(room, "messages"), {"author": author, "text": text, **more})

    def post_many(self, room, drafts):
        posted = []
        for start in range(0, len(drafts), 256):
            answer = self.request("POST", self.room(room, "messages"), {"messages": drafts[start:start + 256]})
            posted += answer["messages"]
        return posted

    def fill(self, room, count, by="ada", first=0):
        """Messages numbered from `first`, one a minute, oldest first."""
        return self.post_many(room, [
            {"author": {"id": by, "name": by}, "text": f"message {number}",
             "time": 1_790_000_000_000 + number * 60_000} for number in range(first, first + count)])

    def edit(self, room, message, text):
        return self.request("PATCH", self.room(room, "messages", message["id"]), {"text": text})

    def delete(self, room, message):
        return self.request("DELETE", self.room(room, "messages", message["id"]), {"by": {"id": "ada"}})

    def react(self, room, message, emoji, by="ada"):
        return self.request("PUT", self.room(room, "messages", message["id"], "reactions", urllib.parse.quote(emoji)),
                            {"by": {"id": by}})

    def join(self, room, user, name=None):
        return self.request("PUT", self.room(room, "members", urllib.parse.quote(user)), {"name": name or user})

    def leave(self, room, user):
        return self.request("DELETE", self.room(room, "members", urllib.parse.quote(user)), {})

    def mark(self, room, user, message, state="read"):
        return self.request("PUT", self.room(room, "reads", urllib.parse.quote(user)), {"id": message["id"], "state": state})

    def type(self, room, user, on=True):
        return self.request("POST", self.room(room, "typing"), {"by": {"id": user}, "on": on})

    def upload(self, data, name, kind="application/octet-stream"):
        return self.request("POST", "/v1/files?" + urllib.parse.urlencode({"name": name}), data, kind=kind)

    def messages(self, room, limit=500):
        page = self.request("GET", self.room(room, "messages") + f"?order=oldest&limit={limit}")
        return page["messages"]

    def reads(self, room):
        return {(each["by"]["id"], each["state"]): each["id"] for each in self.request("GET", self.room(room, "reads"))["reads"]}
