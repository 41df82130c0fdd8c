"""Lists, page by page, as the official client walks them."""
import concurrent.futures
import json
import urllib.parse

import pytest
from twilio.base.exceptions import TwilioException, TwilioRestException


def test_a_thousand_messages_come_page_by_page_in_either_order(facade, client):
    room = client.conversations.v1.conversations("lobby")
    for index in range(1000):
        room.messages.create(body=str(index), author="ada")
    for size in (None, 1000, 7):
        bodies = [each.body for each in room.messages.list(page_size=size)]
        assert bodies == [str(index) for index in range(1000)]
    down = [each.index for each in room.messages.list(order="desc", page_size=100)]
    assert down == list(reversed(range(1000)))
    # A limit asks for as many in one page as there may be.
    assert len(room.messages.list(limit=250)) == 250
    page = room.messages.page(page_size=100)
    seen = [[each.index for each in page]]
    while (page := page.next_page()) is not None:
        seen.append([each.index for each in page])
    assert seen == [list(range(start, start + 100)) for start in range(0, 1000, 100)]
    # And back again.
    status, _, body = facade.raw("GET", "/v1/Conversations/lobby/Messages?PageSize=300")
    meta = json.loads(body)["meta"]
    assert (status, meta["page_size"], meta["page"], meta["key"]) == (200, 100, 0, "messages")
    assert meta["previous_page_url"] is None and meta["first_page_url"] == meta["url"]
    urls = []
    while meta["next_page_url"]:
        urls.append(meta["url"])
        meta = json.loads(facade.raw("GET", local(meta["next_page_url"]))[2])["meta"]
    assert len(urls) == 9 and meta["page"] == 9
    indexes = []
    while meta["previous_page_url"]:
        answer = json.loads(facade.raw("GET", local(meta["previous_page_url"]))[2])
        meta = answer["meta"]
        indexes = [each["index"] for each in answer["messages"]] + indexes
    assert indexes == list(range(900)) and meta["page"] == 0


def local(url):
    parts = urllib.parse.urlsplit(url)
    assert parts.scheme == "http" and parts.netloc.startswith("127.0.0.1:")
    return f"{parts.path}?{parts.query}"


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_pages_stay_right_while_messages_come_and_go(client, order):
    room = client.conversations.v1.conversations("lobby")
    sids = [room.messages.create(body=str(index)).sid for index in range(30)]
    page = room.messages.page(order=order, page_size=10)
    first = [each.sid for each in page]
    for sid in (first[0], first[-1]):
        room.messages(sid).delete()
    room.messages(sids[15]).delete()
    room.messages.create(body="new")
    rest = []
    while (page := page.next_page()) is not None:
        rest += [each.body for each in page]
    wanted = [str(index) for index in range(10, 30) if index != 15] + ["new"]
    if order == "desc":
        wanted = [str(index) for index in reversed(range(20)) if index != 15]
    assert rest == wanted


def test_every_list_has_pages(client):
    api = client.conversations.v1
    sids = [api.conversations.create(friendly_name=str(index)).sid for index in range(7)]
    assert [each.sid for each in api.conversations.list(page_size=2)][1:] == sids
    room = api.conversations(sids[0])
    people = [room.participants.create(identity=f"p{index}").sid for index in range(5)]
    assert [each.sid for each in room.participants.list(page_size=2)] == people
    assert [each.identity for each in api.users.list(page_size=2)] == [f"p{index}" for index in range(5)]
    for sid in sids[1:]:
        api.conversations(sid).participants.create(identity="p0")
    for found in (api.participant_conversations.list(identity="p0", page_size=2),
                  api.users("p0").user_conversations.list(page_size=3)):
        assert [each.conversation_sid for each in found] == sids
    # Those that a filter leaves out take no room on a page.
    for sid in sids[1:6]:
        api.conversations(sid).update(state="inactive")
    active = [each.sid for each in api.conversations.list(state="active", page_size=1)]
    assert active[1:] == [sids[0], sids[6]]


def test_what_is_no_page_is_refused(facade):
    for query in ("PageToken=PTnope", "PageToken=x", "PageSize=0", "PageSize=x"):
        status, _, body = facade.raw("GET", f"/v1/Conversations?{query}")
        assert (status, json.loads(body)["code"]) == (400, 20001), query


def test_many_writers_at_once_lose_nothing(facade):
    def write(writer):
        room = facade.client().conversations.v1.conversations("lobby")
        return [room.messages.create(body=f"{writer}", author=f"w{writer}").index for _ in range(25)]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        indexes = [index for each in pool.map(write, range(8)) for index in each]
    assert sorted(indexes) == list(range(200))
    messages = facade.client().conversations.v1.conversations("lobby").messages.list()
    assert [each.index for each in messages] == list(range(200))


def test_everything_outlives_a_kill(facade):
    api = facade.client().conversations.v1
    room = api.conversations("lobby")
    room.participants.create(identity="ada")
    made = [room.messages.create(body=str(index), author="ada", attributes='{"n":1}') for index in range(10)]
    room.messages(made[3].sid).update(body="edited")
    room.messages(made[4].sid).delete()
    facade.kill()
    facade.start()
    room = facade.client().conversations.v1.conversations("lobby")
    assert room.fetch().sid == made[0].conversation_sid
    assert [(each.sid, each.index) for each in room.messages.list()] == [
        (each.sid, each.index) for each in made if each is not made[4]]
    assert room.messages(made[3].sid).fetch().body == "edited"
    assert room.messages.create(body="after", author="ada").index == 12
    assert room.participants("ada").fetch().sid == made[0].participant_sid


def test_rehearsed_refusals_look_like_the_service_s_own(facade, client):
    room = client.conversations.v1.conversations("lobby")
    facade.rehearse(fail=2, status=429, match="/Messages")
    for _ in range(2):
        with pytest.raises(TwilioRestException) as error:
            room.messages.create(body="x")
        assert (error.value.status, error.value.code) == (429, 20429)
    assert room.messages.create(body="x").index == 0
    facade.rehearse(fail=1, status=503, retry_after=7)
    status, headers, body = facade.raw("GET", "/v1/Conversations/lobby/Messages")
    assert (status, headers["Retry-After"], json.loads(body)["code"]) == (503, "7", 20503)
    facade.rehearse(fail=1, status=429)
    with pytest.raises(TwilioException):
        room.messages.list()
    assert [each.body for each in room.messages.list()] == ["x"]
