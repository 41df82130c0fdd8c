"""Backendless' channel and table, as the users of an app have them."""
import json
import threading
import urllib.request
import uuid

import socketio
from four import APP_ID, APP_KEY, CHANNEL
from watching import digest, fetch


class BackendlessCorner:
    def __init__(self, four):
        self.four = four
        self.heard = []
        space, up = f"/{APP_ID}", threading.Event()
        self.client = socketio.Client(reconnection=False)
        self.client.on("connect", up.set, namespace=space)
        self.client.on("SUB_RES", self.heard.append, namespace=space)
        self.client.connect(
            f"{four.app_url}/?apiKey={APP_KEY}&clientId=corner&userToken=null", transports=["websocket"],
            namespaces=[space], socketio_path=APP_ID)
        assert up.wait(30)
        for id, name in [("c", "PUB_SUB_CONNECT"), ("m", "PUB_SUB_MESSAGES"), ("k", "PUB_SUB_COMMANDS")]:
            self.emit("SUB_ON", {"id": id, "name": name, "options": {"channel": CHANNEL}})

    def emit(self, event, data):
        self.client.emit(event, data, namespace=f"/{APP_ID}")

    def data(self, id):
        return [frame["data"] for frame in list(self.heard) if frame["id"] == id]

    def say(self, author, text, **more):
        return self.four.say(author, text, **more)["objectId"]

    def edit(self, id, author, text):
        self.four.rest("PUT", "/data/ChatMessage", {"objectId": id, "messageText": text})

    def delete(self, id):
        self.four.rest("DELETE", f"/data/ChatMessage/{id}")

    def show(self, author, picture):
        boundary = "a-boundary-of-the-test"
        body = (f"--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"p.png\"\r\n"
                "Content-Type: image/png\r\n\r\n").encode() + picture + f"\r\n--{boundary}--\r\n".encode()
        path = f"/files/tmpChatFiles/{uuid.uuid4()}.png?overwrite=true"
        request = urllib.request.Request(
            f"{self.four.app_url}/{APP_ID}/{APP_KEY}{path}", body,
            {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        url = json.loads(urllib.request.urlopen(request, timeout=20).read())["fileURL"]
        self.four.say(author, None, pictureUrl=url)

    def join(self, name):
        notice = {"userName": name, "messageText": "joined", "___class": "ChatMessage"}
        self.four.rest("POST", f"/messaging/{CHANNEL}", {"message": notice, "publisherId": name})

    def leave(self, name):
        """The apps have no notice of going."""

    def command(self, kind, data):
        options = {"channel": CHANNEL, "type": kind, "data": data}
        self.emit("MET_REQ", {"id": str(uuid.uuid4()), "name": "PUB_SUB_COMMAND", "options": options})

    def read(self, name, id):
        self.command("MESSAGE_READ", {"objectId": id, "user": name})

    def type(self, name):
        self.command("USER_TYPING", {"user": name})

    def texts(self):
        return [(row["userName"], row["messageText"]) for row in self.four.rows() if row.get("messageText")]

    def pictures(self):
        return {digest(fetch(row["pictureUrl"])) for row in self.four.rows() if row.get("pictureUrl")}

    def has_member(self, name):
        messages = [m["message"] for m in self.data("m") if isinstance(m, dict)]
        return any(m.get("userName") == name and m.get("messageText") == "joined" for m in messages)

    def commands(self, kind):
        return [c["data"] for c in self.data("k") if c["type"] == kind]

    def has_read(self, name, text):
        """Whether somebody has read up to the message of that text."""
        id = next(row["objectId"] for row in self.four.rows() if row.get("messageText") == text)
        return any(data["user"] == name and data["objectId"] == id for data in self.commands("MESSAGE_READ"))

    def has_typed(self, name):
        return any(data["user"] == name for data in self.commands("USER_TYPING"))

    def close(self):
        self.client.disconnect()
