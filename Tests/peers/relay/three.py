"""Three services and a relay between them, and a way in between for webhooks that loses, repeats and swaps them."""
import http.client
import http.server
import pathlib
import random
import sys
import threading
import urllib.parse
import urllib.request

from bridge import APP, TOKEN, Local, Process, wait_ready
from twilio.rest import Client

sys.path.append(str(pathlib.Path(__file__).parents[1] / "twilio"))
from contract import Contract  # noqa: E402: beside the tests of the facade

ACCOUNT = "AC00000000000000000000000000000001"
KEY = "SK00000000000000000000000000000001"
SERVICE = "IS00000000000000000000000000000001"
TWILIO = {"auth_token": "demo-auth-token", "api_secret": "demo-api-secret"}


def twilio_keys():
    return (f"account_sid: {ACCOUNT}, auth_token: {TWILIO['auth_token']}, api_key: {KEY}, "
            f"api_secret: {TWILIO['api_secret']}, service_sid: {SERVICE}")


def services_config(folder):
    path = folder / "serve3.yaml"
    path.write_text(f"""
serve:
  data: {folder}/data3
  local: {{ listen: "127.0.0.1:0", tokens: [{TOKEN}] }}
  facades:
    - {{ provider: pusher, listen: "127.0.0.1:0", app_id: "1001", key: demo-key, secret: demo-secret }}
    - {{ provider: twilio, listen: "127.0.0.1:0", {twilio_keys()}, conversations: [lobby], rehearsal: {{ token: rehearse }} }}
""")
    return path


def relay_config(folder, urls, webhook, listen=0, poll="1s", api=None):
    pusher_at = urllib.parse.urlsplit(urls["pusher"])
    twilio_at = urllib.parse.urlsplit(urls["twilio"]).netloc
    places = f'api_url: "{api or urls["twilio"]}", media_url: "http://{twilio_at}", realtime_url: "ws://{twilio_at}"'
    path = folder / "relay3.yaml"
    path.write_text(f"""
accounts:
  here: {{ provider: local, url: "{urls['local']}", token: {TOKEN} }}
  site: {{ provider: pusher, app_id: "{APP['app_id']}", key: {APP['key']}, secret: {APP['secret']}, host: 127.0.0.1, port: {pusher_at.port}, tls: false }}
  support: {{ provider: twilio, {twilio_keys()}, {places}, webhook: "{webhook}", webhook_setup: true, poll: {poll}, writes_per_second: 1000 }}
bridges:
  lobby:
    between: [here:lobby, site:chatroom, support:lobby]
    mirror: [messages, edits, deletes, typing, images, members, reads]
relay: {{ listen: "127.0.0.1:{listen}", journal: {folder}/relay3.db, token: {TOKEN}, allow_hosts: [127.0.0.1] }}
""")
    return path


class Rough:
    """Passes webhooks on to the relay, but loses half, repeats a tenth and swaps neighbours. It tells the sender that all
    is well, or nothing would be lost."""

    def __init__(self, seed, lose=0.5, repeat=0.1, swap=0.2):
        self.random = random.Random(seed)
        self.lose, self.repeat, self.swap = lose, repeat, swap
        self.target = None
        self.held = None
        self.lock = threading.Lock()
        self.counts = {"lost": 0, "repeated": 0, "swapped": 0, "passed": 0}
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.took(self.path, dict(self.headers), body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/support"

    def took(self, *call):
        with self.lock:
            if self.random.random() < self.lose:
                self.counts["lost"] += 1
                return
            if self.held is None and self.random.random() < self.swap:
                self.held = call
                return
            calls = [call]
            if self.held is not None:
                self.counts["swapped"] += 1
                calls.append(self.held)
                self.held = None
            if self.random.random() < self.repeat:
                self.counts["repeated"] += 1
                calls.append(call)
            for one in calls:
                self.counts["passed"] += 1
                self.send(*one)

    def send(self, path, headers, body):
        try:
            connection = http.client.HTTPConnection(urllib.parse.urlsplit(self.target).netloc, timeout=5)
            names = ("Content-Type", "X-Twilio-Signature", "X-Twilio-Webhooks-Signature-Settings")
            connection.request("POST", path, body, {k: v for k, v in headers.items() if k in names})
            connection.getresponse().read()
            connection.close()
        except OSError:
            pass

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Spy:
    """Stands between the relay and Twilio's REST API, and holds every request against Twilio's OpenAPI document."""

    def __init__(self, target):
        self.contract = Contract()
        self.faults = []
        host = urllib.parse.urlsplit(target).netloc
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.saw(self.command, self.path, body.decode())
                connection = http.client.HTTPConnection(host, timeout=60)
                try:
                    # The host stays, because the pages of lists are told by it.
                    connection.request(self.command, self.path, body, dict(self.headers))
                    answer = connection.getresponse()
                    data = answer.read()
                except (OSError, http.client.HTTPException):
                    # An answer that is lost is lost here too.
                    self.close_connection = True
                    return
                finally:
                    connection.close()
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name not in ("Content-Length", "Connection", "Date"):
                        self.send_header(name, value)
                if answer.status != 204:
                    self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = pass_on

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def saw(self, method, path, form):
        try:
            self.contract.check_request(method, path, form)
        except Exception as fault:  # the relay shall not notice
            self.faults.append(f"{method} {path}: {fault}")

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for (method, path), count in sorted(self.contract.asked.items()):
            print(f"{count:6} {method:6} {path}")


class Three:
    """The services, with the official client for Twilio."""

    def __init__(self, folder, seed=1, spied=False, **rough):
        self.folder = folder
        self.services = Process(folder, "serve", services_config(folder))
        self.urls = self.services.urls
        self.local = Local(self.urls["local"])
        self.rough = Rough(seed, **rough)
        self.spy = Spy(self.urls["twilio"]) if spied else None
        client = Client(ACCOUNT, TWILIO["auth_token"])
        client.conversations.base_url = self.urls["twilio"]
        self.conversation = client.conversations.v1.conversations("lobby")
        self.relay = None

    def start(self):
        config = relay_config(self.folder, self.urls, self.rough.url, api=self.spy and self.spy.url)
        self.relay = Process(self.folder, "relay", config)
        self.rough.target = self.relay.urls["relay"]
        wait_ready(self.relay.urls["relay"])

    def at_twilio(self):
        """Everything in the conversation, oldest first."""
        return self.conversation.messages.list(page_size=100)

    def rehearse(self, plan):
        request = urllib.request.Request(
            self.urls["twilio"] + "/ferry/rehearsal", plan.encode(), {"Authorization": "Bearer rehearse"})
        urllib.request.urlopen(request, timeout=10).read()

    def stop(self):
        if self.relay is not None:
            self.relay.stop()
        self.rough.close()
        if self.spy is not None:
            self.spy.close()
        self.services.stop()
