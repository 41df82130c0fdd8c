"""Webhooks, each checked by the official library."""
import json
import time

import pusher

USER = {"user_id": "ann", "user_info": {"name": "Ann"}}


def test_what_happens_on_a_channel_is_told_in_order(serve, hooks):
    facade = serve(webhooks=[{"url": hooks.url}])
    subscriber = facade.subscriber("presence-a", user=USER)
    subscriber.channels["presence-a"].trigger("client-typing", {"typing": True})
    socket_id = subscriber.client.connection.socket_id
    events = hooks.events(3)
    assert json.loads(events[2].pop("data")) == {"typing": True}
    assert events == [
        {"name": "channel_occupied", "channel": "presence-a"},
        {"name": "member_added", "channel": "presence-a", "user_id": "ann"},
        {"name": "client_event", "channel": "presence-a", "event": "client-typing", "socket_id": socket_id,
         "user_id": "ann"}]
    left = time.monotonic()
    subscriber.client.unsubscribe("presence-a")
    assert hooks.events(5)[3:] == [
        {"name": "member_removed", "channel": "presence-a", "user_id": "ann"},
        {"name": "channel_vacated", "channel": "presence-a"}]
    assert time.monotonic() - left >= 2.9


def test_empty_caches_and_counts_are_told(serve, hooks):
    facade = serve(
        subscription_count=True, webhooks=[{"url": hooks.url, "events": ["cache_miss", "subscription_count"]}])
    facade.subscriber("cache-a")
    assert hooks.events(2) == [
        {"name": "cache_miss", "channel": "cache-a"},
        {"name": "subscription_count", "channel": "cache-a", "subscription_count": 1}]


def test_a_receiver_that_was_away_is_told_later_and_in_order(serve, hooks):
    facade = serve(webhooks=[{"url": hooks.url, "events": ["channel_occupied"]}])
    hooks.statuses = [500]
    subscriber = facade.subscriber("a")
    first = hooks.wait(1)
    hooks.stop()
    subscriber.subscribe("b")
    subscriber.subscribe("c")
    hooks.start()
    later = hooks.wait(4)
    assert later[1] == first[0]
    assert [hook["events"][0]["channel"] for hook in later] == ["a", "a", "b", "c"]


def test_hooks_are_batched_when_asked_for(serve, hooks):
    facade = serve(webhooks=[{"url": hooks.url, "events": ["channel_occupied"], "batch": True}])
    hooks.statuses = [503]
    subscriber = facade.subscriber("a")
    hooks.wait(1)
    for name in "bcdef":
        subscriber.subscribe(name)
    assert [event["channel"] for event in hooks.events(7)] == ["a", "a", "b", "c", "d", "e", "f"]


def test_another_apps_hooks_are_not_taken_for_ours(serve, hooks):
    facade = serve(webhooks=[{"url": hooks.url, "events": ["channel_occupied"]}])
    facade.subscriber("a")
    hooks.wait(1)
    key, signature, body = hooks.requests[0]
    assert pusher.Pusher("1001", "demo-key", "other").validate_webhook(key, signature, body) is None
    assert pusher.Pusher("1001", "other", "demo-secret").validate_webhook(key, signature, body) is None
    assert pusher.Pusher("1001", "demo-key", "demo-secret").validate_webhook(key, signature, body + " ") is None
