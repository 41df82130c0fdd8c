"""The socket as the Python clients use it."""
import asyncio
import json

import asyncpusher
import pytest
from conftest import until


@pytest.mark.parametrize("protocol", [5, 6, 7])
def test_pysher_subscribes_with_every_protocol_in_use(facade, protocol):
    subscriber = facade.subscriber("chatroom", "private-a", protocol=protocol)
    assert subscriber.confirmed == {"chatroom": "{}", "private-a": "{}"}
    facade.http().trigger(["chatroom", "private-a"], "new_message", {"text": "hi"})
    subscriber.wait(lambda: len(subscriber.events) == 2)


def test_members_are_people_not_connections(facade):
    ann = {"user_id": "ann", "user_info": {"name": "Ann"}}
    watcher = facade.subscriber("presence-lobby", user={"user_id": "w", "user_info": {"name": "Watcher"}})
    phone = facade.subscriber("presence-lobby", user=ann)
    laptop = facade.subscriber("presence-lobby", user=ann)
    presence = json.loads(laptop.confirmed["presence-lobby"])["presence"]
    assert presence == {
        "ids": ["w", "ann"], "hash": {"w": {"name": "Watcher"}, "ann": {"name": "Ann"}}, "count": 2}
    phone.close()
    laptop.close()
    watcher.wait(lambda: len(watcher.events) == 2)
    assert [(event, json.loads(data)) for _, event, data in watcher.events] == [
        ("pusher_internal:member_added", ann), ("pusher_internal:member_removed", {"user_id": "ann"})]


def test_client_events_reach_the_others(facade):
    one = facade.subscriber("presence-a", user={"user_id": "ann"})
    two = facade.subscriber("presence-a", user={"user_id": "bob"})
    one.channels["presence-a"].trigger("client-typing", {"typing": True})
    two.wait(lambda: two.data("client-typing"))
    assert [json.loads(data) for data in two.data("client-typing")] == [{"typing": True}]
    assert not one.data("client-typing")


def test_a_wrong_secret_gets_the_documented_error_and_the_connection_stays(facade):
    subscriber = facade.subscriber("chatroom")
    subscriber.client.secret = "wrong"
    subscriber.client.subscribe("private-a")
    subscriber.wait(lambda: subscriber.errors)
    error = subscriber.errors[0]
    message = (json.loads(error) if isinstance(error, str) else error)["message"]
    assert message.startswith("Invalid signature: Expected HMAC SHA256 hex digest of ")
    facade.http().trigger("chatroom", "e", "1")
    subscriber.wait(lambda: subscriber.data("e") == ["1"])


def test_pysher_comes_back_after_a_restart(facade):
    subscriber = facade.subscriber("chatroom")
    facade.kill()
    subscriber.confirmed.clear()
    facade.start()
    subscriber.wait(lambda: subscriber.confirmed)
    facade.http().trigger("chatroom", "e", "1")
    subscriber.wait(lambda: subscriber.data("e") == ["1"])


def test_asyncpusher_listens_and_sends_client_events(facade):
    secret_events, events = [], []

    async def authenticate(request):
        return facade.http().authenticate(channel=request["channel_name"], socket_id=request["socket_id"])

    async def talk():
        client = asyncpusher.Pusher(
            facade.key, secure=False, custom_host="127.0.0.1", custom_port=facade.port, auto_sub=True,
            channel_authenticator=authenticate)
        await client.connect()
        public = await client.subscribe("chatroom")
        private = await client.subscribe("private-a")

        async def on_public(data):
            events.append(data)

        async def on_private(data):
            secret_events.append(data)

        public.bind("new_message", on_public)
        private.bind("new_message", on_private)
        listener = await asyncio.to_thread(facade.subscriber, "private-a")
        await until(lambda: facade.http().channel_info("chatroom")["occupied"])
        await until(lambda: facade.http().channel_info("private-a", ["subscription_count"])["subscription_count"] == 2)
        await asyncio.to_thread(facade.http().trigger, ["chatroom", "private-a"], "new_message", {"text": "hi"})
        await until(lambda: events and secret_events)
        await private.trigger({"event": "client-typing", "data": {"typing": True}})
        await until(lambda: listener.data("client-typing"))
        await client.disconnect()

    asyncio.run(talk())
    assert events == [{"text": "hi"}] and secret_events == [{"text": "hi"}]


def test_asyncpusher_stops_at_an_unknown_key(facade):
    async def talk():
        client = asyncpusher.Pusher("no-such-key", secure=False, custom_host="127.0.0.1", custom_port=facade.port)
        connecting = asyncio.ensure_future(client.connect())
        await until(lambda: "closed" in str(client.connection.state).lower())
        connecting.cancel()

    asyncio.run(talk())
