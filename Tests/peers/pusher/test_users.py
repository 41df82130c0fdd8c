"""Users: signing in, being sent to, being watched, being let go."""
import json

import pytest

ANN = {"id": "ann", "user_info": {"name": "Ann"}}


def test_the_library_sends_to_a_user_on_every_connection(facade):
    phone, laptop, other = facade.subscriber(), facade.subscriber(), facade.subscriber()
    for subscriber, user in [(phone, ANN), (laptop, ANN), (other, {"id": "bob"})]:
        subscriber.sign_in(facade, user)
        subscriber.subscribe("#server-to-user-" + user["id"])
    assert facade.http().send_to_user("ann", "e", {"text": "only you"}) == {}
    assert facade.http().send_to_user("bob", "e", {"text": "and you"}) == {}
    for subscriber in [phone, laptop]:
        subscriber.wait(lambda: subscriber.data("e"))
        assert [json.loads(data) for data in subscriber.data("e")] == [{"text": "only you"}]
    other.wait(lambda: other.data("e"))
    assert [json.loads(data) for data in other.data("e")] == [{"text": "and you"}]


def test_the_confirmation_of_a_sign_in_carries_the_signed_text(facade):
    subscriber = facade.subscriber()
    subscriber.sign_in(facade, ANN)
    assert subscriber.data("pusher:signin_success") == [{"user_data": json.dumps(ANN)}]


def test_another_users_channel_is_refused(facade):
    subscriber = facade.subscriber()
    subscriber.sign_in(facade, {"id": "bob"})
    subscriber.open("#server-to-user-ann")
    subscriber.wait(lambda: subscriber.data("pusher:subscription_error"))
    error = json.loads(subscriber.data("pusher:subscription_error")[0])
    assert error["type"] == "AuthError" and error["status"] == 401
    facade.http().send_to_user("ann", "e", "1")
    facade.http().trigger("a", "e", "2")
    subscriber.subscribe("a")
    facade.http().trigger("a", "e", "3")
    subscriber.wait(lambda: subscriber.data("e") == ["3"])


@pytest.mark.parametrize("path", ["/users/ann/terminate_connections", "/apps/1001/users/ann/terminate_connections"])
def test_connections_are_terminated(facade, path):
    phone, other = facade.subscriber(), facade.subscriber()
    phone.sign_in(facade, ANN)
    other.sign_in(facade, {"id": "bob"})
    if path.startswith("/users"):
        assert facade.http().terminate_user_connections("ann") == {}
    else:
        assert facade.signed("POST", path, b"{}") == (200, "{}")
    phone.wait(lambda: phone.errors)
    assert phone.errors[0]["code"] == 4009
    # The library stops at that error, so it is not back.
    phone.client.connection.join(10)
    assert not phone.client.connection.is_alive()
    other.subscribe("a")
    assert not other.errors


def test_a_bad_sign_in_ends_the_connection(facade):
    subscriber = facade.subscriber("a")
    data = facade.http(secret="wrong").authenticate_user(subscriber.client.connection.socket_id, ANN)
    subscriber.client.connection.send_event("pusher:signin", data)
    subscriber.wait(lambda: subscriber.errors)
    assert subscriber.errors[0]["code"] == 4009
    assert subscriber.errors[0]["message"].startswith("Invalid signature")


def test_who_has_signed_in_needs_no_channel_data(facade):
    subscriber = facade.subscriber()
    subscriber.sign_in(facade, ANN)
    auth = facade.http().authenticate("presence-lobby", subscriber.client.connection.socket_id)["auth"]
    subscriber.subscribe("presence-lobby", auth)
    presence = json.loads(subscriber.confirmed["presence-lobby"])["presence"]
    assert presence == {"ids": ["ann"], "hash": {"ann": {"name": "Ann"}}, "count": 1}
    assert facade.http().users_info("presence-lobby") == {"users": [{"id": "ann"}]}


def test_people_are_watched(serve):
    facade = serve(watchlist=True)
    ann, bob = facade.subscriber(), facade.subscriber()
    ann.sign_in(facade, {"id": "ann", "watchlist": ["bob", "cy"]})
    bob.sign_in(facade, {"id": "bob"})
    ann.wait(lambda: len(ann.data("pusher_internal:watchlist_events")) == 2)
    bob.close()
    ann.wait(lambda: len(ann.data("pusher_internal:watchlist_events")) == 3)
    assert [json.loads(data)["events"] for data in ann.data("pusher_internal:watchlist_events")] == [
        [{"name": "offline", "user_ids": ["bob", "cy"]}],
        [{"name": "online", "user_ids": ["bob"]}],
        [{"name": "offline", "user_ids": ["bob"]}]]


def test_subscribers_are_counted(serve):
    facade = serve(subscription_count=True)
    one = facade.subscriber("a")
    two = facade.subscriber("a")
    one.wait(lambda: len(one.data("pusher_internal:subscription_count")) == 2)
    two.client.unsubscribe("a")
    one.wait(lambda: len(one.data("pusher_internal:subscription_count")) == 3)
    counts = [json.loads(data)["subscription_count"] for data in one.data("pusher_internal:subscription_count")]
    assert counts == [1, 2, 1]


def test_one_connection_too_many_is_refused(serve):
    facade = serve(connections=1)
    first = facade.subscriber("a")
    second = facade.subscriber()
    second.wait(lambda: second.errors)
    assert second.errors[0]["code"] == 4004
    assert not first.errors


def test_the_tutorials_numbers_survive_a_kill(serve):
    facade = serve(tutorial="anonymous_chat")
    subscriber = facade.subscriber("chatroom")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    status, text = facade.raw("POST", "/messages", b"sender=anon&text=h%C3%A9llo", form)
    assert status == 200
    assert json.loads(text) == {"text": "h\u00e9llo", "sender": "anon", "ID": 1, "success": 200}
    as_json = {"Content-Type": "application/json"}
    status, text = facade.raw("POST", "/typing", b'{"sender":"anon"}', as_json)
    assert (status, json.loads(text)) == (200, {"success": 200})
    status, text = facade.raw("POST", "/delivered", b'{"ID":1}', as_json)
    assert (status, json.loads(text)) == (200, {"success": 200})
    subscriber.wait(lambda: len(subscriber.events) == 3)
    assert [(event, json.loads(data)) for _, event, data in subscriber.events] == [
        ("new_message", {"text": "h\u00e9llo", "sender": "anon", "ID": 1}),
        ("user_typing", {"sender": "anon", "text": "anon is typing..."}),
        ("message_delivered", {"ID": "1"})]
    facade.kill()
    facade.start()
    assert json.loads(facade.raw("POST", "/messages", b"sender=anon&text=2", form)[1])["ID"] == 2
