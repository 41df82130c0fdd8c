"""The tutorials' apps, call for call, with clients of both generations at the far end."""
import uuid

import pytest
import requests

from conftest import PATIENCE
from test_backendless_realtime import WAYS

CHANNEL = "realtime_example"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200


@pytest.fixture(params=WAYS, ids=lambda way: f"eio{way[0]}-{way[1]}")
def way(request):
    return request.param


def enter(facade, way, user):
    """As the app does when somebody has logged in: listeners first, then the notice."""
    peer = facade.peer(*way, token=user["user-token"])
    peer.join(CHANNEL)
    # The Swift library names the event twice.
    peer.listen("PUB_SUB_MESSAGES", "m", channel=CHANNEL, event="PUB_SUB_MESSAGES")
    for event in ("updated", "deleted"):
        peer.listen("OBJECTS_CHANGES", event, event=event, tableName="ChatMessage")
    return peer


def publish(facade, user, message, **options):
    facade.call("POST", f"/messaging/{CHANNEL}", {"message": message, **options}, token=user["user-token"])


def save(facade, user, **columns):
    return facade.call("PUT", "/data/ChatMessage", columns, token=user["user-token"])


def test_the_picture_chat(facade, way):
    ann, bob = facade.user("ann@example.com"), facade.user("bob@example.com")
    listener = enter(facade, way, bob)

    notice = {"userName": "ann", "messageText": "joined", "___class": "ChatMessage"}
    # What the Swift library adds of itself.
    publish(facade, ann, notice, publishPolicy="PUBSUB", headers={"ios-content-available": "1"})
    assert listener.result("m")["message"] == notice

    text = save(facade, ann, userName="ann", messageText="hello 👩‍👩‍👧")
    assert text["ownerId"] == ann["objectId"] and text["___class"] == "ChatMessage"
    publish(facade, ann, text)
    assert listener.result("m")["message"] == text

    name = f"{str(uuid.uuid4()).upper()}.png"
    url = facade.call(
        "POST", f"/files/tmpChatFiles/{name}?overwrite=true", token=ann["user-token"],
        files={"file": (name, PICTURE, "image/png")})["fileURL"]
    assert url.endswith(f"/files/tmpChatFiles/{name}")
    picture = save(facade, ann, userName="ann", pictureUrl=url)
    publish(facade, ann, picture)
    shown = listener.result("m")["message"]
    # Receivers decide by the fields: no text, then a picture.
    assert shown.get("messageText") is None and shown["pictureUrl"] == url
    answer = requests.get(shown["pictureUrl"], timeout=PATIENCE)
    assert answer.content == PICTURE and answer.headers["Content-Type"] == "image/png"

    # Others learn of an edit and of a deletion from the table, not from the channel.
    facade.call("PUT", "/data/ChatMessage", {"objectId": text["objectId"], "messageText": "edited"}, token=ann["user-token"])
    changed = listener.result("updated")
    assert (changed["objectId"], changed["messageText"], changed["userName"]) == (text["objectId"], "edited", "ann")
    facade.call("DELETE", f"/data/ChatMessage/{picture['objectId']}", token=ann["user-token"])
    assert listener.result("deleted") == {"objectId": picture["objectId"]}
    # Deleting the message leaves the file.
    assert requests.get(url, timeout=PATIENCE).content == PICTURE
    rows = facade.call("POST", "/data/ChatMessage/find", {"pageSize": 50, "offset": 0, "sortBy": "created desc"})
    assert [row["messageText"] for row in rows] == ["edited"]


def test_typing_by_commands(facade, way):
    ann, bob = facade.user("ann@example.com"), facade.user("bob@example.com")
    chat = facade.call("PUT", "/data/Chat", {"name": "about cats"})["objectId"]
    listener = facade.peer(*way, token=bob["user-token"])
    listener.join(chat)
    listener.listen("PUB_SUB_COMMANDS", "k", channel=chat)
    listener.listen("PUB_SUB_MESSAGES", "m", channel=chat)
    typist = facade.peer(*way, token=ann["user-token"])
    typist.join(chat)
    # On each keystroke, and once it has been quiet, and when the message goes out.
    for number, kind in enumerate(["USER_TYPING", "USER_TYPING", "USER_STOP_TYPING", "USER_TYPING", "USER_STOP_TYPING"]):
        assert typist.call("PUB_SUB_COMMAND", f"x{number}", channel=chat, type=kind) == {"id": f"x{number}", "result": None}
        command = listener.result("k")
        assert (command["type"], command["userId"]) == (kind, ann["objectId"]) and not command.get("data")
    # Who it is takes a look at the users.
    assert facade.call("GET", f"/data/Users/{command['userId']}")["email"] == "ann@example.com"
    facade.publish({"text": "hello", "userEmail": "ann@example.com"}, channel=chat)
    assert listener.result("m")["message"] == {"text": "hello", "userEmail": "ann@example.com"}
