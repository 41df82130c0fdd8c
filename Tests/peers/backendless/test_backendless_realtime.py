"""Both generations of Socket.IO clients, over polling alone, a WebSocket alone, and from the one to the other."""
import re

import pytest
import requests

from conftest import APP_ID, PATIENCE

WAYS = [(3, "polling"), (3, "websocket"), (3, "polling,websocket"), (4, "polling"), (4, "websocket"), (4, "polling,websocket")]


@pytest.fixture(params=WAYS, ids=lambda way: f"eio{way[0]}-{way[1]}")
def way(request):
    return request.param


MEMBERS = {
    "messageId", "message", "publisherId", "subtopic", "headers", "timestamp", "pushSinglecast", "pushBroadcast",
    "publishPolicy", "query", "templateValues", "publishAt", "repeatEvery", "repeatExpiresAt"}


def test_messages(facade, way):
    peer = facade.peer(*way)
    peer.join()
    peer.listen("PUB_SUB_MESSAGES", "all", channel="room")
    peer.listen("PUB_SUB_MESSAGES", "some", channel="room", selector="room = 'a' AND n > 10")
    for message in ["hello", "комната 😀 emoji 👩‍👩‍👧", {"___class": "X", "a": [1, None, 2.5]}, 42, [True], "x" * 50_000]:
        answer = facade.publish(message, headers={"room": "a", "n": 5})
        assert answer["status"] == "scheduled" and re.fullmatch("message:[0-9A-F-]{36}", answer["messageId"])
        data = peer.result("all")
        assert data["message"] == message and set(data) == MEMBERS
        assert data["headers"] == {"room": "a", "n": "5"} and data["messageId"] == answer["messageId"]
    facade.publish("selected", headers={"room": "a", "n": 20})
    answers = [peer.expect("SUB_RES") for _ in range(2)]
    assert {answer["id"] for answer in answers} == {"all", "some"}
    assert all(answer["data"]["message"] == "selected" for answer in answers)


def test_many_messages_arrive_in_order(facade, way):
    peer = facade.peer(*way)
    peer.join()
    peer.listen("PUB_SUB_MESSAGES", "m", channel="room")
    for number in range(200):
        facade.publish(number)
    assert [peer.result("m")["message"] for _ in range(200)] == list(range(200))


def test_commands_and_users(facade, way):
    ann = facade.user("ann@example.com")
    watcher = facade.peer(4, "websocket")
    watcher.join()
    watcher.listen("PUB_SUB_COMMANDS", "k", channel="room")
    watcher.listen("PUB_SUB_USERS", "u", channel="room")
    listing = watcher.result("u")
    assert listing["status"] == "LISTING" and [member["userId"] for member in listing["data"]] == [None]

    peer = facade.peer(*way, token=ann["user-token"])
    peer.join()
    connected = watcher.result("u")
    assert connected["status"] == "CONNECTED"
    assert connected["data"][0]["userId"] == ann["objectId"] and connected["data"][0]["connectionId"]
    peer.listen("PUB_SUB_COMMANDS", "k", channel="room")
    assert peer.call("PUB_SUB_COMMAND", "x", channel="room", type="T", data={"on": True}) == {"id": "x", "result": None}
    command = peer.result("k")
    assert command == {
        "type": "T", "data": {"on": True}, "connectionId": connected["data"][0]["connectionId"],
        "userId": ann["objectId"]}
    assert watcher.result("k") == command
    assert peer.call("SET_USER_TOKEN", "t", userToken=None) == {"id": "t", "result": None}
    assert watcher.result("u")["status"] == "USERUPDATE"
    peer.emit("disconnect", None)
    assert watcher.result("u")["status"] == "DISCONNECTED"


def test_errors(facade, way):
    peer = facade.peer(*way)
    peer.subscribe("PUB_SUB_MESSAGES", "bad", channel="room", selector="n >")
    answer = peer.expect("SUB_RES")
    assert "data" not in answer and isinstance(answer["error"]["code"], int) and answer["error"]["message"]
    answer = peer.call("NO_SUCH_METHOD", "x")
    assert "result" not in answer and isinstance(answer["error"]["code"], str)
    # It goes on.
    peer.join()


def test_a_wrong_key_is_refused(facade, way):
    peer = facade.peer(*way, key="WRONG", joins=False)
    # Each generation in its own shape, and "connect" comes before neither.
    reason = "Invalid api key"
    assert peer.expect("connect_error") == (reason if way[0] == 3 else {"message": reason})


def test_leaving_ends_what_is_told(facade, way):
    peer = facade.peer(*way)
    peer.join()
    peer.listen("PUB_SUB_MESSAGES", "m", channel="room")
    peer.emit("SUB_OFF", {"id": "c"})
    assert peer.call("NO_SUCH_METHOD", "x")["error"]
    facade.publish("unheard")
    peer.join()
    facade.publish("heard")
    assert peer.result("m")["message"] == "heard"


def test_after_an_outage_the_same_ids_go_on(facade, way):
    peer = facade.peer(*way, options=["reconnect"])
    peer.join()
    peer.listen("PUB_SUB_MESSAGES", "m", channel="room")
    facade.publish("before")
    assert peer.result("m")["message"] == "before"
    facade.kill()
    peer.expect("disconnect")
    facade.start()
    peer.expect("connect", past=("transport", "connect_error"))
    assert peer.result("c") == "connected"
    assert peer.expect("SUB_READY") == {"id": "m"}
    facade.publish("after")
    assert peer.result("m")["message"] == "after"


def test_a_rehearsed_outage_ends_connections(facade, way):
    peer = facade.peer(*way)
    answer = requests.post(
        f"{facade.url}/ferry/rehearsal", json={"close_sockets": 4000}, headers={"Authorization": "Bearer rehearse"},
        timeout=PATIENCE)
    assert answer.status_code == 200
    peer.expect("disconnect")
    facade.peer(*way).join()


def test_changes_of_tables(facade, way):
    peer = facade.peer(*way)
    for event in ("created", "updated", "deleted", "bulk-created"):
        peer.listen("OBJECTS_CHANGES", event, event=event, tableName="ChatMessage", whereClause="channel = 'x'")
    facade.call("PUT", "/data/ChatMessage", {"messageText": "elsewhere", "channel": "y"})
    row = facade.call("PUT", "/data/ChatMessage", {"messageText": "a", "channel": "x"})
    assert peer.result("created") == row
    row = facade.call("PUT", "/data/ChatMessage", {"objectId": row["objectId"], "messageText": "b"})
    assert peer.result("updated") == row and row["updated"]
    facade.call("DELETE", f"/data/ChatMessage/{row['objectId']}")
    assert peer.result("deleted")["objectId"] == row["objectId"]
    ids = facade.call("POST", "/data/bulk/ChatMessage", [{"channel": "x"}, {"channel": "x"}])
    assert peer.result("bulk-created") == ids


def test_browsers_may_poll_from_other_pages(facade):
    answer = requests.get(
        f"{facade.url}/{APP_ID}/?EIO=4&transport=polling", headers={"Origin": "http://page.example"}, timeout=PATIENCE)
    assert answer.headers["Access-Control-Allow-Origin"] == "http://page.example"
    assert answer.headers["Content-Type"] == "text/plain; charset=UTF-8" and answer.text.startswith("0{")
