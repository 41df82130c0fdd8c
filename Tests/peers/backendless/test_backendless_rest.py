"""The REST API as the official JavaScript library asks for it, in its order."""
import base64
import time

import requests

from conftest import APP_ID, KEY, PATIENCE

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10


def test_what_the_official_library_asks_for_in_order(facade):
    info = facade.call("GET", "/info")
    assert info["rtURL"] == facade.url and isinstance(info["loggers"], list)
    assert facade.call("GET", "/rt/lookup") == facade.url
    facade.call("POST", "/users/register", {"email": "ann@example.com", "password": "pw"})
    user = facade.call("POST", "/users/login", {"login": "ann@example.com", "password": "pw"})
    token = user["user-token"]
    assert user["objectId"] and user["___class"] == "Users" and "password" not in user

    row = facade.call("PUT", "/data/ChatMessage", {"userName": "ann", "messageText": "hello"}, token)
    assert row["ownerId"] == user["objectId"] and row["created"] % 1000 == 0 and row["updated"] is None
    published = facade.call(
        "POST", "/messaging/realtime_example",
        {"message": row, "publisherId": "ann", "headers": {"room": "a", "n": 20}}, token)
    assert published["status"] == "scheduled" and published["errorMessage"] is None
    assert facade.call("GET", f"/messaging/{published['messageId']}", token=token)["status"] == "published"
    assert facade.call("DELETE", f"/messaging/{published['messageId']}", token=token, status=400)["code"] == 5040
    edited = facade.call("PUT", "/data/ChatMessage", {"objectId": row["objectId"], "messageText": "hello, edited"}, token)
    assert edited["userName"] == "ann" and edited["updated"]

    ids = facade.call("POST", "/data/bulk/ChatMessage", [{"userName": "bob", "messageText": str(n)} for n in range(2)], token)
    assert len(ids) == 2
    found = facade.call(
        "POST", "/data/ChatMessage/find",
        {"pageSize": 50, "offset": 0, "where": "userName = 'bob'", "sortBy": "created desc", "distinct": False}, token)
    assert {item["objectId"] for item in found} == set(ids)
    assert facade.call("POST", "/data/ChatMessage/count", {"where": "userName = 'bob'"}, token) == 2
    assert facade.call("GET", f"/data/ChatMessage/{ids[1]}", token=token)["messageText"] == "1"
    own = facade.call("PUT", "/data/ChatMessage/upsert", {"objectId": "own-id", "messageText": "mine"}, token)
    assert own["objectId"] == "own-id"
    assert isinstance(facade.call("DELETE", "/data/ChatMessage/own-id", token=token)["deletionTime"], int)
    assert facade.call("POST", "/data/bulk/ChatMessage/delete", {"where": "userName = 'bob'"}, token) == 2

    url = facade.call(
        "PUT", "/files/binary/tmpChatFiles/a%20b.png?overwrite=true", token=token, data=base64.b64encode(PNG),
        headers={"Content-Type": "text/plain"})
    assert url == f"{facade.url}/{APP_ID}/{KEY}/files/tmpChatFiles/a%20b.png"
    assert requests.get(url, timeout=PATIENCE).content == PNG
    uploaded = facade.call(
        "POST", "/files/tmpChatFiles/pic.png?overwrite=true", token=token, files={"file": ("pic.png", PNG, "image/png")})
    answer = requests.get(uploaded["fileURL"], headers={"user-token": token}, timeout=PATIENCE)
    assert answer.content == PNG and answer.headers["Content-Type"] == "image/png"
    listed = facade.call("GET", "/files/tmpChatFiles?pattern=*.png&sub=false&pagesize=100&offset=0", token=token)
    assert [(item["name"], item["url"], item["size"]) for item in listed] == [
        ("a b.png", "tmpChatFiles/a b.png", len(PNG)), ("pic.png", "tmpChatFiles/pic.png", len(PNG))]
    assert facade.call("GET", "/files/tmpChatFiles/a%20b.png?action=exists", token=token) is True
    # The library deletes under the address it was given.
    assert requests.delete(url, headers={"user-token": token}, timeout=PATIENCE).json() == 1
    assert facade.call("GET", "/files/tmpChatFiles/a%20b.png?action=exists", token=token) is False

    assert facade.call("GET", "/users/logout", token=token) == ""
    assert facade.call("GET", "/info", token=token, status=401)["code"] == 3064


def test_everything_outlives_a_kill(facade):
    user = facade.user("ann@example.com")
    token = user["user-token"]
    row = facade.call("PUT", "/data/ChatMessage", {"messageText": "hello", "channel": "room"}, token)
    facade.publish(row)
    facade.call("POST", "/files/a/b.png", files={"file": ("b.png", PNG, "image/png")})
    later = facade.publish("later", publishAt=int(time.time() * 1000) + 3_600_000)["messageId"]
    facade.kill()
    facade.start()
    assert facade.call("GET", f"/data/ChatMessage/{row['objectId']}", token=token) == row
    assert requests.get(f"{facade.url}/{APP_ID}/{KEY}/files/a/b.png", timeout=PATIENCE).content == PNG
    assert facade.call("GET", f"/messaging/{later}")["status"] == "scheduled"
    assert facade.call("DELETE", f"/messaging/{later}")["status"] == "cancelled"


def test_a_large_file_passes_in_bounded_memory(facade):
    size = 48 << 20

    def resident():
        with open(f"/proc/{facade.process.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))

    before = resident()
    data = bytes(range(256)) * (size // 256)
    url = facade.call("POST", "/files/big.bin", files={"file": ("big.bin", data, "application/octet-stream")})["fileURL"]
    assert requests.get(url, timeout=PATIENCE).content == data
    facade.call(
        "PUT", "/files/binary/big2.bin", data=base64.b64encode(data), headers={"Content-Type": "text/plain"})
    assert requests.get(f"{facade.url}/{APP_ID}/{KEY}/files/big2.bin", timeout=PATIENCE).content == data
    assert resident() - before < 24 << 10, f"{resident() - before} KiB more for {size >> 20} MiB"
