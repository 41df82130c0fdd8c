"""`ferry demo` as its own process, on ports of its own, and the official clients of its services."""
import json
import pathlib
import re
import signal
import socket
import subprocess
import threading
import urllib.parse
import urllib.request

import pusher
import pysher
import socketio
from acts import png
from service import FERRY, ROOT
from twilio.rest import Client

ACCOUNT, SERVICE = "AC00000000000000000000000000000001", "IS00000000000000000000000000000001"
APP, KEY = "DE300000-0000-0000-0000-000000000001", "DE300000-0000-0000-0000-0000000000AA"
CHANNEL = "realtime-example"
ROOMS = {"Local": "lobby", "Twilio": "lobby", "Pusher": "chatroom", "Backendless": CHANNEL}


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Demo:
    """The configuration of the documentation, with other ports."""

    def __init__(self, folder):
        self.folder = folder
        text = (ROOT / "config/demo.yaml").read_text()
        usual = [8080, 8081, 8082, 8083, 8090]
        for old, new in zip(usual, free_ports(len(usual))):
            text = re.sub(rf"\b{old}\b", str(new), text)
        config = folder / "demo.yaml"
        config.write_text(text)
        ready = folder / "ready.json"
        self.log = open(folder / "log", "ab")
        self.process = subprocess.Popen(
            [FERRY, "demo", "--config", str(config), "--data", str(folder / "data"), "--ready-file", str(ready)],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        tick = threading.Event()
        for _ in range(6000):
            if ready.exists():
                break
            assert self.process.poll() is None, (folder / "log").read_text()
            tick.wait(0.01)
        self.urls = json.loads(ready.read_text())
        for _ in range(6000):
            if self.is_ready():
                break
            tick.wait(0.01)

    def is_ready(self):
        try:
            return urllib.request.urlopen(self.urls["relay"] + "/readyz", timeout=5).status == 200
        except OSError:
            return False

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)


class TwilioSide:
    """Twilio's helper library."""

    def __init__(self, demo):
        self.url = demo.urls["twilio"]
        client = Client(ACCOUNT, "demo-auth-token")
        client.conversations.base_url = self.url
        self.conversation = client.conversations.v1.services(SERVICE).conversations("lobby")

    def post(self, author, text):
        return self.conversation.messages.create(author=author, body=text)

    def edit(self, message, text):
        message.update(body=text)

    def bodies(self):
        return [message.body for message in self.conversation.messages.list(limit=200)]

    def post_picture(self, author, data, name):
        """Uploads as the SDKs do, then posts."""
        import base64
        request = urllib.request.Request(
            f"{self.url}/v1/Services/{SERVICE}/Media?" + urllib.parse.urlencode({"Filename": name}), data,
            {"Content-Type": "image/png", "Authorization": "Basic " + base64.b64encode(
                f"{ACCOUNT}:demo-auth-token".encode()).decode()})
        with urllib.request.urlopen(request, timeout=60) as answer:
            sid = json.loads(answer.read())["sid"]
        return self.conversation.messages.create(author=author, media_sid=sid)


class PusherSide:
    """Pusher's server library, and a client on the socket."""

    EVENTS = ["new_message", "message_updated", "message_deleted", "user_typing", "user_stopped_typing"]

    def __init__(self, demo):
        port = urllib.parse.urlsplit(demo.urls["pusher"]).port
        self.server = pusher.Pusher("1001", "demo-key", "demo-secret", host="127.0.0.1", port=port, ssl=False)
        self.events = []
        confirmed = threading.Event()
        self.client = pysher.Pusher("demo-key", secure=False, custom_host="127.0.0.1", port=port)

        def subscribe(_):
            channel = self.client.subscribe("chatroom")
            channel.bind("pusher_internal:subscription_succeeded", lambda _: confirmed.set())
            for event in self.EVENTS:
                channel.bind(event, lambda data, event=event: self.events.append((event, json.loads(data))))

        self.client.connection.bind("pusher:connection_established", subscribe)
        self.client.connect()
        assert confirmed.wait(60)

    def trigger(self, event, data):
        self.server.trigger("chatroom", event, data)

    def heard(self, event, **wanted):
        return [data for name, data in list(self.events)
                if name == event and all(data.get(key) == value for key, value in wanted.items())]

    def close(self):
        # Its thread takes its time to notice; nobody waits for it.
        self.client.disconnect(timeout=1)


class BackendlessSide:
    """The REST API, as the official SDKs call it, and Socket.IO's client, on which they listen."""

    def __init__(self, demo):
        self.url = demo.urls["backendless"]
        self.messages = []
        ready = threading.Event()
        space = f"/{APP}"
        self.client = socketio.Client(reconnection=False)
        self.client.on("SUB_RES", lambda data: self.messages.append(data), namespace=space)
        self.client.on("SUB_READY", lambda _: ready.set(), namespace=space)
        self.client.connect(f"{self.url}/?apiKey={KEY}&clientId=peer&userToken=null", transports=["websocket"],
                            namespaces=[space], socketio_path=APP)
        for name, id in (("PUB_SUB_CONNECT", "c"), ("PUB_SUB_MESSAGES", "m")):
            self.client.emit("SUB_ON", {"id": id, "name": name, "options": {"channel": CHANNEL}}, namespace=space)
        assert ready.wait(60)

    def rest(self, method, path, body):
        request = urllib.request.Request(
            f"{self.url}/{APP}/{KEY}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"},
            method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def post(self, author, text):
        row = {"userName": author, "messageText": text, "channel": CHANNEL, "___class": "ChatMessage"}
        row = self.rest("PUT", "/data/ChatMessage", row)
        self.rest("POST", f"/messaging/{CHANNEL}", {"message": row, "publisherId": author})
        return row

    def edit(self, row, text):
        row = self.rest("PUT", f"/data/ChatMessage/{row['objectId']}", {"messageText": text})
        self.rest("POST", f"/messaging/{CHANNEL}", {"message": row, "publisherId": row["userName"]})

    def heard(self, text):
        return [each for each in list(self.messages) if text in json.dumps(each, ensure_ascii=False)]

    def close(self):
        self.client.disconnect()
