"""What anybody may send to a bridge, and what must come of it."""
import json
import signal
import subprocess
import time

import pytest
from bridge import FERRY, Local, Subscriber, official, wait_until


def arrived(demo, text):
    found = [m for m in Local(demo.urls["local"]).messages("lobby") if m["text"] == text]
    return found[0] if found else None


@pytest.mark.timeout(60)
@pytest.mark.parametrize("levels", [65, 400, 505, 509, 511])
def test_data_nested_too_deep_for_the_journal_holds_up_nothing(demo, levels):
    client = official(demo.urls["pusher"])
    deep = "[" * levels + "]" * levels
    client.trigger("chatroom", "new_message", '{"sender":"eve","text":"deep","x":' + deep + "}")
    client.trigger("chatroom", "new_message", {"sender": "bob", "text": "after"})
    wait_until(lambda: arrived(demo, "deep") and arrived(demo, "after"), seconds=10)


@pytest.mark.timeout(60)
def test_no_name_id_or_time_loses_a_message(demo):
    client = official(demo.urls["pusher"])
    odd = [
        {"sender": "a\nb"}, {"sender": ""}, {"sender": "x" * 3000}, {"sender": None}, {"sender": "{name}"},
        {"sender": {"id": "1", "name": "n", "avatar": "http://a b"}}, {"sender": {"name": ""}},
        {"id": "i" * 3000}, {"id": "a\nb\u0000"}, {"timestamp": "0001-01-01T00:00:00Z"}, {"timestamp": -2.4e14},
        {"timestamp": 1e300},
    ]
    for number, members in enumerate(odd):
        client.trigger("chatroom", "new_message", {**members, "text": f"odd {number}"})
    for number, members in enumerate(odd):
        wait_until(lambda: arrived(demo, f"odd {number}"), seconds=10, what=json.dumps(members)[:80])


@pytest.mark.timeout(60)
def test_text_that_json_makes_longer_is_split_to_fit(demo):
    subscriber = Subscriber(demo.urls["pusher"], "chatroom", ["new_message"])
    text = '\\"\n\u0001{"a": "b"}' * 1000
    Local(demo.urls["local"]).post("lobby", "ann", text, "escapes")
    wait_until(lambda: "".join(data["text"] for _, data in subscriber.events) == text, seconds=10)
    subscriber.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_waits_for_its_input_can_be_interrupted(demo, number):
    process = subprocess.Popen(
        [FERRY, "post", "here:lobby", "--config", str(demo.client_config)], stdin=subprocess.PIPE)
    time.sleep(0.3)
    process.send_signal(number)
    assert process.wait(timeout=5) == 130
