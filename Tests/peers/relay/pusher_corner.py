"""Pusher's channel, as the users of an app have it."""
import http.server
import json
import threading
import urllib.parse

from bridge import Subscriber, official
from watching import digest, fetch


class PusherCorner:
    EVENTS = ["new_message", "message_updated", "message_deleted", "user_typing", "user_joined", "user_left", "message_read"]

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

    def leave(self, name):
        self.trigger("user_left", sender=name)

    def read(self, name, id):
        self.trigger("message_read", ID=id, sender=name)

    def type(self, name):
        self.trigger("user_typing", sender=name, text=f"{name} is typing...")

    def events(self, wanted):
        return [data for event, data in list(self.heard.events) if event == wanted]

    def shown(self):
        shown = {}
        for event, data in list(self.heard.events):
            if event in ("new_message", "message_updated"):
                shown[str(data["ID"])] = (data["sender"], data["text"])
            elif event == "message_deleted":
                shown.pop(str(data["ID"]), None)
        return shown

    def texts(self):
        return [(sender, text) for sender, text in self.shown().values() if text]

    def pictures(self):
        return {digest(fetch(data["image"])) for data in self.events("new_message") if data.get("image")}

    def has_member(self, name):
        return any(data["sender"] == name for data in self.events("user_joined"))

    def has_read(self, name, text):
        """Whether somebody has read up to the message of that text."""
        id = next(id for id, (_, said) in self.shown().items() if said == text)
        return any(name in json.dumps(data) and str(data["ID"]) == id for data in self.events("message_read"))

    def has_typed(self, name):
        return any(data["sender"] == name for data in self.events("user_typing"))

    def close(self):
        self.heard.close()
        self.files.close()


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
