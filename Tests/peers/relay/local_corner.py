"""The local room, as its users have it."""
import json
import threading

from bridge import TOKEN
from watching import Heard
from websockets.sync.client import connect


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

    def leave(self, name):
        self.local.call("DELETE", f"/v1/rooms/lobby/members/{name}")

    def read(self, name, id):
        self.local.call("PUT", f"/v1/rooms/lobby/reads/{name}", {"id": id})

    def type(self, name):
        self.local.call("POST", "/v1/rooms/lobby/typing", {"by": {"id": name, "name": name}})

    def texts(self):
        return [(m["author"]["name"], m["text"]) for m in self.local.messages("lobby") if m.get("text")]

    def pictures(self):
        return {a["sha256"] for m in self.local.messages("lobby") for a in m.get("attachments", [])}

    def members(self):
        return {m["name"] for m in self.local.call("GET", "/v1/rooms/lobby/members").get("members", [])}

    def has_member(self, name):
        return name in self.members()

    def has_read(self, name, text):
        """Whether somebody has read up to the message of that text."""
        id = next(m["id"] for m in self.local.messages("lobby") if m.get("text") == text)
        reads = self.local.call("GET", "/v1/rooms/lobby/reads").get("reads", [])
        return any(name in json.dumps(r["by"]) and r["id"] == id for r in reads)

    def has_typed(self, name):
        return self.typists.has(name)

    def close(self):
        self.socket.close()
