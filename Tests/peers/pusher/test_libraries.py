"""Operations of the libraries that the other files leave out, so that none remains."""
import asyncio
import base64
import http.server
import json
import threading

import asyncpusher
import nacl.secret
import pusher
import pusher.aiohttp
import pysher
import pytest
from conftest import until

MASTER_KEY = base64.b64encode(b"01234567890123456789012345678901").decode()


def opened(facade, channel, data):
    """What only who holds the channel's key can read."""
    secret = facade.http(encryption_master_key_base64=MASTER_KEY).authenticate(channel, "1.1")["shared_secret"]
    sealed = json.loads(data)
    box = nacl.secret.SecretBox(base64.b64decode(secret))
    return json.loads(box.decrypt(base64.b64decode(sealed["ciphertext"]), base64.b64decode(sealed["nonce"])))


# pusher

def test_what_is_encrypted_passes_unread(facade):
    subscriber = facade.subscriber("private-encrypted-a", "private-encrypted-b")
    client = facade.http(encryption_master_key_base64=MASTER_KEY)
    assert client.trigger("private-encrypted-a", "e", {"text": "h\u00e9llo"}) == {}
    assert client.trigger_batch([
        {"channel": "private-encrypted-a", "name": "e", "data": {"n": 1}},
        {"channel": "private-encrypted-b", "name": "e", "data": {"n": 2}}]) == {}
    subscriber.wait(lambda: len(subscriber.events) == 3)
    assert [(channel, opened(facade, channel, data)) for channel, _, data in subscriber.events] == [
        ("private-encrypted-a", {"text": "h\u00e9llo"}), ("private-encrypted-a", {"n": 1}),
        ("private-encrypted-b", {"n": 2})]
    body = json.dumps({"name": "e", "channels": ["private-encrypted-a", "b"], "data": "{}"}).encode()
    status, text = facade.signed("POST", "/apps/1001/events", body)
    assert status == 400 and "multiple channels" in text


def test_an_encrypted_cache_channel_keeps_what_it_cannot_read(facade):
    channel = "private-encrypted-cache-a"
    facade.http(encryption_master_key_base64=MASTER_KEY).trigger(channel, "e", {"n": 1})
    subscriber = facade.subscriber(channel)
    subscriber.wait(lambda: subscriber.data("e"))
    assert opened(facade, channel, subscriber.data("e")[0]) == {"n": 1}


def test_the_library_signs_for_private_and_presence_channels(facade):
    subscriber = facade.subscriber()
    subscriber.wait(lambda: subscriber.client.connection.socket_id)
    socket_id = subscriber.client.connection.socket_id
    private = facade.http().authenticate("private-a", socket_id)
    subscriber.subscribe("private-a", private["auth"])
    presence = facade.http().authenticate("presence-a", socket_id, {"user_id": 10, "user_info": {"name": "Ten"}})
    subscriber.client.connection.send_event("pusher:subscribe", {"channel": "presence-a", **presence})
    for _ in range(1000):
        if facade.http().channel_info("presence-a")["occupied"]:
            break
    assert facade.http().users_info("presence-a") == {"users": [{"id": "10"}]}


def test_a_batch_that_is_encoded_already(facade):
    subscriber = facade.subscriber("a")
    batch = [{"channel": "a", "name": "e", "data": '{"n":1}'}]
    assert facade.http().trigger_batch(batch, already_encoded=True) == {}
    subscriber.wait(lambda: subscriber.data("e") == ['{"n":1}'])


def test_the_library_is_made_from_a_url(facade, monkeypatch):
    subscriber = facade.subscriber("a")
    url = f"http://{facade.key}:{facade.secret}@127.0.0.1/apps/{facade.app_id}"
    pusher.Pusher.from_url(url, port=facade.port).trigger("a", "e", "1")
    monkeypatch.setenv("PUSHER_URL", url)
    pusher.Pusher.from_env(port=facade.port).trigger("a", "e", "2")
    subscriber.wait(lambda: subscriber.data("e") == ["1", "2"])


def test_the_library_publishes_asynchronously(facade):
    subscriber = facade.subscriber("a")

    async def publish():
        return await facade.http(backend=pusher.aiohttp.AsyncIOBackend).trigger("a", "e", "1")

    assert asyncio.run(publish()) == {}
    subscriber.wait(lambda: subscriber.data("e") == ["1"])


def test_info_comes_with_a_trigger(facade):
    facade.subscriber("presence-a", "b", user={"user_id": "ann"})
    body = json.dumps({
        "name": "e", "channels": ["presence-a", "b"], "data": "{}", "info": "user_count,subscription_count"}).encode()
    status, text = facade.signed("POST", "/apps/1001/events", body)
    assert (status, json.loads(text)) == (200, {"channels": {
        "presence-a": {"user_count": 1, "subscription_count": 1}, "b": {"subscription_count": 1}}})


def test_the_deprecated_call_and_the_extras(facade):
    subscriber = facade.subscriber("presence-a", user={"user_id": "ann", "user_info": {"name": "Ann"}})
    path = "/apps/1001/channels/presence-a/events"
    assert facade.signed("POST", path, b'{"n":1}', {"name": "e"}) == (202, "{}")
    subscriber.wait(lambda: subscriber.data("e") == ['{"n":1}'])
    assert facade.raw("GET", "/up") == (200, '{"health":"OK"}')
    assert facade.signed("GET", "/apps/1001/connections") == (200, '{"connections":1}')
    status, text = facade.signed("GET", "/apps/1001/channels/presence-a/users", parameters={"with_user_info": "1"})
    assert json.loads(text) == {"users": [{"id": "ann", "user_info": {"name": "Ann"}}]}


# pysher

def test_pysher_unsubscribes(facade):
    subscriber = facade.subscriber("a", "b")
    assert subscriber.client.channel("a") is not None
    subscriber.client.unsubscribe("a")
    assert subscriber.client.channel("a") is None
    while facade.http().channel_info("a")["occupied"]:
        pass
    facade.http().trigger(["a", "b"], "e", "1")
    subscriber.wait(lambda: subscriber.data("e"))
    assert [name for name, _, _ in subscriber.events] == ["b"]


def test_pysher_has_an_endpoint_sign(facade):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            form = dict(
                pair.split("=") for pair in self.rfile.read(int(self.headers["Content-Length"])).decode().split("&"))
            body = json.dumps(facade.http().authenticate(form["channel_name"], form["socket_id"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        subscriber = facade.subscriber()
        subscriber.wait(lambda: subscriber.client.connection.socket_id)
        subscriber.client.secret = ""
        subscriber.client.auth_endpoint = f"http://127.0.0.1:{server.server_address[1]}/pusher/auth"
        subscriber.subscribe("private-a")
    finally:
        server.shutdown()
        server.server_close()


def test_pysher_resubscribes_by_itself(serve):
    facade = serve(rehearsal={"token": "t"})
    confirmed = threading.Semaphore(0)
    client = pysher.Pusher(
        facade.key, secure=False, custom_host="127.0.0.1", port=facade.port, auto_sub=True, reconnect_interval=1)

    def subscribe_once(_):
        if not client.channels:
            client.subscribe("a").bind("pusher_internal:subscription_succeeded", lambda _: confirmed.release())

    client.connection.bind("pusher:connection_established", subscribe_once)
    client.connect()
    try:
        assert confirmed.acquire(timeout=30)
        # It reconnects from its own thread only: from another's it waits for a silence of 100 s first.
        body = json.dumps({"close_sockets": 4200}).encode()
        assert facade.raw("POST", "/ferry/rehearsal", body, {"Authorization": "Bearer t"})[0] == 200
        assert confirmed.acquire(timeout=30)
    finally:
        client.disconnect(timeout=0.2)


@pytest.mark.parametrize("code", [4100, 4200])
def test_pysher_comes_back_when_the_code_says_so(serve, code):
    facade = serve(rehearsal={"token": "t"})
    subscriber = facade.subscriber("a")
    subscriber.confirmed.clear()
    body = json.dumps({"close_sockets": code}).encode()
    assert facade.raw("POST", "/ferry/rehearsal", body, {"Authorization": "Bearer t"})[0] == 200
    subscriber.wait(lambda: subscriber.confirmed)
    assert [error["code"] for error in subscriber.errors] == [code]
    facade.http().trigger("a", "e", "1")
    subscriber.wait(lambda: subscriber.data("e") == ["1"])


# asyncpusher

def test_asyncpusher_joins_leaves_and_comes_back(facade):
    events, members = [], []

    async def authenticate(request):
        data = {"user_id": "ann", "user_info": {"name": "Ann"}} if "presence" in request["channel_name"] else None
        return facade.http().authenticate(request["channel_name"], request["socket_id"], data)

    async def on_event(data):
        events.append(data)

    async def on_member(data):
        members.append(data)

    async def talk():
        client = asyncpusher.Pusher(
            facade.key, secure=False, custom_host="127.0.0.1", custom_port=facade.port, auto_sub=True,
            channel_authenticator=authenticate)
        await client.connect()
        assert client.connection.is_connected()
        public, presence = await client.subscribe("a"), await client.subscribe("presence-a")
        assert public.is_private() is False and presence.is_presence()
        public.bind("e", on_event)
        presence.bind("pusher_internal:member_added", on_member)
        await until(lambda: public.state == public.State.SUBSCRIBED and presence.state == presence.State.SUBSCRIBED)
        other = await asyncio.to_thread(facade.subscriber, "presence-a", user={"user_id": "bob"})
        await until(lambda: members)
        assert members[0]["user_id"] == "bob"
        await presence.trigger({"event": "client-typing", "data": {"typing": True}})
        await until(lambda: other.data("client-typing"))

        facade.http().trigger("a", "e", {"n": 1})
        await until(lambda: events)
        public.unbind("e", on_event)
        await client.unsubscribe("a")
        await until(lambda: not facade.http().channel_info("a")["occupied"])
        again = await client.subscribe("a")
        again.bind("e", on_event)
        await until(lambda: again.state == again.State.SUBSCRIBED)

        # The server dies and comes back: so does the client, with its channels.
        socket_id = client.connection.socket_id
        await asyncio.to_thread(facade.kill)
        await asyncio.to_thread(facade.start)
        await until(lambda: client.connection.socket_id != socket_id)
        await until(lambda: facade.http().channel_info("a")["occupied"])
        facade.http().trigger("a", "e", {"n": 2})
        await until(lambda: len(events) == 2)
        await client.disconnect()

    asyncio.run(talk())
    assert events == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("code", [4100, 4200])
def test_asyncpusher_comes_back_when_the_code_says_so(serve, code):
    facade = serve(rehearsal={"token": "t"})

    async def talk():
        client = asyncpusher.Pusher(
            facade.key, secure=False, custom_host="127.0.0.1", custom_port=facade.port, auto_sub=True)
        await client.connect()
        await client.subscribe("a")
        await until(lambda: facade.http().channel_info("a")["occupied"])
        socket_id = client.connection.socket_id
        status, _ = await asyncio.to_thread(
            facade.raw, "POST", "/ferry/rehearsal", json.dumps({"close_sockets": code}).encode(),
            {"Authorization": "Bearer t"})
        assert status == 200
        await until(lambda: client.connection.socket_id != socket_id)
        await until(lambda: facade.http().channel_info("a")["occupied"])
        await client.disconnect()

    asyncio.run(talk())
