"""The Pusher facade as its own process, and the official clients pointed at it."""
import asyncio
import hashlib
import hmac
import http.client
import http.server
import json
import threading
import time
import urllib.parse

import pusher
import pysher
import pytest

from served import FERRY, Served  # noqa: F401: for tests

APP_ID, KEY, SECRET = "1001", "demo-key", "demo-secret"


class Facade(Served):
    """The Pusher facade alone."""

    name = "pusher"
    key, secret, app_id = KEY, SECRET, APP_ID

    def __init__(self, folder, **settings):
        """`settings` are further keys of its configuration."""
        super().__init__(folder)
        self.settings = settings
        self.subscribers = []

    def section(self):
        facade = {
            "provider": "pusher", "listen": self.listen, "app_id": APP_ID, "key": KEY, "secret": SECRET,
            **self.settings}
        return {"facades": [facade]}

    def stop(self):
        for subscriber in self.subscribers:
            subscriber.close()
        super().stop()

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

    def raw(self, method, path, body=b"", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body or None, headers or {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()


class Subscriber:
    """pysher, which remembers what it is told."""

    EVENTS = ["new_message", "user_typing", "message_delivered", "e", "client-typing", "pusher_internal:member_added",
              "pusher_internal:member_removed", "pusher_internal:subscription_count", "pusher:cache_miss",
              "pusher:subscription_error"]
    CONNECTION_EVENTS = ["pusher:signin_success", "pusher_internal:watchlist_events"]

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
        self.names = list(channels)
        self.channels = {}
        self.client.connection.bind("pusher:connection_established", self._subscribe)
        self.client.connection.bind("pusher:error", lambda data: self._note(self.errors.append, data))
        self.pending = []
        self.client.connection.bind("pusher:pong", self._open_pending)
        for event in self.CONNECTION_EVENTS:
            self.client.connection.bind(
                event, lambda data, event=event: self._note(self.events.append, (None, event, data)))
        self.client.connect()

    def _subscribe(self, _):
        # Known too late for whoever subscribed to nothing.
        self._note(lambda _: None, None)
        for name in self.names:
            self._open(name)

    def _open(self, name, auth=None):
        channel = self.channels[name] = self.client.subscribe(name, auth)
        channel.bind(
            "pusher_internal:subscription_succeeded",
            lambda data, name=name: self._note(lambda data: self.confirmed.update({name: data}), data))
        for event in self.EVENTS:
            channel.bind(
                event, lambda data, name=name, event=event: self._note(self.events.append, (name, event, data)))

    def open(self, name, auth=None):
        """Asks for one more channel, with a signature of somebody else's where there is one."""
        # On the library's own thread: it knows of a channel only after it has asked for it, and misses an answer that
        # is quicker than that.
        self.pending.append((name, auth))
        self.client.connection.send_ping()

    def _open_pending(self, _):
        while self.pending:
            self._open(*self.pending.pop(0))

    def subscribe(self, name, auth=None):
        self.open(name, auth)
        self.wait(lambda: name in self.confirmed)

    def sign_in(self, facade, user):
        """As a client library does it, with the official library's signature."""
        self.wait(lambda: self.client.connection.socket_id)
        count = len(self.data("pusher:signin_success"))
        data = facade.http().authenticate_user(self.client.connection.socket_id, user)
        self.client.connection.send_event("pusher:signin", data)
        self.wait(lambda: len(self.data("pusher:signin_success")) > count)

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


async def until(condition, seconds=30):
    for _ in range(seconds * 100):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about")


class HookReceiver:
    """The far end of webhooks. It may be stopped and started again on its port."""

    def __init__(self):
        self.changed = threading.Condition()
        self.requests = []
        self.statuses = []
        self.port = 0
        self.start()

    def start(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with receiver.changed:
                    receiver.requests.append((self.headers["X-Pusher-Key"], self.headers["X-Pusher-Signature"], body))
                    status = receiver.statuses.pop(0) if receiver.statuses else 200
                    receiver.changed.notify_all()
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hooks"

    def wait(self, count, seconds=30):
        """So many requests, each as the official library's checks leave it."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.requests) >= count, seconds), self.requests
            requests = list(self.requests)
        client = pusher.Pusher(APP_ID, KEY, SECRET)
        hooks = [client.validate_webhook(*request) for request in requests]
        assert None not in hooks, requests
        return hooks

    def events(self, count):
        """So many events, however many requests brought them."""
        with self.changed:
            def all_events():
                return [event for _, _, body in self.requests for event in json.loads(body)["events"]]
            assert self.changed.wait_for(lambda: len(all_events()) >= count, 30), self.requests
        self.wait(0)
        return all_events()


@pytest.fixture
def hooks():
    receiver = HookReceiver()
    yield receiver
    receiver.stop()


@pytest.fixture
def serve(tmp_path):
    """Starts a facade with further settings."""
    facades = []

    def start(**settings):
        folder = tmp_path / str(len(facades))
        folder.mkdir()
        facade = Facade(folder, **settings)
        facades.append(facade)
        facade.start()
        return facade

    yield start
    for facade in facades:
        facade.stop()


@pytest.fixture
def facade(tmp_path):
    facade = Facade(tmp_path)
    facade.start()
    yield facade
    facade.stop()
