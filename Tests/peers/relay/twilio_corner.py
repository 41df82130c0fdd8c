"""Twilio's conversation, as its participants have it."""
import base64
import json
import threading
import urllib.request
import uuid

from three import ACCOUNT, KEY, SERVICE, TWILIO
from twilio.jwt.access_token import AccessToken
from twilio.jwt.access_token.grants import ChatGrant
from watching import Heard, digest, fetch
from websockets.sync.client import connect


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
        return self.conversation.messages.create(author=author, body=text or "\u200b").sid

    def edit(self, id, author, text):
        self.conversation.messages(id).update(body=text)

    def delete(self, id):
        self.conversation.messages(id).delete()

    def show(self, author, picture):
        media = json.loads(self.fetch(f"/v1/Services/{SERVICE}/Media?Filename=p.png", picture, "image/png"))
        self.conversation.messages.create(author=author, media_sid=media["sid"])

    def fetch(self, path, data=None, kind=None):
        keys = base64.b64encode(f"{ACCOUNT}:{TWILIO['auth_token']}".encode()).decode()
        headers = {"Authorization": f"Basic {keys}", **({"Content-Type": kind} if kind else {})}
        return urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers), timeout=20).read()

    def join(self, name):
        self.conversation.participants.create(identity=name)

    def leave(self, name):
        self.conversation.participants(name).delete()

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

    def members(self):
        return set(self.identities())

    def has_member(self, name):
        return name in self.members()

    def has_read(self, name, text):
        """Whether somebody has read up to the message of that text."""
        reader = self.identities().get(name)
        index = next(m.index for m in self.conversation.messages.list(page_size=100) if m.body == text)
        return reader is not None and reader.last_read_message_index == index

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
