"""The realtime socket, with tokens of the official library and a WebSocket client that knows nothing of ours."""
import json
import time
import uuid

import pytest
from conftest import ACCOUNT, KEY, SECRET, SERVICE
from twilio.jwt.access_token import AccessToken
from twilio.jwt.access_token.grants import ChatGrant
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

TYPING = "twilio.ipmsg.typing_indicator"


def token(identity="ada", account=ACCOUNT, key=KEY, secret=SECRET, service=SERVICE, **options):
    made = AccessToken(account, key, secret, identity=identity, **options)
    made.add_grant(ChatGrant(service_sid=service))
    return made.to_jwt()


class Socket:
    def __init__(self, facade):
        self.socket = connect(f"ws://127.0.0.1:{facade.port}/v3/wsconnect", proxy=None)

    def send(self, header, payload=b""):
        header = {"id": f"TM{uuid.uuid4()}", **header, "payload_size": len(payload)}
        text = json.dumps(header).encode()
        self.socket.send(b"TWILSOCK V3.0 %d\r\n%s\r\n%s" % (len(text), text, payload))
        return header["id"]

    def receive(self):
        data = self.socket.recv(timeout=60)
        line, rest = data.split(b"\r\n", 1)
        word, version, size = line.split(b" ")
        assert (word, version) == (b"TWILSOCK", b"V3.0")
        header = json.loads(rest[:int(size)])
        assert rest[int(size):int(size) + 2] == b"\r\n"
        payload = rest[int(size) + 2:]
        assert header["payload_size"] == len(payload)
        return header, payload

    def ask(self, header, payload=b""):
        sent = self.send(header, payload)
        while True:
            answer, data = self.receive()
            if answer["method"] == "reply":
                assert answer["id"] == sent
                return answer, data
            self.confirm(answer)

    def confirm(self, header):
        self.send({"id": header["id"], "method": "reply", "payload_type": "application/json",
                   "status": {"code": 200, "status": "OK"}})

    def init(self, text, registers=True):
        registrations = [{"product": "ip_messaging", "type": "ers", "notification_protocol_version": 0,
                          "message_types": [TYPING, "twilio.sync.event"]}] if registers else []
        return self.ask({
            "method": "init", "token": text, "continuation_token": None, "metadata": {"ver": "0.12.2"},
            "registrations": registrations, "tweaks": None, "capabilities": ["client_update", "offline_storage"]})[0]

    def rest(self, method, path, payload=b"", **more):
        answer, data = self.ask({
            "method": "message", "active_grant": "ip_messaging", "payload_type": "application/x-www-form-urlencoded",
            "http_request": {"host": "aim.us1.twilio.com", "path": path, "method": method, "params": {},
                             "headers": {"Content-Type": "application/x-www-form-urlencoded"}, **more}}, payload)
        assert answer["status"] == {"code": 200, "status": "OK"}
        return answer["http_status"]["code"], json.loads(data)

    def type(self, sid):
        return self.rest("POST", "/v1/typing", f"ChannelSid={sid}".encode())

    def typing(self):
        header, payload = self.receive()
        assert (header["method"], header["message_type"]) == ("notification", TYPING)
        self.confirm(header)
        return json.loads(payload)


@pytest.fixture
def room(client):
    room = client.conversations.v1.conversations("lobby")
    for identity in ("ada", "bob"):
        room.participants.create(identity=identity)
    return room


def test_a_token_of_the_official_library_opens_the_socket(facade, client):
    answer = Socket(facade).init(token())
    assert answer["status"]["code"] == 200
    assert answer["continuation_token"] and answer["continuation_token_status"]["reissued"] is False
    assert "ip_messaging" in answer["offline_storage"] and answer["capabilities"] == ["client_update"]
    # Whoever comes is a user from then on.
    assert client.conversations.v1.users("ada").fetch().identity == "ada"


@pytest.mark.parametrize("text, number", [
    (lambda: "nonsense", 20101), (lambda: token(secret="wrong"), 20107), (lambda: token(key="SK" + "a" * 32), 20103),
    (lambda: token(account="AC" + "a" * 32), 20103), (lambda: token(ttl=-5), 20104),
    (lambda: token(nbf=int(time.time()) + 600), 20105), (lambda: token(ttl=90_000), 20157)])
def test_any_other_token_is_refused_with_its_number(facade, text, number):
    socket = Socket(facade)
    answer = socket.init(text())
    assert (answer["status"]["code"], answer["status"]["errorCode"]) == (401, number)
    with pytest.raises(ConnectionClosed):
        socket.receive()


def test_typing_reaches_everybody_but_the_one_who_types(facade, room):
    sid = room.fetch().sid
    ada, adas_phone, bob, eve, deaf = (Socket(facade) for _ in range(5))
    for socket, name in ((ada, "ada"), (adas_phone, "ada"), (bob, "bob"), (eve, "eve")):
        assert socket.init(token(name))["status"]["code"] == 200
    deaf.init(token("bob"), registers=False)
    assert ada.type(sid) == (200, {"typing_timeout": 5})
    assert bob.typing() == {"channel_sid": sid, "identity": "ada", "typing_timeout": 6}
    assert bob.type(sid) == (200, {"typing_timeout": 5})
    # The first that ada's sockets hear of is bob: their own typing never came back. An older client registers later.
    for socket in (ada, adas_phone):
        assert socket.typing()["identity"] == "bob"
    header, _ = deaf.ask(
        {"method": "put_notification_ctx", "notification_ctx_id": str(uuid.uuid4()),
         "payload_type": "application/json"},
        json.dumps({"product_id": "ip_messaging", "message_types": [TYPING]}).encode())
    assert header["status"]["code"] == 200
    status, body = eve.type(sid)
    assert (status, body["code"]) == (403, 50430)
    status, body = ada.type("CH" + "0" * 32)
    assert (status, body["code"]) == (404, 50350)
    # A message ends it, so that the next typing is news at once.
    room.messages.create(author="ada", body="said")
    ada.type(sid)
    assert deaf.typing()["identity"] == "ada"
    assert deaf.ask({"method": "delete_notification_ctx", "notification_ctx_id": "x"})[0]["status"]["code"] == 200


def test_configuration_and_what_is_not_offered(facade, room):
    socket = Socket(facade)
    socket.init(token())
    status, configuration = socket.rest("GET", "/Client/v2/Configuration")
    assert status == 200 and configuration["identity"] == "ada"
    assert configuration["links"]["typing"] == f"http://127.0.0.1:{facade.port}/v1/typing"
    assert configuration["options"]["consumption_report_interval"] == "PT5S"
    status, body = socket.rest("GET", "/v3/Maps/x")
    assert (status, body["code"]) == (404, 20404)
    assert socket.ask({"method": "nonsense"})[0]["status"]["code"] == 400


@pytest.mark.parametrize("data, code", [
    (b"nonsense", 406), (b"TWILSOCK V3.0 5\r\n{}\r\n", 406), (b"TWILSOCK V3.0 2\r\n{}\r\n", 406),
    (b'TWILSOCK V3.0 41\r\n{"id":"x","method":"message","a":"bbbbbbbb"}\r\n', 406)])
def test_what_cannot_be_read_ends_the_socket(facade, data, code):
    socket = Socket(facade)
    socket.socket.send(data)
    header, _ = socket.receive()
    assert (header["method"], header["status"]["code"]) == ("close", code)
    with pytest.raises(ConnectionClosed):
        socket.receive()


def test_nothing_goes_before_a_token(facade):
    socket = Socket(facade)
    socket.send({"method": "message", "http_request": {"method": "POST", "path": "/v1/typing"}})
    header, _ = socket.receive()
    assert (header["method"], header["status"]["code"]) == ("close", 401)


def test_a_token_is_renewed_in_time_or_ends_the_socket(facade):
    socket = Socket(facade)
    socket.init(token(ttl=119))
    # Less than two minutes are left from the start.
    header, _ = socket.receive()
    assert (header["method"], header["client_update_type"]) == ("client_update", "token_about_to_expire")
    socket.confirm(header)
    assert socket.ask({"method": "update", "token": token("bob")})[0]["status"]["code"] == 401
    assert socket.ask({"method": "update", "token": token(ttl=3)})[0]["status"]["code"] == 200
    while header.get("method") != "close":
        header, _ = socket.receive()
    assert header["status"]["code"] == 410


def test_a_server_that_stops_asks_to_come_back(facade):
    socket = Socket(facade)
    socket.init(token())
    facade.stop()
    header, payload = socket.receive()
    assert (header["method"], header["status"]["code"]) == ("close", 308)
    assert json.loads(payload)["backoff_policy"]["reconnect_min_ms"] > 0
