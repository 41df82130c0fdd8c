"""The local server and the facades of one process, and `ferry` run against them as a user does."""
import json
import os
import signal
import subprocess
import time
import urllib.request

from served import FERRY, PATIENCE, Served

TOKEN = "owner"
ACCOUNT = "AC00000000000000000000000000000001"
APP = "DE300000-0000-0000-0000-000000000001"
KEY = "DE300000-0000-0000-0000-0000000000AA"


class Services(Served):
    """All that keep a history."""

    name = "local"

    def section(self):
        rehearsal = {"token": "rehearse"}
        return {
            "local": {"listen": self.listen, "tokens": [TOKEN]},
            "facades": [
                {"provider": "twilio", "listen": "127.0.0.1:0", "account_sid": ACCOUNT, "auth_token": "secret",
                 "api_key": "SK00000000000000000000000000000001", "api_secret": "s",
                 "service_sid": "IS00000000000000000000000000000001", "rehearsal": rehearsal},
                {"provider": "backendless", "listen": "127.0.0.1:0", "app_id": APP, "api_key": KEY,
                 "rehearsal": rehearsal}]}

    def start(self):
        super().start()
        self.urls = json.loads((self.folder / "ready.json").read_text())
        config = {
            "accounts": {
                "here": {"provider": "local", "url": self.urls["local"], "token": TOKEN},
                "support": {"provider": "twilio", "account_sid": ACCOUNT, "auth_token": "secret",
                            "api_url": self.urls["twilio"], "create": True, "writes_per_second": 1000, "poll": "1s"},
                "app": {"provider": "backendless", "server_url": self.urls["backendless"], "app_id": APP,
                        "api_key": KEY}},
            "bridges": {"move": {"from": "here:followed", "to": ["here:follower"]}},
            "identities": {"ada": {"here": "ada", "support": "ada@example.org"}},
            "relay": {"listen": "127.0.0.1:0", "journal": str(self.folder / "relay.db"), "allow_hosts": ["127.0.0.1"]}}
        self.config = self.folder / "ferry.yaml"
        self.config.write_text(json.dumps(config))

    # The command line

    def command(self, *arguments):
        return [FERRY, *map(str, arguments), "--config", str(self.config)]

    def run(self, *arguments, code=0):
        done = subprocess.run(self.command(*arguments), cwd=self.folder, capture_output=True, timeout=10 * PATIENCE)
        output, errors = done.stdout.decode(), done.stderr.decode()
        assert code is None or done.returncode == code, (arguments, done.returncode, output[-2000:], errors[-2000:])
        return output

    def summary(self, *arguments, code=0):
        return json.loads(self.run(*arguments, "--json", code=code).splitlines()[-1])

    def begin(self, *arguments):
        return subprocess.Popen(
            self.command(*arguments), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env={**os.environ, "FERRY_CONFIG": str(self.config)})

    def history(self, address):
        lines = self.run("history", address, "--json", "--limit", "1000000").splitlines()
        return [json.loads(line) for line in lines]

    # The services themselves

    def local(self, method, path, body=None):
        request = urllib.request.Request(
            self.urls["local"] + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            data = answer.read()
        return json.loads(data) if data else None

    def fill(self, room, items):
        """Writes items of the past, each with a key, through the server's own API."""
        ids = []
        for start in range(0, len(items), 500):
            ids += self.local("POST", f"/v1/rooms/{room}/import", {"items": items[start:start + 500]})["ids"]
        return ids

    def rehearse(self, service, **plan):
        request = urllib.request.Request(
            self.urls[service] + "/ferry/rehearsal", method="POST", data=json.dumps(plan).encode(),
            headers={"Authorization": "Bearer rehearse", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read()


def wait_for(what, patience=3 * PATIENCE):
    end = time.monotonic() + patience
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, "not in time"
        time.sleep(0.05)


def interrupt(process, number=signal.SIGINT):
    process.send_signal(number)
    output, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, output.decode(), errors.decode()
