"""Every operation of the REST API as the official client uses it."""
import datetime
import json

import pytest
from conftest import ACCOUNT, CONTRACT, KEY, SECRET, SERVICE, TOKEN
from twilio.base.exceptions import TwilioException, TwilioRestException

UTC = datetime.timezone.utc
THEN = datetime.datetime(2016, 8, 5, 3, 10, 50, tzinfo=UTC)
LATER = datetime.datetime(2016, 8, 5, 4, 10, 50, tzinfo=UTC)
ODD = 'h\u00e9llo \U0001F469\u200d\U0001F680 quote " back\\slash\nline \u2028 & = + % \u00e9/e\u0301'


def refused(status, code, act, /, **options):
    with pytest.raises(TwilioRestException) as error:
        act(**options)
    assert (error.value.status, error.value.code) == (status, code), error.value


def test_conversations(scope):
    made = scope.conversations.create(
        friendly_name=ODD, unique_name="room a/\u00e9", attributes='{"topic" : "x", "n":1.0}', date_created=THEN,
        date_updated=LATER, messaging_service_sid="MG" + "a" * 32, timers_inactive="PT2M", timers_closed="PT1H")
    assert made.sid.startswith("CH") and len(made.sid) == 34
    assert (made.account_sid, made.chat_service_sid) == (ACCOUNT, SERVICE)
    assert (made.friendly_name, made.unique_name, made.attributes) == (ODD, "room a/\u00e9", '{"topic" : "x", "n":1.0}')
    assert (made.date_created, made.date_updated, made.state) == (THEN, LATER, "active")
    assert set(made.timers) == {"date_inactive", "date_closed"}
    for key in (made.sid, "room a/\u00e9", made.sid.upper()):
        assert scope.conversations(key).fetch().sid == made.sid
    refused(409, 50353, scope.conversations.create, unique_name="room a/\u00e9")
    refused(400, 50306, scope.conversations.create, unique_name="CH" + "a" * 32)
    refused(400, 50304, scope.conversations.create, attributes="{nope")
    refused(400, 50303, scope.conversations.create, attributes=json.dumps("x" * 16_384))
    refused(400, 50003, scope.conversations.create, friendly_name="x" * 257)
    refused(400, 50384, scope.conversations.create, state="closed")
    refused(400, 50308, scope.conversations.create, date_created="yesterday")
    refused(400, 20001, scope.conversations.create, timers_inactive="PT1S")
    refused(404, 50350, scope.conversations("nowhere").fetch)
    refused(404, 50350, scope.conversations("CH" + "0" * 32).delete)

    # Absent leaves alone, empty sets empty.
    updated = scope.conversations(made.sid).update(friendly_name="", unique_name="other", timers_closed="")
    assert (updated.friendly_name, updated.unique_name) == ("", "other")
    assert updated.attributes == made.attributes and set(updated.timers) == {"date_inactive"}
    assert scope.conversations("other").fetch().sid == made.sid
    refused(404, 50350, scope.conversations("room a/\u00e9").fetch)
    plain = scope.conversations.create()
    assert (plain.friendly_name, plain.unique_name, plain.attributes, plain.timers) == (None, None, "{}", {})
    refused(409, 50353, scope.conversations(plain.sid).update, unique_name="other")

    assert {each.sid for each in scope.conversations.list()} >= {made.sid, plain.sid}
    assert [each.sid for each in scope.conversations.list(end_date="2016-08-05")] == [made.sid]
    assert [each.sid for each in scope.conversations.list(start_date="2016-08-06", state="inactive")] == []
    closed = scope.conversations(plain.sid).update(state="closed")
    assert closed.state == "closed"
    assert [each.sid for each in scope.conversations.list(state="closed")] == [plain.sid]
    refused(400, 50377, scope.conversations(plain.sid).update, friendly_name="x")
    refused(400, 50377, scope.conversations(plain.sid).messages.create, body="x")
    refused(400, 50377, scope.conversations(plain.sid).participants.create, identity="x")
    assert scope.conversations(plain.sid).delete() is True
    refused(404, 50350, scope.conversations(plain.sid).fetch)
    assert scope.conversations("other").delete() is True


def test_messages(scope):
    room = scope.conversations("lobby")
    ada = room.participants.create(identity="ada")
    made = room.messages.create(
        author="ada", body=ODD, attributes='{"ferry":{"a":[1,2.50,"\u00e9"]}}', date_created=THEN, date_updated=LATER,
        subject="s")
    assert (made.author, made.body, made.participant_sid, made.index) == ("ada", ODD, ada.sid, 0)
    assert made.attributes == '{"ferry":{"a":[1,2.50,"\u00e9"]}}'
    assert (made.date_created, made.date_updated, made.media, made.delivery) == (THEN, LATER, None, None)
    assert room.messages(made.sid).fetch().body == ODD
    plain = room.messages.create(body="x")
    assert (plain.author, plain.participant_sid, plain.attributes, plain.index) == ("system", None, "{}", 1)
    now = datetime.datetime.now(UTC)
    assert abs((plain.date_created - now).total_seconds()) < 60
    edited = room.messages(made.sid).update(body="better", author="bob", attributes="{}")
    assert (edited.body, edited.author, edited.participant_sid, edited.attributes) == ("better", "bob", None, "{}")
    assert edited.index == 0 and edited.date_created == THEN and edited.date_updated > LATER
    again = room.messages(made.sid).update(date_created=LATER, date_updated=THEN)
    assert (again.body, again.date_created, again.date_updated) == ("better", LATER, THEN)
    # Two edits and a deletion use up three positions.
    assert room.messages(plain.sid).delete() is True
    refused(404, 50500, room.messages(plain.sid).fetch)
    refused(404, 50500, room.messages(plain.sid).update, body="x")
    assert room.messages.create(body="y").index == 5
    assert [(each.index, each.body) for each in room.messages.list()] == [(0, "better"), (5, "y")]
    assert [each.index for each in room.messages.list(order="desc")] == [5, 0]
    assert room.messages.create(content_sid="HX" + "a" * 32, body="dropped").content_sid == "HX" + "a" * 32

    refused(400, 50503, room.messages.create)
    refused(400, 50503, room.messages.create, body="")
    refused(400, 50504, room.messages.create, body="x" * 32_769)
    assert len(room.messages.create(body="x" * 32_768).body) == 32_768
    refused(400, 50304, room.messages.create, body="x", attributes="{'a':1}")
    refused(400, 50303, room.messages.create, body="x", attributes=json.dumps({"a": "x" * 4096}))
    assert room.messages.create(body="x", attributes=json.dumps("x" * 4094)).attributes == json.dumps("x" * 4094)
    refused(400, 50310, room.messages.create, body="x", author="x" * 257)
    assert room.messages.create(body="x", author="\U0001F600" * 256).author == "\U0001F600" * 256
    refused(400, 50308, room.messages.create, body="x", date_created="2016-13-01T00:00:00Z")
    refused(400, 50309, room.messages.create, body="x", date_updated="x")
    refused(404, 50507, room.messages.create, media_sid="ME" + "a" * 32)
    refused(404, 50500, room.messages("IM" + "a" * 32).fetch)
    refused_list(scope.conversations("nowhere").messages.list)
    refused(404, 50350, scope.conversations("nowhere").messages.create, body="x")
    # A message of another conversation is none of this one.
    elsewhere = scope.conversations(scope.conversations.create().sid)
    refused(404, 50500, elsewhere.messages(made.sid).fetch)


def test_participants(scope):
    sid = scope.conversations.create().sid
    room = scope.conversations(sid)
    roles = {role.friendly_name: role.sid for role in scope.roles.list()}
    ada = room.participants.create(
        identity="ada/\u00e9", attributes='{"a":1}', date_created=THEN, date_updated=LATER,
        role_sid=roles["channel admin"])
    assert (ada.identity, ada.attributes, ada.role_sid) == ("ada/\u00e9", '{"a":1}', roles["channel admin"])
    assert (ada.date_created, ada.date_updated, ada.messaging_binding) == (THEN, LATER, None)
    assert (ada.last_read_message_index, ada.last_read_timestamp) == (None, None)
    bob = room.participants.create(identity="bob")
    assert (bob.role_sid, bob.attributes) == (roles["channel user"], "{}")
    for key in (ada.sid, "ada/\u00e9"):
        assert room.participants(key).fetch().sid == ada.sid
    refused(409, 50433, room.participants.create, identity="bob")
    refused(400, 50204, room.participants.create)
    refused(400, 50204, room.participants.create, messaging_binding_address="+15551230001")
    refused(400, 50207, room.participants.create, identity="x" * 257)
    refused(400, 50206, room.participants.create, identity="US" + "a" * 32)
    refused(400, 50411, room.participants.create, messaging_binding_address="nobody",
            messaging_binding_proxy_address="+15551230002")
    refused(400, 20001, room.participants.create, identity="x", role_sid="RL" + "0" * 32)
    refused(404, 50432, room.participants("nobody").fetch)

    for index in range(3):
        room.messages.create(body=str(index))
    read = room.participants(bob.sid).update(last_read_message_index=1, last_read_timestamp="2026-01-02T03:04:05Z")
    assert (read.last_read_message_index, read.last_read_timestamp) == (1, "2026-01-02T03:04:05Z")
    assert room.participants("bob").update(last_read_message_index=0).last_read_message_index == 0
    assert room.participants("bob").update(attributes='{"b":2}').last_read_message_index == 0
    user = scope.users("bob").fetch()
    assert scope.users(user.sid).user_conversations(sid).fetch().unread_messages_count == 2
    renamed = room.participants(bob.sid).update(identity="robert")
    assert (renamed.sid, renamed.identity) == (bob.sid, "robert")
    refused(404, 50432, room.participants("bob").fetch)
    refused(409, 50433, room.participants(bob.sid).update, identity="ada/\u00e9")
    refused(400, 50441, room.participants(bob.sid).update, messaging_binding_proxy_address="+15551230009")

    found = scope.participant_conversations.list(identity="ada/\u00e9")
    assert [each.conversation_sid for each in found] == [sid]
    assert found[0].participant_identity == "ada/\u00e9" and found[0].participant_user_sid.startswith("US")
    refused_list(scope.participant_conversations.list, identity="a", address="b")
    assert room.participants(ada.sid).delete() is True
    refused(404, 50432, room.participants(ada.sid).fetch)
    assert scope.participant_conversations.list(identity="ada/\u00e9") == []
    assert [each.sid for each in room.participants.list()] == [bob.sid]
    assert room.participants.create(identity="ada/\u00e9").sid != ada.sid


def refused_list(list, **options):
    """Of a list the helper makes another kind of error, without a code."""
    with pytest.raises(TwilioException):
        list(**options)


def test_phones_and_receipts(scope):
    sid = scope.conversations.create().sid
    room = scope.conversations(sid)
    room.participants.create(identity="ada")
    number = "+1555123" + ("0001" if hasattr(scope, "services") else "0002")
    phone = room.participants.create(
        messaging_binding_address=number, messaging_binding_proxy_address="+15559990000")
    assert phone.identity is None
    assert phone.messaging_binding == {"type": "sms", "address": number, "proxy_address": "+15559990000"}
    whatsapp = room.participants.create(
        messaging_binding_address="whatsapp:" + number, messaging_binding_proxy_address="whatsapp:+15559990000")
    assert whatsapp.messaging_binding["type"] == "whatsapp"
    other = scope.conversations(scope.conversations.create().sid)
    refused(409, 50416, other.participants.create, messaging_binding_address=number,
            messaging_binding_proxy_address="+15559990000")
    refused(400, 50504, room.messages.create, body="x" * 1601)
    message = room.messages.create(body="\U0001F600" * 1600, author="ada")
    assert message.delivery == {
        "total": 2, "sent": "all", "delivered": "all", "read": "none", "failed": "none", "undelivered": "none"}
    receipts = room.messages(message.sid).delivery_receipts.list()
    assert {receipt.participant_sid for receipt in receipts} == {phone.sid, whatsapp.sid}
    assert {receipt.status for receipt in receipts} == {"delivered"}
    assert room.messages(message.sid).delivery_receipts(receipts[0].sid).fetch().sid == receipts[0].sid
    refused(404, 20404, room.messages(message.sid).delivery_receipts("DY" + "0" * 32).fetch)
    # Whoever writes from a phone gets no receipt for it.
    assert room.messages.create(body="x", author=number).participant_sid == phone.sid
    assert room.messages.create(body="x", author=number).delivery["total"] == 1
    assert [each.conversation_sid for each in scope.participant_conversations.list(address=number)] == [sid]
    cleared = room.participants(phone.sid).update(messaging_binding_proxy_address="null")
    assert cleared.messaging_binding["proxy_address"] is None
    room.participants(phone.sid).delete()
    room.participants(whatsapp.sid).delete()
    assert room.messages.create(body="x" * 1601).delivery is None


def test_users_and_their_conversations(scope):
    made = scope.users.create(identity="Carol", friendly_name=ODD, attributes='{"duty":"tech"}')
    assert (made.identity, made.friendly_name, made.attributes) == ("Carol", ODD, '{"duty":"tech"}')
    assert made.role_sid and made.is_online is None
    refused(409, 50201, scope.users.create, identity="Carol")
    refused(400, 50206, scope.users.create, identity="US" + "a" * 32)
    assert scope.users.create(identity="carol").sid != made.sid
    updated = scope.users("Carol").update(friendly_name="C")
    assert (updated.sid, updated.friendly_name, updated.attributes) == (made.sid, "C", '{"duty":"tech"}')
    assert {each.identity for each in scope.users.list()} >= {"Carol", "carol"}
    refused(404, 50200, scope.users("nobody").fetch)

    sid = scope.conversations.create(friendly_name="f").sid
    room = scope.conversations(sid)
    participant = room.participants.create(identity="Carol")
    for index in range(5):
        room.messages.create(body=str(index))
    mine = scope.users("Carol").user_conversations(sid)
    fetched = mine.fetch()
    assert (fetched.participant_sid, fetched.user_sid) == (participant.sid, made.sid)
    assert (fetched.unread_messages_count, fetched.last_read_message_index) == (None, None)
    assert (fetched.notification_level, fetched.conversation_state) == ("default", "active")
    changed = mine.update(notification_level="muted", last_read_message_index=2)
    assert (changed.notification_level, changed.last_read_message_index) == ("muted", 2)
    assert changed.unread_messages_count == 2
    last = room.messages.list(order="desc", limit=1)[0]
    room.messages(last.sid).delete()
    assert mine.fetch().unread_messages_count == 1
    assert room.participants("Carol").fetch().last_read_message_index == 2
    assert [each.conversation_sid for each in scope.users(made.sid).user_conversations.list()] == [sid]
    assert mine.delete() is True
    refused(404, 50350, mine.fetch)
    refused(404, 50432, room.participants("Carol").fetch)
    room.participants.create(identity="Carol")
    assert scope.users("Carol").delete() is True
    refused(404, 50200, scope.users(made.sid).fetch)
    refused(404, 50432, room.participants("Carol").fetch)


def test_conversation_with_participants(scope):
    made = scope.conversation_with_participants.create(
        friendly_name="both", participant=[
            json.dumps({"identity": "ada", "attributes": '{"a":1}'}),
            json.dumps({"messaging_binding.address": "+15550001111", "messaging_binding.proxy_address": "+15550002222"}),
            json.dumps({"identity": "bob", "messaging_binding": {"projected_address": "+15550003333"}})])
    assert made.state == "active"
    people = scope.conversations(made.sid).participants.list()
    assert [each.identity for each in people] == ["ada", None, "bob"]
    assert people[0].attributes == '{"a":1}'
    assert people[2].messaging_binding["projected_address"] == "+15550003333"
    # All or nothing.
    count = len(scope.conversations.list())
    refused(409, 50433, scope.conversation_with_participants.create, participant=['{"identity":"x"}'] * 2)
    refused(400, 20001, scope.conversation_with_participants.create, participant=["nope"])
    refused(400, 20001, scope.conversation_with_participants.create,
            participant=[json.dumps({"identity": str(index)}) for index in range(11)])
    assert len(scope.conversations.list()) == count
    scope.conversations(made.sid).delete()


def test_roles(scope):
    made = scope.roles.create(friendly_name="r", type="conversation", permission=["sendMessage", "leaveConversation"])
    assert (made.type, made.permissions) == ("conversation", ["sendMessage", "leaveConversation"])
    assert scope.roles(made.sid).update(permission=["sendMessage"]).permissions == ["sendMessage"]
    assert scope.roles(made.sid).fetch().friendly_name == "r"
    assert len(scope.roles.list()) == 5
    refused(400, 20001, scope.roles.create, friendly_name="r", type="other", permission=["x"])
    assert scope.roles(made.sid).delete() is True
    refused(404, 20404, scope.roles(made.sid).fetch)


def test_services_and_configuration(client):
    api = client.conversations.v1
    made = api.services.create(friendly_name="second")
    assert api.services(made.sid).fetch().friendly_name == "second"
    assert {each.sid for each in api.services.list()} == {SERVICE, made.sid}
    refused(400, 20001, api.services.create, friendly_name="")
    second = api.services(made.sid)
    # Services share nothing.
    room = second.conversations.create(unique_name="lobby")
    assert room.sid != api.conversations("lobby").fetch().sid
    refused(404, 50350, api.conversations(room.sid).fetch)
    second.conversations("lobby").messages.create(body="there", author="ada")
    assert api.conversations("lobby").messages.list() == []

    configuration = second.configuration().fetch()
    assert configuration.reachability_enabled is False
    role = second.roles.create(friendly_name="r", type="conversation", permission=["sendMessage"])
    updated = second.configuration().update(default_conversation_role_sid=role.sid, reachability_enabled=True)
    assert (updated.default_conversation_role_sid, updated.reachability_enabled) == (role.sid, True)
    assert second.conversations(room.sid).participants.create(identity="x").role_sid == role.sid
    assert second.users("x").fetch().is_online is False

    account = api.configuration().fetch()
    assert (account.default_chat_service_sid, account.default_inactive_timer) == (SERVICE, None)
    changed = api.configuration().update(
        default_chat_service_sid=made.sid, default_inactive_timer="PT5M", default_closed_timer="P1D")
    assert (changed.default_inactive_timer, changed.default_closed_timer) == ("PT5M", "P1D")
    assert api.conversations("lobby").fetch().sid == room.sid
    assert set(api.conversations.create().timers) == {"date_inactive", "date_closed"}
    api.configuration().update(default_chat_service_sid=SERVICE, default_inactive_timer="", default_closed_timer="")
    assert api.conversations("lobby").fetch().sid != room.sid
    refused(400, 20001, api.services(SERVICE).delete)
    assert second.delete() is True
    refused(404, 20404, second.fetch)
    refused(404, 20404, second.conversations(room.sid).fetch)


def test_webhook_configuration(client):
    api = client.conversations.v1
    account = api.configuration.webhooks()
    assert (account.fetch().method, account.fetch().target, account.fetch().filters) == ("POST", "webhook", [])
    updated = account.update(
        method="GET", filters=["onMessageAdd", "onMessageAdded"], pre_webhook_url="https://e.org/pre",
        post_webhook_url="https://e.org/post")
    assert updated.filters == ["onMessageAdd", "onMessageAdded"] and updated.method == "GET"
    assert account.update(post_webhook_url="").post_webhook_url in (None, "")
    service = api.services(SERVICE).configuration.webhooks()
    assert (service.fetch().method, service.fetch().filters, service.fetch().pre_webhook_url) == (None, None, None)
    updated = service.update(post_webhook_url="https://e.org/post", filters=["onUserAdded"], method="POST")
    assert (updated.filters, updated.pre_webhook_url) == (["onUserAdded"], None)
    refused(400, 50365, service.update, filters=["onNothing"])
    refused(400, 50372, service.update, post_webhook_url="gopher://e.org")


def test_scoped_webhooks(scope):
    room = scope.conversations("lobby")
    made = room.webhooks.create(
        target="webhook", configuration_url="https://e.org/x", configuration_method="get",
        configuration_filters=["onMessageAdded", "onMessageUpdated"])
    assert made.configuration == {
        "url": "https://e.org/x", "method": "get", "filters": ["onMessageAdded", "onMessageUpdated"]}
    updated = room.webhooks(made.sid).update(configuration_url="https://e.org/y", configuration_filters=["onMessageAdded"])
    assert updated.configuration == {"url": "https://e.org/y", "method": "get", "filters": ["onMessageAdded"]}
    studio = room.webhooks.create(target="studio", configuration_flow_sid="FW" + "a" * 32)
    assert studio.configuration == {"flow_sid": "FW" + "a" * 32}
    room.webhooks.create(target="trigger", configuration_url="https://e.org/t", configuration_triggers=["help"])
    refused(400, 20001, room.webhooks.create, target="other", configuration_url="https://e.org/x")
    refused(400, 50372, room.webhooks.create, target="webhook", configuration_url="x")
    refused(400, 50372, room.webhooks.create, target="webhook")
    refused(400, 50365, room.webhooks.create, target="webhook", configuration_url="https://e.org/x",
            configuration_filters=["onMessageAdd"])
    for _ in range(2):
        room.webhooks.create(target="webhook", configuration_url="https://e.org/x")
    refused(409, 50361, room.webhooks.create, target="webhook", configuration_url="https://e.org/x")
    assert len(room.webhooks.list()) == 5
    for each in room.webhooks.list():
        assert room.webhooks(each.sid).fetch().sid == each.sid
        assert room.webhooks(each.sid).delete() is True
    refused(404, 20404, room.webhooks(made.sid).fetch)


def test_either_credential_opens_and_no_other(facade):
    assert facade.client(KEY, SECRET, ACCOUNT).conversations.v1.conversations("lobby").fetch().unique_name == "lobby"
    wrong = [(ACCOUNT, SECRET), (KEY, TOKEN), (ACCOUNT, "x"), ("AC" + "a" * 32, TOKEN), (ACCOUNT, TOKEN + "x")]
    for credentials in wrong:
        refused(401, 20003, facade.client(*credentials).conversations.v1.conversations("lobby").fetch)
    status, headers, body = facade.raw("GET", "/v1/Conversations", credentials=None)
    assert (status, json.loads(body)["code"]) == (401, 20003) and headers["WWW-Authenticate"].startswith("Basic")


def test_unknown_paths_and_methods(facade):
    for path in ("/", "/v1", "/v1/Nothing", "/v2/Conversations", "/v1/Conversations/x/Nothing/y",
                 "/v1/Services/IS" + "9" * 32 + "/Conversations", "/v1/Conversations/lobby/Messages/x/y"):
        status, _, body = facade.raw("GET", path)
        assert (status, json.loads(body)["status"]) == (404, 404), path
    status, headers, body = facade.raw("PUT", "/v1/Conversations")
    assert (status, json.loads(body)["code"]) == (405, 20004)
    assert headers["Content-Length"] == str(len(body)) and headers["Twilio-Request-Id"].startswith("RQ")


def test_every_declared_answer_was_given():
    """Runs last in this file: what the tests above never asked for shows here."""
    if len(CONTRACT.counts) > 30:
        assert CONTRACT.missing() == set()
