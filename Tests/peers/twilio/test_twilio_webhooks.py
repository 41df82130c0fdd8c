"""Webhooks, each checked by the official validator."""
import json
import re
import threading

import pytest
from conftest import ACCOUNT, SERVICE
from twilio.base.exceptions import TwilioRestException

ODD = "It's 5 o'clock \u2615 \u2014 ol\u00e9 & a+b=c\n\U0001F680"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
POST = [
    "onMessageAdded", "onMessageUpdated", "onMessageRemoved", "onConversationAdded", "onConversationUpdated",
    "onConversationRemoved", "onConversationStateUpdated", "onParticipantAdded", "onParticipantUpdated",
    "onParticipantRemoved", "onDeliveryUpdated", "onUserAdded", "onUserUpdated"]
PRE = ["onMessageAdd", "onMessageUpdate", "onMessageRemove", "onConversationAdd", "onConversationUpdate",
       "onConversationRemove", "onParticipantAdd", "onParticipantUpdate", "onParticipantRemove", "onUserUpdate"]
ON = {"x_twilio_webhook_enabled": "true"}
HEADER = {"X-Twilio-Webhook-Enabled": "true"}


def service_hooks(client, hooks, method="POST", **options):
    options = {"filters": POST, "post_webhook_url": hooks.url + "/post?a=b", **options}
    client.conversations.v1.services(SERVICE).configuration.webhooks().update(method=method, **options)


def delete(facade, path):
    """The helper forgets the header on deletes."""
    assert facade.raw("DELETE", path, headers=HEADER)[0] == 204


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_every_event_carries_what_the_documentation_lists(facade, client, hooks, method):
    service_hooks(client, hooks, method)
    api = client.conversations.v1
    room = api.conversations.create(friendly_name="f", unique_name="u", attributes='{"a":"\u00e9"}', **ON)
    here = api.conversations(room.sid)
    phone = here.participants.create(
        messaging_binding_address="+15551230001", messaging_binding_proxy_address="+15559990000", **ON)
    ada = here.participants.create(identity="ada", **ON)
    message = here.messages.create(author="ada", body=ODD, attributes='{"n":1}', **ON)
    here.messages(message.sid).update(body="better", **ON)
    here.participants("ada").update(last_read_message_index=0, **ON)
    delete(facade, f"/v1/Conversations/u/Messages/{message.sid}")
    api.users("ada").update(friendly_name="Ada", **ON)
    delete(facade, "/v1/Conversations/u/Participants/ada")
    here.update(state="inactive", **ON)
    delete(facade, "/v1/Conversations/u")

    calls = hooks.wait("/post", 13)
    assert [each["EventType"] for each in calls] == [
        "onConversationAdded", "onParticipantAdded", "onUserAdded", "onParticipantAdded", "onMessageAdded",
        "onDeliveryUpdated", "onMessageUpdated", "onParticipantUpdated", "onMessageRemoved", "onUserUpdated",
        "onParticipantRemoved", "onConversationUpdated", "onConversationStateUpdated"] + [
        "onConversationRemoved"] * (len(calls) - 13)
    removed = hooks.wait("/post", 1, "onConversationRemoved")[0]
    for call in calls:
        # A GET goes to the URL with its query, which the fields follow.
        if method == "GET":
            assert call.pop("a") == "b"
        assert (call["AccountSid"], call["ChatServiceSid"], call["RetryCount"]) == (ACCOUNT, SERVICE, "0")
        assert call.get("Source") == (None if call["EventType"] == "onDeliveryUpdated" else "API")
        for name, value in call.items():
            if name.startswith("Date") or name == "StateUpdated":
                assert MOMENT.fullmatch(value), (name, value)
            assert value != "", (call["EventType"], name)
    by_event = {each["EventType"]: each for each in calls}
    common = {"AccountSid", "EventType", "Source", "ChatServiceSid", "RetryCount"}
    said = by_event["onMessageAdded"]
    assert set(said) - common == {
        "ConversationSid", "MessageSid", "Index", "DateCreated", "Body", "Author", "ParticipantSid", "Attributes"}
    assert (said["Body"], said["Author"], said["Index"], said["Attributes"]) == (ODD, "ada", "0", '{"n":1}')
    assert (said["MessageSid"], said["ParticipantSid"]) == (message.sid, ada.sid)
    assert set(by_event["onMessageUpdated"]) - set(said) == {"DateUpdated"}
    assert by_event["onMessageUpdated"]["Body"] == "better"
    assert set(by_event["onMessageRemoved"]) - set(said) == {"DateUpdated", "DateRemoved"}
    assert by_event["onMessageRemoved"]["Body"] == "better"
    assert set(by_event["onDeliveryUpdated"]) - common == {
        "ConversationSid", "MessageSid", "DeliveryReceiptSid", "ChannelMessageSid", "ParticipantSid", "Status",
        "ErrorCode", "DateCreated", "DateUpdated"}
    assert by_event["onDeliveryUpdated"]["Status"] == "delivered"
    assert by_event["onDeliveryUpdated"]["ParticipantSid"] == phone.sid
    read = by_event["onParticipantUpdated"]
    assert set(read) - common == {
        "ConversationSid", "ParticipantSid", "DateCreated", "DateUpdated", "LastReadMessageIndex", "Identity",
        "RoleSid", "Attributes", "MessagingBinding.Type"}
    assert (read["LastReadMessageIndex"], read["MessagingBinding.Type"]) == ("0", "CHAT")
    first = next(each for each in calls if each["EventType"] == "onParticipantAdded")
    assert (first["MessagingBinding.Type"], first["MessagingBinding.Address"]) == ("SMS", "+15551230001")
    assert set(by_event["onConversationAdded"]) - common == {
        "ConversationSid", "DateCreated", "DateUpdated", "FriendlyName", "UniqueName", "Attributes", "State"}
    moved = by_event["onConversationStateUpdated"]
    assert (moved["StateFrom"], moved["StateTo"], moved["Reason"]) == ("active", "inactive", "API")
    assert "DateRemoved" in removed
    assert by_event["onUserUpdated"]["isOnline"] == "false"


def test_without_the_header_nothing_is_told(facade, client, hooks):
    service_hooks(client, hooks)
    room = client.conversations.v1.conversations("lobby")
    message = room.messages.create(body="quiet")
    room.messages(message.sid).update(body="still")
    room.participants.create(identity="ada")
    room.messages(message.sid).delete()
    room.messages.create(body="loud", **ON)
    hooks.wait("/post", 1)
    assert [each["Body"] for each in hooks.at("/post")] == ["loud"]
    # Unless it is rehearsed.
    facade.rehearse(echo=True)
    room.messages.create(body="echo")
    assert hooks.wait("/post", 2)[1]["Body"] == "echo"


def test_each_scope_gets_what_it_asked_for(client, hooks):
    api = client.conversations.v1
    api.configuration.webhooks().update(post_webhook_url=hooks.url + "/account", filters=["onMessageAdded"])
    service_hooks(client, hooks, filters=["onMessageUpdated"])
    room = api.conversations("lobby")
    room.messages.create(body="early")
    room.webhooks.create(
        target="webhook", configuration_url=hooks.url + "/here", configuration_filters=["onMessageAdded"],
        configuration_method="get")
    room.webhooks.create(target="trigger", configuration_url=hooks.url + "/help", configuration_triggers=["help"])
    elsewhere = api.conversations(api.conversations.create().sid)
    elsewhere.messages.create(body="elsewhere", **ON)
    message = room.messages.create(body="Help me", **ON)
    room.messages(message.sid).update(body="thanks", **ON)
    room.messages.create(body="last", **ON)
    assert [each["Body"] for each in hooks.wait("/account", 3)] == ["elsewhere", "Help me", "last"]
    assert [each["Body"] for each in hooks.wait("/here", 2)] == ["Help me", "last"]
    assert [each["Body"] for each in hooks.wait("/help", 1)] == ["Help me"]
    assert [each["EventType"] for each in hooks.wait("/post", 1)] == ["onMessageUpdated"]
    # A webhook that comes late may ask for what it missed.
    room.webhooks.create(
        target="webhook", configuration_url=hooks.url + "/late", configuration_filters=["onMessageAdded"],
        configuration_replay_after=0)
    assert [each["Body"] for each in hooks.wait("/late", 2)] == ["thanks", "last"]


def test_retries_say_which_they_are_and_keep_the_order(client, hooks):
    service_hooks(client, hooks, filters=["onMessageAdded"])
    room = client.conversations.v1.conversations("lobby")
    hooks.answers["/post"] = [(503, ""), (429, ""), (200, ""), (500, ""), (200, "")]
    for body in "abc":
        room.messages.create(body=body, **ON)
    calls = hooks.wait("/post", 5)
    # 500 is not worth repeating: b is lost, as it would be.
    assert [(each["Body"], each["RetryCount"]) for each in calls] == [
        ("a", "0"), ("a", "1"), ("a", "2"), ("b", "0"), ("c", "0")]
    tokens = [token for _, _, token in hooks.calls]
    assert len(set(tokens[:3])) == 1 and len(set(tokens)) == 3


def test_a_slow_receiver_holds_up_nobody_else(client, hooks):
    service_hooks(client, hooks, filters=["onMessageAdded"])
    room = client.conversations.v1.conversations("lobby")
    room.webhooks.create(
        target="webhook", configuration_url=hooks.url + "/quick", configuration_filters=["onMessageAdded"])
    goes_on = threading.Event()
    hooks.answers["/post"] = [lambda _: (goes_on.wait(60), (200, ""))[1], (200, "")]
    for index in range(20):
        room.messages.create(body=str(index), **ON)
    assert [each["Body"] for each in hooks.wait("/quick", 20)] == [str(index) for index in range(20)]
    assert len(hooks.at("/post")) == 1
    goes_on.set()
    assert [each["Body"] for each in hooks.wait("/post", 20)] == [str(index) for index in range(20)]


def test_what_is_to_be_told_outlives_a_kill(facade, client, hooks):
    service_hooks(client, hooks, filters=["onMessageAdded"], post_webhook_url="http://127.0.0.1:9/none")
    room = client.conversations.v1.conversations("lobby")
    for index in range(5):
        room.messages.create(body=str(index), **ON)
    room.webhooks.create(
        target="webhook", configuration_url=hooks.url + "/here", configuration_filters=["onMessageAdded"])
    for index in range(50):
        room.messages.create(body=f"k{index}", **ON)
    facade.kill()
    seen = len(hooks.at("/here"))
    facade.start()
    facade.client().conversations.v1.conversations("lobby").messages.create(body="end", **ON)
    hooks.wait_for(lambda: any(each["Body"] == "end" for each in hooks.at("/here")))
    bodies = [each["Body"] for each in hooks.at("/here")]
    wanted = [f"k{index}" for index in range(50)] + ["end"]
    # The one under way when it was killed may come twice; its token says so.
    assert sorted(set(bodies), key=wanted.index) == wanted and len(bodies) <= 52, (seen, bodies)


def test_pre_action_hooks_change_refuse_or_are_too_late(facade, client, hooks):
    service_hooks(client, hooks, filters=PRE + POST, pre_webhook_url=hooks.url + "/pre")
    api = client.conversations.v1
    room = api.conversations("lobby")
    change = json.dumps({"body": "changed \u00e9", "author": "eve", "attributes": '{"by":"hook"}'})
    hooks.answers["/pre"] = [(200, change)]
    message = room.messages.create(body=ODD, author="ada", **ON)
    assert (message.body, message.author, message.attributes) == ("changed \u00e9", "eve", '{"by":"hook"}')
    asked = hooks.at("/pre")[0]
    assert (asked["EventType"], asked["Body"], asked["Author"]) == ("onMessageAdd", ODD, "ada")
    assert "MessageSid" not in asked and "Index" not in asked
    assert room.messages(message.sid).fetch().body == "changed \u00e9"
    hooks.answers["/pre"] = [(200, '{"friendly_name":"named"}')]
    assert api.conversations.create(friendly_name="x", **ON).friendly_name == "named"
    for answer in ((200, ""), (200, "{}"), (200, "no json"), (204, "")):
        hooks.answers["/pre"] = [answer]
        assert room.messages.create(body="same", **ON).body == "same"
    for status in (400, 403, 500):
        hooks.answers["/pre"] = [(status, "")]
        with pytest.raises(TwilioRestException) as error:
            room.messages.create(body="no", **ON)
        assert error.value.code == 50056
        with pytest.raises(TwilioRestException) as error:
            room.participants.create(identity="no", **ON)
        assert error.value.code == 50056
    with pytest.raises(TwilioRestException):
        room.messages(message.sid).update(body="no", **ON)
    assert facade.raw("DELETE", f"/v1/Conversations/lobby/Messages/{message.sid}", headers=HEADER)[0] == 403
    assert room.messages(message.sid).fetch().body == "changed \u00e9"
    assert [each.body for each in room.messages.list()] == ["changed \u00e9"] + ["same"] * 4
    # Nobody is asked about what is not announced.
    count = len(hooks.at("/pre"))
    room.messages.create(body="quiet")
    assert len(hooks.at("/pre")) == count
    # Whoever does not answer in time is not waited for.
    published = threading.Event()
    hooks.answers["/pre"] = [lambda _: (published.wait(60), (403, ""))[1]]
    assert room.messages.create(body="late", **ON).body == "late"
    published.set()


def test_timers_move_conversations_on(facade, client, hooks):
    """Only what can be seen without waiting for minutes."""
    service_hooks(client, hooks, filters=["onConversationStateUpdated"])
    room = client.conversations.v1.conversations("lobby")
    room.update(timers_inactive="PT1M")
    room.update(state="inactive")
    assert room.messages.create(body="wake", **ON).body == "wake"
    told = hooks.wait("/post", 1)[0]
    assert (told["StateFrom"], told["StateTo"], told["Reason"]) == ("inactive", "active", "EVENT")
    assert room.fetch().state == "active"
