"""All four services and a relay between them."""
import json
import urllib.parse
import urllib.request

from bridge import APP, TOKEN, Local, Process, wait_ready
from three import ACCOUNT, TWILIO, twilio_keys
from twilio.rest import Client

APP_ID = "DE300000-0000-0000-0000-000000000001"
APP_KEY = "DE300000-0000-0000-0000-0000000000AA"
CHANNEL = "realtime-example"


def services_config(folder, urls={}):
    """On free ports, or on those of `urls`."""
    at = {name: urllib.parse.urlsplit(urls.get(name, "http://127.0.0.1:0")).netloc
          for name in ("local", "pusher", "twilio", "backendless")}
    path = folder / "serve4.yaml"
    path.write_text(f"""
serve:
  data: {folder}/data4
  local: {{ listen: "{at['local']}", tokens: [{TOKEN}] }}
  facades:
    - {{ provider: pusher, listen: "{at['pusher']}", app_id: "1001", key: demo-key, secret: demo-secret }}
    - {{ provider: twilio, listen: "{at['twilio']}", {twilio_keys()}, conversations: [lobby] }}
    - {{ provider: backendless, listen: "{at['backendless']}", app_id: {APP_ID}, api_key: {APP_KEY}, rehearsal: {{ token: rehearse }} }}
""")
    return path


def relay_config(folder, urls, app=""):
    pusher_at = urllib.parse.urlsplit(urls["pusher"])
    twilio_at = urllib.parse.urlsplit(urls["twilio"]).netloc
    places = f'api_url: "{urls["twilio"]}", media_url: "http://{twilio_at}", realtime_url: "ws://{twilio_at}"'
    path = folder / "relay4.yaml"
    path.write_text(f"""
accounts:
  here: {{ provider: local, url: "{urls['local']}", token: {TOKEN} }}
  site: {{ provider: pusher, app_id: "{APP['app_id']}", key: {APP['key']}, secret: {APP['secret']}, host: 127.0.0.1, port: {pusher_at.port}, tls: false }}
  support: {{ provider: twilio, {twilio_keys()}, {places}, poll: 1s, writes_per_second: 1000 }}
  app: {{ provider: backendless, server_url: "{urls['backendless']}", app_id: {APP_ID}, api_key: {APP_KEY}, poll: 2s, {app} reads: {{ command: MESSAGE_READ }} }}
bridges:
  lobby:
    between: [here:lobby, site:chatroom, support:lobby, "app:{CHANNEL}"]
    mirror: [messages, edits, deletes, typing, images, members, reads]
relay: {{ listen: "127.0.0.1:0", journal: {folder}/relay4.db, token: {TOKEN}, allow_hosts: [127.0.0.1] }}
""")
    return path


class Four:
    """The services; the Backendless side may be put out of reach by a gate before it. `app`: settings of its account."""

    def __init__(self, folder, gate=None, app=""):
        self.folder = folder
        self.app = app
        self.services = Process(folder, "serve", services_config(folder))
        self.urls = dict(self.services.urls)
        self.app_url = self.urls["backendless"]
        self.gate = gate(self.app_url) if gate else None
        if self.gate:
            self.urls["backendless"] = self.gate.url
        self.local = Local(self.urls["local"])
        client = Client(ACCOUNT, TWILIO["auth_token"])
        client.conversations.base_url = self.urls["twilio"]
        self.conversation = client.conversations.v1.conversations("lobby")
        self.relay = None

    def start(self):
        self.relay = Process(self.folder, "relay", relay_config(self.folder, self.urls, self.app))

    def start_ready(self):
        self.start()
        wait_ready(self.relay.urls["relay"])

    def rehearse(self, plan):
        """Failures of the Backendless side on purpose."""
        request = urllib.request.Request(
            f"{self.app_url}/ferry/rehearsal", json.dumps(plan).encode(), {"Authorization": "Bearer rehearse"})
        urllib.request.urlopen(request, timeout=10).read()

    def kill_services(self):
        """All at once, and starts them again where they were."""
        urls = self.services.urls
        self.services.kill()
        self.services = Process(self.folder, "serve", services_config(self.folder, urls))

    # As an app does that uses the official SDK: the row is saved, then published as it was saved.

    def rest(self, method, path, body=None, base=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{base or self.app_url}/{APP_ID}/{APP_KEY}{path}", data, {"Content-Type": "application/json"},
            method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return json.loads(text) if text else None

    def say(self, author, text, **more):
        row = {"userName": author, "messageText": text, "channel": CHANNEL, "___class": "ChatMessage", **more}
        row = self.rest("PUT", "/data/ChatMessage", row)
        self.rest("POST", f"/messaging/{CHANNEL}", {"message": row, "publisherId": author})
        return row

    def rows(self):
        """The channel's rows, oldest first."""
        found = []
        while True:
            page = self.rest("POST", "/data/ChatMessage/find", {
                "pageSize": 100, "offset": len(found), "where": f"channel = '{CHANNEL}'",
                "sortBy": "created asc"})
            found += page
            if len(page) < 100:
                return found

    def stop(self):
        if self.relay is not None:
            self.relay.stop()
        if self.gate:
            self.gate.close()
        self.services.stop()
