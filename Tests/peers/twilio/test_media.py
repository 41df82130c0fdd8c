"""The media service, which the official library does not cover: a plain HTTP client, as its documentation says."""
import hashlib
import json
import os
import re
import urllib.parse

import pytest
from conftest import SERVICE
from twilio.base.exceptions import TwilioRestException
from twilio.jwt.access_token import AccessToken
from twilio.jwt.access_token.grants import ChatGrant

from conftest import ACCOUNT, KEY, SECRET

MEDIA = f"/v1/Services/{SERVICE}/Media"
PNG = b"\x89PNG\r\n\x1a\n" + os.urandom(1 << 20)
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d")


def upload(facade, data=PNG, type="image/png", name="a.png", **options):
    query = f"?Filename={urllib.parse.quote(name)}&Category=media" if name else ""
    headers = {"Content-Type": type} if type else {}
    status, _, body = facade.raw("POST", MEDIA + query, data, headers, **options)
    assert status == 201, body
    return json.loads(body)


def get(facade, path, **options):
    status, headers, body = facade.raw("GET", path, **options)
    return status, headers, body


def test_a_picture_goes_in_and_out(facade, client):
    made = upload(facade, name="\u00e9 car.png")
    assert made["url"] == f"{MEDIA}/{made['sid']}" and made["links"] == {"content": made["url"] + "/Content"}
    assert (made["size"], made["content_type"], made["filename"]) == (len(PNG), "image/png", "\u00e9 car.png")
    assert (made["service_sid"], made["message_sid"], made["category"]) == (SERVICE, None, "media")
    assert all(MOMENT.fullmatch(made[name]) for name in ("date_created", "date_updated", "date_upload_updated"))
    room = client.conversations.v1.conversations("lobby")
    message = room.messages.create(media_sid=made["sid"], author="ada")
    assert message.body is None and message.media == [
        {"sid": made["sid"], "size": len(PNG), "content_type": "image/png", "filename": "\u00e9 car.png"}]
    assert room.messages(message.sid).fetch().media == message.media
    with pytest.raises(TwilioRestException) as error:
        room.messages(message.sid).update(body="caption")
    assert error.value.code == 50509
    assert room.messages(message.sid).update(attributes='{"a":1}').media == message.media
    with pytest.raises(TwilioRestException) as error:
        room.messages.create(media_sid=made["sid"])
    assert error.value.code == 50508

    record = json.loads(get(facade, made["url"])[2])
    assert (record["message_sid"], record["channel_sid"]) == (message.sid, message.conversation_sid)
    link = urllib.parse.urlsplit(record["links"]["content_direct_temporary"])
    assert link.netloc == f"127.0.0.1:{facade.port}"
    # The link needs no credentials.
    status, headers, body = get(facade, f"{link.path}?{link.query}", credentials=None)
    assert (status, body, headers["Content-Type"]) == (200, PNG, "image/png")
    assert get(facade, made["links"]["content"])[2] == PNG
    assert get(facade, made["links"]["content"], credentials=None)[0] == 401
    for query in (link.query.replace("Expires=1", "Expires=2"), link.query[:-1] + "x", "", "Expires=x&Signature=y"):
        assert get(facade, f"{link.path}?{query}", credentials=None)[0] == 403
    room.messages(message.sid).delete()
    status, _, body = get(facade, made["url"])
    assert (status, json.loads(body)["code"]) == (404, 50507)
    assert get(facade, f"{link.path}?{link.query}", credentials=None)[0] == 404


def test_body_and_media_go_together(facade, client):
    room = client.conversations.v1.conversations("lobby")
    message = room.messages.create(body="look", media_sid=upload(facade)["sid"])
    assert message.body == "look" and len(message.media) == 1


def test_types_are_kept_as_they_were_given(facade, client):
    assert upload(facade, b"x", None, None)["content_type"] == "application/octet-stream"
    made = upload(facade, b"not a jpeg", "image/jpeg", None)
    assert (made["content_type"], made["filename"], made["size"]) == ("image/jpeg", None, 10)
    message = client.conversations.v1.conversations("lobby").messages.create(media_sid=made["sid"])
    assert message.media[0]["content_type"] == "image/jpeg" and message.media[0]["filename"] is None


def test_a_form_from_a_browser_is_taken_too(facade):
    data = b"\r\n--bound\r\n--boundar-\r\n" + os.urandom(300_000) + b"\r\n--bou"
    body = (b'--boundary\r\nContent-Disposition: form-data; name="x"\r\n\r\nfield\r\n--boundary\r\n'
            b'Content-Disposition: form-data; name="file"; filename="b.bin"\r\nContent-Type: image/gif\r\n\r\n'
            + data + b"\r\n--boundary--\r\n")
    made = upload(facade, body, "multipart/form-data; boundary=boundary", None)
    assert (made["size"], made["content_type"], made["filename"]) == (len(data), "image/gif", "b.bin")
    assert get(facade, made["links"]["content"])[2] == data
    for broken in (body[:-20], b"", b"--boundary--\r\n", b"--boundary\r\nContent-Disposition: form-data"):
        status, _, _ = facade.raw("POST", MEDIA, broken, {"Content-Type": "multipart/form-data; boundary=boundary"})
        assert status == 400


def test_a_large_file_passes_through_without_filling_the_memory(facade):
    data = os.urandom(1 << 20) * 60
    upload(facade, data[:100])
    before = resident(facade)
    made = upload(facade, data, "video/mp4")
    body = get(facade, made["links"]["content"])[2]
    assert hashlib.sha256(body).digest() == hashlib.sha256(data).digest()
    assert resident(facade) - before < 24 << 20


def resident(facade):
    """The most memory it ever had."""
    with open(f"/proc/{facade.process.pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


def test_several_records_at_once_and_a_client_s_token(facade):
    token = AccessToken(ACCOUNT, KEY, SECRET, identity="ada")
    token.add_grant(ChatGrant(service_sid=SERVICE))
    headers = {"X-Twilio-Token": token.to_jwt(), "Content-Type": "image/png"}
    status, _, body = facade.raw("POST", MEDIA, PNG, headers, credentials=None)
    made = json.loads(body)
    assert (status, made["author"]) == (201, "ada")
    ask = json.dumps({"command": "get", "list": [{"media_sid": made["sid"]}, {"media_sid": "ME" + "0" * 32}]}).encode()
    status, _, body = facade.raw("POST", MEDIA + "Set", ask, {"X-Twilio-Token": token.to_jwt()}, credentials=None)
    answer = json.loads(body)
    assert (status, [each["code"] for each in answer]) == (200, [200, 404])
    assert answer[0]["media_record"]["sid"] == made["sid"]
    assert facade.raw("POST", MEDIA + "Set", b"{}", {"X-Twilio-Token": "x"}, credentials=None)[0] == 401
    assert facade.raw("POST", MEDIA + "Set", b"{}")[0] == 400
    # Only media takes a token.
    assert facade.raw("GET", "/v1/Conversations", headers={"X-Twilio-Token": token.to_jwt()}, credentials=None)[0] == 401
