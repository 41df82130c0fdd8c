"""The Pusher facade as its own process, and the official clients pointed at it."""
import hashlib
import hmac
import http.client
import json
import os
import pathlib
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
APP_ID, KEY, SECRET = "1001", "demo-key", "demo-secret"


class Facade:
    """`ferry serve` with a Pusher facade alone. It may be killed and started again on its port."""

    key, secret, app_id = KEY, SECRET, APP_ID

    def __init__(self, folder):
        self.folder = folder
        self.port = 0
        self.process = None
        self.subscribers = []

    def start(self):
        config = self.folder / "serve.yaml"
        config.write_text(f"""
serve:
  data: {self.folder}/data
  facades:
    - {{ provider: pusher, listen: "127.0.0.1:{self.port}", app_id: "{APP_ID}", key: {KEY}, secret: {SECRET} }}
""")
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        log = self.folder / "log"
        with open(log, "ab") as output:
            self.process = subprocess.Popen(
                [FERRY, "serve", "--config", str(config), "--ready-file", str(ready)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        end = time.monotonic() + 30
        while not ready.exists():
            assert self.process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.005)
        self.port = urllib.parse.urlsplit(json.loads(ready.read_text())["pusher"]).port

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        for subscriber in self.subscribers:
            subscriber.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            assert self.process.wait(timeout=20) == 0, (self.folder / "log").read_text()[-2000:]

    def http(self, **changes):
        """The official HTTP library."""
        options = {"app_id": APP_ID, "key": KEY, "secret": SECRET, "ssl": False, "host": "127.0.0.1", "port": self.port}
        return pusher.Pusher(**{**options, **changes})

    def subscriber(self, *channels, user=None, protocol=6):
        subscriber = Subscriber(self.port, channels, user, protocol)
        self.subscribers.append(subscriber)
        subscriber.wait(lambda: len(subscriber.confirmed) == len(channels))
        return subscriber

    def signed(self, method, path, body=b"", parameters=None, timestamp=None, secret=SECRET, key=KEY):
        """A request signed by hand: (status, text)."""
        query = {"auth_key": key, "auth_timestamp": str(timestamp or int(time.time())), "auth_version": "1.0"}
        query.update(parameters or {})
        if body:
            query["body_md5"] = hashlib.md5(body).hexdigest()
        text = "\n".join([method, path, "&".join(f"{k}={v}" for k, v in sorted(query.items()))])
        query["auth_signature"] = hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()
        return self.raw(method, path + "?" + urllib.parse.urlencode(query), body)

    def raw(self, method, path, body=b""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


class Subscriber:
    """pysher, which remembers what it is told."""

    EVENTS = ["new_message", "e", "client-typing", "pusher_internal:member_added", "pusher_internal:member_removed",
              "pusher:cache_miss", "pusher:subscription_error"]

    def __init__(self, port, channels, user, protocol):
        self.changed = threading.Condition()
        self.events = []
        self.confirmed = {}
        self.errors = []
        self.client = pysher.Pusher(
            KEY, secure=False, custom_host="127.0.0.1", port=port, secret=SECRET, user_data=user or {},
            reconnect_interval=1)
        self.client.protocol = protocol
        self.client.connection.url = self.client._build_url(False, port, "127.0.0.1")
        self.names = channels
        self.channels = {}
        self.client.connection.bind("pusher:connection_established", self._subscribe)
        self.client.connection.bind("pusher:error", lambda data: self._note(self.errors.append, data))
        self.client.connect()

    def _subscribe(self, _):
        for name in self.names:
            channel = self.channels[name] = self.client.subscribe(name)
            channel.bind(
                "pusher_internal:subscription_succeeded",
                lambda data, name=name: self._note(lambda data: self.confirmed.update({name: data}), data))
            for event in self.EVENTS:
                channel.bind(
                    event, lambda data, name=name, event=event: self._note(self.events.append, (name, event, data)))

    def _note(self, change, value):
        with self.changed:
            change(value)
            self.changed.notify_all()

    def wait(self, condition, seconds=30):
        with self.changed:
            assert self.changed.wait_for(condition, seconds), (self.events, self.confirmed, self.errors)

    def data(self, event="new_message"):
        return [data for _, name, data in self.events if name == event]

    def close(self):
        # Its thread may not notice that its socket was closed; it is a daemon.
        self.client.disconnect(timeout=0.2)


@pytest.fixture
def facade(tmp_path):
    facade = Facade(tmp_path)
    facade.start()
    yield facade
    facade.stop()
