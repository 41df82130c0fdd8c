"""The HTTP API as the official library uses it, and as it must not be used."""
import hashlib
import json
import time

import pusher.errors
import pytest


def test_what_is_triggered_arrives_byte_for_byte(facade):
    subscriber = facade.subscriber("chatroom")
    texts = ["hello", "h\u00e9llo \U0001F469\u200d\U0001F680", 'quote " backslash \\ line\nfeed \u2028 \x00', ""]
    for text in texts:
        assert facade.http().trigger("chatroom", "new_message", {"sender": "ann", "text": text}) == {}
    subscriber.wait(lambda: len(subscriber.events) == len(texts))
    assert [json.loads(data)["text"] for data in subscriber.data()] == texts


def test_a_hundred_channels_at_once_and_no_more(facade):
    subscriber = facade.subscriber("c0", "c99")
    client = facade.http()
    client.trigger([f"c{index}" for index in range(100)], "e", {"n": 1})
    subscriber.wait(lambda: len(subscriber.events) == 2)
    body = json.dumps({"name": "e", "data": "{}", "channels": [f"c{index}" for index in range(101)]}).encode()
    status, text = facade.signed("POST", "/apps/1001/events", body)
    assert status == 400 and "1 to 100" in text


def test_the_publisher_itself_can_be_left_out(facade):
    one, two = facade.subscriber("chatroom"), facade.subscriber("chatroom")
    client = facade.http()
    client.trigger("chatroom", "e", "1", socket_id=one.client.connection.socket_id)
    client.trigger("chatroom", "e", "2")
    one.wait(lambda: len(one.events) == 1)
    two.wait(lambda: len(two.events) == 2)
    assert one.data("e") == ["2"]
    assert two.data("e") == ["1", "2"]


def test_a_batch_arrives_in_order(facade):
    subscriber = facade.subscriber("chatroom")
    batch = [{"channel": "chatroom", "name": "new_message", "data": {"n": index}} for index in range(10)]
    assert facade.http().trigger_batch(batch) == {}
    subscriber.wait(lambda: len(subscriber.events) == 10)
    assert [json.loads(data)["n"] for data in subscriber.data()] == list(range(10))
    body = json.dumps({"batch": [{**item, "data": "{}"} for item in batch + batch[:1]]}).encode()
    assert facade.signed("POST", "/apps/1001/batch_events", body)[0] == 400


def test_channels_and_users_can_be_asked_for(facade):
    ann = facade.subscriber("presence-lobby", "chatroom", user={"user_id": "ann", "user_info": {"name": "Ann"}})
    bob = facade.subscriber("presence-lobby", user={"user_id": 7, "user_info": {"name": "Bob"}})
    client = facade.http()
    assert client.channels_info() == {"channels": {"presence-lobby": {}, "chatroom": {}}}
    assert client.channels_info(prefix_filter="presence-", attributes=["user_count"]) == {
        "channels": {"presence-lobby": {"user_count": 2}}}
    assert client.channel_info("presence-lobby", ["user_count", "subscription_count"]) == {
        "occupied": True, "user_count": 2, "subscription_count": 2}
    assert client.channel_info("nobody") == {"occupied": False}
    assert client.users_info("presence-lobby") == {"users": [{"id": "ann"}, {"id": "7"}]}
    with pytest.raises(pusher.errors.PusherBadRequest):
        client.users_info("chatroom")
    with pytest.raises(pusher.errors.PusherBadRequest):
        client.channel_info("chatroom", ["user_count"])
    assert ann.confirmed and bob.confirmed


def test_the_library_learns_why_its_signature_is_wrong(facade):
    with pytest.raises(pusher.errors.PusherBadAuth) as wrong:
        facade.http(secret="wrong").trigger("chatroom", "e", "1")
    text = str(wrong.value)
    assert text.startswith('Invalid signature: you should have sent HmacSHA256Hex("POST\\n/apps/1001/events\\nauth_key=')
    assert "wrong" not in text and facade.secret not in text
    with pytest.raises(pusher.errors.PusherBadAuth):
        facade.http(key="other").trigger("chatroom", "e", "1")


@pytest.mark.parametrize("skew", [-601, 601])
def test_a_stale_time_is_told_with_the_servers(facade, skew):
    body = b'{"name":"e","channel":"a","data":"1"}'
    status, text = facade.signed("POST", "/apps/1001/events", body, timestamp=int(time.time()) + skew)
    assert status == 401
    assert text.startswith("Timestamp expired: Given timestamp (") and "not within 600s of server time (" in text
    assert facade.signed("POST", "/apps/1001/events", body, timestamp=int(time.time()) + skew * 590 // 601)[0] == 200


def test_the_size_limit_is_counted_in_utf8_bytes(facade):
    with pytest.raises(pusher.errors.PusherBadStatus) as large:
        facade.http().trigger("a", "e", "x" * 10_241)
    assert "413" in str(large.value) and "10240" in str(large.value)
    fits = json.dumps({"name": "e", "channel": "a", "data": "\u00e9" * 5120}).encode()
    assert facade.signed("POST", "/apps/1001/events", fits)[0] == 200
    over = json.dumps({"name": "e", "channel": "a", "data": "\u00e9" * 5121}).encode()
    assert facade.signed("POST", "/apps/1001/events", over)[0] == 413


def test_an_unknown_app_is_not_found(facade):
    with pytest.raises(pusher.errors.PusherBadStatus) as unknown:
        facade.http(app_id="1002").trigger("a", "e", "1")
    assert "404" in str(unknown.value)


@pytest.mark.parametrize("channel", ["a b", "a:b", "\u00e9", "", "#a", "a" * 201, "a/b"])
def test_a_bad_channel_name_is_refused(facade, channel):
    body = json.dumps({"name": "e", "channel": channel, "data": "1"}).encode()
    status, text = facade.signed("POST", "/apps/1001/events", body)
    assert status == 400 and text.startswith("Invalid channel name")


@pytest.mark.parametrize("name", ["pusher:x", "pusher_internal:x", ""])
def test_a_reserved_event_name_is_refused(facade, name):
    body = json.dumps({"name": name, "channel": "a", "data": "1"}).encode()
    assert facade.signed("POST", "/apps/1001/events", body)[0] == 400


def test_another_body_than_the_signed_one_is_refused(facade):
    body = b'{"name":"e","channel":"a","data":"1"}'
    digest = {"body_md5": hashlib.md5(b"other").hexdigest()}
    status, text = facade.signed("POST", "/apps/1001/events", parameters=digest)
    assert status == 401 and "body_md5" in text
    assert facade.raw("POST", "/apps/1001/events", body)[0] == 401


def test_the_last_event_of_a_cache_channel_survives_a_kill(facade):
    client = facade.http()
    client.trigger("cache-a", "e", {"n": 1})
    client.trigger("cache-a", "e", {"n": 2})
    facade.kill()
    facade.start()
    subscriber = facade.subscriber("cache-a", "cache-b")
    subscriber.wait(lambda: len(subscriber.events) == 2)
    assert ("cache-a", "e", '{"n": 2}') in subscriber.events
    assert ("cache-b", "pusher:cache_miss", "{}") in subscriber.events
    status, text = facade.signed("GET", "/apps/1001/channels/cache-a", parameters={"info": "cache"})
    cache = json.loads(text)["cache"]
    assert status == 200 and cache["data"] == '{"n": 2}' and 1700 < cache["ttl"] <= 1800
