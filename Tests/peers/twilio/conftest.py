"""The Twilio facade as its own process, the official client pointed at it, and a server that takes its webhooks."""
import base64
import http.client
import http.server
import json
import threading
import urllib.parse

import pytest
from twilio.http.http_client import TwilioHttpClient
from twilio.request_validator import RequestValidator
from twilio.rest import Client

from contract import Contract
from served import FERRY, Served  # noqa: F401: for tests

ACCOUNT = "AC00000000000000000000000000000001"
KEY = "SK00000000000000000000000000000001"
SERVICE = "IS00000000000000000000000000000001"
TOKEN, SECRET = "demo-auth-token", "demo-api-secret"
CONTRACT = Contract()


class Facade(Served):
    """The Twilio facade alone."""

    name = "twilio"

    def section(self):
        facade = {
            "provider": "twilio", "listen": self.listen, "account_sid": ACCOUNT, "auth_token": TOKEN, "api_key": KEY,
            "api_secret": SECRET, "service_sid": SERVICE, "conversations": ["lobby"], "post_webhook_retry_count": 2,
            "rehearsal": {"token": "rehearse"}}
        return {"facades": [facade]}

    def client(self, *credentials):
        """The official client; its base URL is all that is changed. Every answer is held against the document."""
        http_client = TwilioHttpClient(request_hooks={"response": check})
        client = Client(*(credentials or (ACCOUNT, TOKEN)), http_client=http_client)
        client.conversations.base_url = self.url
        return client

    def raw(self, method, path, body=None, headers=None, credentials=(ACCOUNT, TOKEN)):
        """(status, headers, bytes) of one request on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = dict(headers or {})
        if credentials:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(credentials).encode()).decode()
        try:
            try:
                connection.request(method, path, body, headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before all of it was sent: the answer is there to be read
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def form(self, path, fields, headers=None):
        body = urllib.parse.urlencode(fields, doseq=True).encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded", **(headers or {})}
        status, _, data = self.raw("POST", path, body, headers)
        return status, json.loads(data)

    def rehearse(self, **plan):
        status, _, _ = self.raw(
            "POST", "/ferry/rehearsal", json.dumps(plan).encode(), {"Authorization": "Bearer rehearse"}, None)
        assert status == 200


def check(response, *_, **__):
    CONTRACT.check(response.request.method, response.request.url, response.status_code, response.content)


class Hooks:
    """Takes webhooks, checks each signature with the official validator, and answers as told."""

    def __init__(self):
        self.changed = threading.Condition(threading.RLock())
        self.calls = []
        self.bad = []
        self.answers = {}
        hooks = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                hooks.take(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

            def do_GET(self):
                hooks.take(self, "")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, request, body):
        form = dict(urllib.parse.parse_qsl(body, keep_blank_values=True, strict_parsing=bool(body)))
        url = self.url + request.path
        if not RequestValidator(TOKEN).validate(url, form, request.headers["X-Twilio-Signature"]):
            self.bad.append((url, form))
        parts = urllib.parse.urlsplit(request.path)
        fields = form or dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        with self.changed:
            self.calls.append((parts.path, fields, request.headers["I-Twilio-Idempotency-Token"]))
            answers = self.answers.get(parts.path, [])
            answer = answers.pop(0) if len(answers) > 1 else (answers or [(200, "")])[0]
            self.changed.notify_all()
        status, text = answer(fields) if callable(answer) else answer
        data = text.encode()
        try:
            request.send_response(status)
            request.send_header("Content-Length", str(len(data)))
            request.end_headers()
            request.wfile.write(data)
        except OSError:
            pass  # the sender has given up

    def at(self, path, event=None):
        with self.changed:
            return [form for name, form, _ in self.calls if name == path and event in (None, form["EventType"])]

    def wait_for(self, condition, seconds=60):
        with self.changed:
            assert self.changed.wait_for(condition, seconds), self.calls

    def wait(self, path, count, event=None):
        self.wait_for(lambda: len(self.at(path, event)) >= count)
        return self.at(path, event)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        assert not self.bad, self.bad


@pytest.fixture
def facade(tmp_path):
    facade = Facade(tmp_path)
    facade.start()
    yield facade
    facade.stop()


@pytest.fixture
def client(facade):
    return facade.client()


@pytest.fixture
def hooks():
    hooks = Hooks()
    yield hooks
    hooks.close()


@pytest.fixture(params=["account", "service"])
def scope(request, client):
    """What has the resources: the account's default service in the short form, or named."""
    api = client.conversations.v1
    return api if request.param == "account" else api.services(SERVICE)


def pytest_terminal_summary(terminalreporter):
    if CONTRACT.counts:
        paths = {path for _, path, _ in CONTRACT.counts}
        terminalreporter.write_line(
            f"twilio: {sum(CONTRACT.counts.values())} answers of {len(CONTRACT.counts)} kinds on {len(paths)} of "
            f"{len(CONTRACT.paths)} paths fit the OpenAPI document")
