"""The four ends of a bridge, each as its own users have it: what somebody may do there, and what is to be seen there."""
import hashlib
import http.server
import json
import threading
import urllib.parse
import urllib.request
import uuid

import socketio
from bridge import TOKEN, Subscriber, official
from four import APP_ID, APP_KEY, CHANNEL
from three import ACCOUNT, KEY, SERVICE, TWILIO
from twilio.jwt.access_token import AccessToken
from twilio.jwt.access_token.grants import ChatGrant
from websockets.sync.client import connect

NAMES = ["local", "pusher", "twilio", "backendless"]


def digest(data):
    return hashlib.sha256(data).hexdigest()


def fetch(url, **headers):
    return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20).read()


class Heard:
    """What a thread has heard of one thing."""

    def __init__(self):
        self.items = []

    def has(self, item):
        return item in list(self.items)


class LocalCorner:
    def __init__(self, four):
        self.local = four.local
        self.typists = Heard()
        self.socket = connect(
            f"{four.urls['local'].replace('http', 'ws', 1)}/v1/live?token={TOKEN}", max_size=None, proxy=None, legacy=True)
        self.socket.send(json.dumps({"type": "subscribe", "room": "lobby"}))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for text in self.socket:
            frame = json.loads(text)
            if frame["type"] == "typing":
                self.typists.items.append(frame["by"].get("name") or frame["by"]["id"])

    def say(self, author, text, **more):
        body = {"author": {"id": author, "name": author}, "text": text, **more}
        return self.local.call("POST", "/v1/rooms/lobby/messages", body)["id"]

    def edit(self, id, author, text):
        self.local.call("PATCH", f"/v1/rooms/lobby/messages/{id}", {"text": text})

    def delete(self, id):
        self.local.call("DELETE", f"/v1/rooms/lobby/messages/{id}")

    def show(self, author, picture):
        file = self.local.call("POST", "/v1/files?name=p.png", raw=picture, headers={"Content-Type": "image/png"})
        self.say(author, "", attachments=[{"file": file["sha256"], "name": "p.png"}])

    def join(self, name):
        self.local.call("PUT", f"/v1/rooms/lobby/members/{name}", {"name": name})

    def read(self, name, id):
        self.local.call("PUT", f"/v1/rooms/lobby/reads/{name}", {"id": id})

    def type(self, name):
        self.local.call("POST", "/v1/rooms/lobby/typing", {"by": {"id": name, "name": name}})

    def texts(self):
        return [(m["author"]["name"], m["text"]) for m in self.local.messages("lobby") if m.get("text")]

    def pictures(self):
        return {a["sha256"] for m in self.local.messages("lobby") for a in m.get("attachments", [])}

    def has_member(self, name):
        return any(m["name"] == name for m in self.local.call("GET", "/v1/rooms/lobby/members").get("members", []))

    def has_read(self, name):
        return any(name in json.dumps(r) for r in self.local.call("GET", "/v1/rooms/lobby/reads").get("reads", []))

    def has_typed(self, name):
        return self.typists.has(name)

    def close(self):
        self.socket.close()


class PusherCorner:
    EVENTS = ["new_message", "message_updated", "message_deleted", "user_typing", "user_joined", "message_read"]

    def __init__(self, four):
        self.client = official(four.urls["pusher"])
        self.heard = Subscriber(four.urls["pusher"], "chatroom", self.EVENTS)
        self.files = Files()
        self.number = 700

    def trigger(self, event, **data):
        self.client.trigger("chatroom", event, data)

    def say(self, author, text, **more):
        self.number += 1
        self.trigger("new_message", ID=self.number, sender=author, text=text, **more)
        return str(self.number)

    def edit(self, id, author, text):
        self.trigger("message_updated", ID=id, sender=author, text=text)

    def delete(self, id):
        self.trigger("message_deleted", ID=id)

    def show(self, author, picture):
        self.say(author, "", image=self.files.serve(picture))

    def join(self, name):
        self.trigger("user_joined", sender=name)

    def read(self, name, id):
        self.trigger("message_read", ID=id, sender=name)

    def type(self, name):
        self.trigger("user_typing", sender=name, text=f"{name} is typing...")

    def events(self, wanted):
        return [data for event, data in list(self.heard.events) if event == wanted]

    def texts(self):
        shown = {}
        for event, data in list(self.heard.events):
            if event in ("new_message", "message_updated"):
                shown[str(data["ID"])] = (data["sender"], data["text"])
            elif event == "message_deleted":
                shown.pop(str(data["ID"]), None)
        return [(sender, text) for sender, text in shown.values() if text]

    def pictures(self):
        return {digest(fetch(data["image"])) for data in self.events("new_message") if data.get("image")}

    def has_member(self, name):
        return any(data["sender"] == name for data in self.events("user_joined"))

    def has_read(self, name):
        return any(name in json.dumps(data) for data in self.events("message_read"))

    def has_typed(self, name):
        return any(data["sender"] == name for data in self.events("user_typing"))

    def close(self):
        self.heard.close()
        self.files.close()


class TwilioCorner:
    def __init__(self, four):
        self.url = four.urls["twilio"]
        self.conversation = four.conversation
        self.sid = four.conversation.fetch().sid
        self.typists = Heard()
        self.join("twilio-watcher")
        self.watcher = Twilsock(self.url, "twilio-watcher")
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            try:
                header, payload = self.watcher.receive()
            except Exception:
                return
            if header["method"] == "notification":
                self.watcher.confirm(header)
                self.typists.items.append(json.loads(payload)["identity"])

    def say(self, author, text):
        return self.conversation.messages.create(author=author, body=text).sid

    def edit(self, id, author, text):
        self.conversation.messages(id).update(body=text)

    def delete(self, id):
        self.conversation.messages(id).delete()

    def show(self, author, picture):
        media = json.loads(self.fetch(f"/v1/Services/{SERVICE}/Media?Filename=p.png", picture, "image/png"))
        self.conversation.messages.create(author=author, media_sid=media["sid"])

    def fetch(self, path, data=None, kind=None):
        import base64
        keys = base64.b64encode(f"{ACCOUNT}:{TWILIO['auth_token']}".encode()).decode()
        headers = {"Authorization": f"Basic {keys}", **({"Content-Type": kind} if kind else {})}
        return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=20).read()

    def join(self, name):
        self.conversation.participants.create(identity=name)

    def read(self, name, id):
        if not self.has_member(name):
            self.join(name)
        participant = next(p for p in self.conversation.participants.list() if p.identity == name)
        index = self.conversation.messages(id).fetch().index
        self.conversation.participants(participant.sid).update(last_read_message_index=index)

    def type(self, name):
        if not self.has_member(name):
            self.join(name)
        socket = Twilsock(self.url, name)
        socket.rest("POST", "/v1/typing", f"ChannelSid={self.sid}".encode())
        socket.socket.close()

    def texts(self):
        return [(m.author, m.body) for m in self.conversation.messages.list(page_size=100) if m.body]

    def pictures(self):
        found = set()
        for message in self.conversation.messages.list(page_size=100):
            for media in message.media or []:
                record = json.loads(self.fetch(f"/v1/Services/{SERVICE}/Media/{media['sid']}"))
                found.add(digest(fetch(record["links"]["content_direct_temporary"])))
        return found

    def identities(self):
        """Whoever comes from elsewhere has their account's name before theirs."""
        return {p.identity.split(":")[-1]: p for p in self.conversation.participants.list()}

    def has_member(self, name):
        return name in self.identities()

    def has_read(self, name):
        reader = self.identities().get(name)
        return reader is not None and reader.last_read_message_index is not None

    def has_typed(self, name):
        # Twilio takes nobody's typing but that of the token's holder.
        return self.typists.has("ferry")

    def close(self):
        self.watcher.socket.close()


class Twilsock:
    """As much of Twilio's realtime socket as typing takes."""

    def __init__(self, url, identity):
        self.socket = connect(f"{url.replace('http', 'ws', 1)}/v3/wsconnect", proxy=None, legacy=True)
        token = AccessToken(ACCOUNT, KEY, TWILIO["api_secret"], identity=identity)
        token.add_grant(ChatGrant(service_sid=SERVICE))
        kinds = {"product": "ip_messaging", "type": "ers", "notification_protocol_version": 0,
                 "message_types": ["twilio.ipmsg.typing_indicator"]}
        answer, _ = self.ask({
            "method": "init", "token": token.to_jwt(), "continuation_token": None, "metadata": {"ver": "0.12.2"},
            "registrations": [kinds], "tweaks": None, "capabilities": ["client_update", "offline_storage"]})
        assert answer["status"]["code"] == 200, answer

    def send(self, header, payload=b""):
        header = {"id": f"TM{uuid.uuid4()}", **header, "payload_size": len(payload)}
        text = json.dumps(header).encode()
        self.socket.send(b"TWILSOCK V3.0 %d\r\n%s\r\n%s" % (len(text), text, payload))

    def receive(self):
        line, rest = self.socket.recv().split(b"\r\n", 1)
        size = int(line.split(b" ")[2])
        return json.loads(rest[:size]), rest[size + 2:]

    def ask(self, header, payload=b""):
        self.send(header, payload)
        while True:
            answer, data = self.receive()
            if answer["method"] == "reply":
                return answer, data
            self.confirm(answer)

    def confirm(self, header):
        self.send({"id": header["id"], "method": "reply", "payload_type": "application/json",
                   "status": {"code": 200, "status": "OK"}})

    def rest(self, method, path, payload):
        kind = "application/x-www-form-urlencoded"
        answer, _ = self.ask({
            "method": "message", "active_grant": "ip_messaging", "payload_type": kind,
            "http_request": {"host": "aim.us1.twilio.com", "path": path, "method": method, "params": {},
                             "headers": {"Content-Type": kind}}}, payload)
        assert answer["http_status"]["code"] == 200, answer


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

    def has_read(self, name):
        return any(data["user"] == name for data in self.commands("MESSAGE_READ"))

    def has_typed(self, name):
        return any(data["user"] == name for data in self.commands("USER_TYPING"))

    def close(self):
        self.client.disconnect()


class Files:
    """Pictures under links, as an app has them that stores none at Pusher."""

    def __init__(self):
        self.pictures = {}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                data = outer.pictures.get(urllib.parse.urlsplit(self.path).path)
                self.send_response(200 if data else 404)
                self.send_header("Content-Type", "image/png")
                self.send_header("Content-Length", str(len(data or b"")))
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def serve(self, data):
        path = f"/{len(self.pictures)}.png"
        self.pictures[path] = data
        return f"http://127.0.0.1:{self.server.server_port}{path}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def corners(four):
    kinds = [LocalCorner, PusherCorner, TwilioCorner, BackendlessCorner]
    return dict(zip(NAMES, (kind(four) for kind in kinds)))
