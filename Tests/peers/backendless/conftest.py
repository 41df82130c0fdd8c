"""The Backendless facade as its own process, and Socket.IO clients of both generations pointed at it."""
import json
import pathlib
import queue
import subprocess
import sys
import threading
import urllib.parse

import pytest
import requests

from served import PATIENCE, ROOT, Served

PYTHON = {4: sys.executable, 3: str(ROOT / ".venv-eio3/bin/python")}
APP_ID, KEY = "DE300000-0000-0000-0000-000000000001", "DE300000-0000-0000-0000-0000000000AA"


class Facade(Served):
    """The Backendless facade alone."""

    name = "backendless"

    def __init__(self, folder):
        super().__init__(folder)
        self.peers = []

    def section(self):
        facade = {
            "provider": "backendless", "listen": self.listen, "app_id": APP_ID, "api_key": KEY,
            "rehearsal": {"token": "rehearse"}}
        return {"facades": [facade]}

    def stop(self):
        for peer in self.peers:
            peer.close()
        super().stop()

    def call(self, method, path, body=None, token=None, status=200, **more):
        """A call of the REST API: its JSON, or its text where there is none."""
        headers = {"user-token": token} if token else {}
        answer = requests.request(
            method, f"{self.url}/{APP_ID}/{KEY}{path}", json=body, headers={**headers, **more.pop("headers", {})},
            timeout=PATIENCE, **more)
        assert answer.status_code == status, (answer.status_code, answer.text)
        try:
            return answer.json()
        except ValueError:
            return answer.text

    def publish(self, message, channel="room", **options):
        return self.call("POST", f"/messaging/{urllib.parse.quote(channel, safe='')}", {"message": message, **options})

    def user(self, email):
        self.call("POST", "/users/register", {"email": email, "password": "pw"})
        return self.call("POST", "/users/login", {"login": email, "password": "pw"})

    def peer(self, generation, transports, token="null", key=KEY, joins=True, options=()):
        query = f"apiKey={key}&clientId=py-{generation}&userToken={token}"
        peer = Peer(generation, f"{self.url}/?{query}", transports, options)
        self.peers.append(peer)
        if joins:
            peer.connected()
        return peer


class Peer:
    """peer.py, with what it says in the order in which it says it."""

    def __init__(self, generation, url, transports, options=()):
        self.process = subprocess.Popen(
            [PYTHON[generation], str(pathlib.Path(__file__).with_name("peer.py")), url, APP_ID, transports, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.said = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.said.put(json.loads(line))
        self.said.put({"event": "eof", "data": None})

    def connected(self):
        """Waits until the library would tell of the connection's end too: each generation says the two in its order."""
        said = {self.said.get(timeout=PATIENCE)["event"] for _ in range(2)}
        assert said == {"connect", "transport"}, said

    def expect(self, event, past=("transport",)):
        """The data of the next event of that name; what says nothing about the chat is passed over."""
        while True:
            said = self.said.get(timeout=PATIENCE)
            if said["event"] == event:
                return said["data"]
            assert said["event"] in past, said

    def result(self, id):
        """The data of the next answer to a subscription, which must be that one's."""
        answer = self.expect("SUB_RES")
        assert answer["id"] == id and "error" not in answer, answer
        return answer["data"]

    def emit(self, event, data):
        self.process.stdin.write(json.dumps({"event": event, "data": data}) + "\n")
        self.process.stdin.flush()

    def subscribe(self, name, id, **options):
        self.emit("SUB_ON", {"id": id, "name": name, "options": options})

    def listen(self, name, id, **options):
        self.subscribe(name, id, **options)
        assert self.expect("SUB_READY") == {"id": id}

    def join(self, channel="room"):
        self.subscribe("PUB_SUB_CONNECT", "c", channel=channel)
        assert self.result("c") == "connected"

    def call(self, name, id, **options):
        self.emit("MET_REQ", {"id": id, "name": name, "options": options})
        return self.expect("MET_RES")

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def facade(tmp_path):
    facade = Facade(tmp_path)
    facade.start()
    try:
        yield facade
    finally:
        facade.stop()
