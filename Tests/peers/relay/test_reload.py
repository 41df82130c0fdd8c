"""SIGHUP takes over what differs, and nothing of a file that is wrong."""
import json
import signal
import time
import urllib.parse
import urllib.request

import pytest
from bridge import TOKEN, Local, Process, Subscriber, ferry, relay_config, wait_ready, wait_until


def hang_up(relay, until):
    """Sends SIGHUP and waits for a line of the log; returns what was logged since."""
    before = len(relay.log.read_text())
    relay.process.send_signal(signal.SIGHUP)
    wait_until(lambda: until in relay.log.read_text()[before:], what=f"the log to say {until!r}")
    return relay.log.read_text()[before:]


def asking(folder, config, relay):
    path = folder / "asking.yaml"
    port = urllib.parse.urlsplit(relay.urls["relay"]).port
    path.write_text(config.read_text().replace("127.0.0.1:0", f"127.0.0.1:{port}"))
    return path


def accounts(config):
    code, out, err = ferry(config, "status", "--json")
    assert code == 0, err
    return {account["name"]: account for account in json.loads(out)["accounts"]}


@pytest.mark.timeout(120)
def test_only_what_differs_is_taken_over(services, tmp_path):
    config = relay_config(tmp_path, services.urls["local"], services.urls["pusher"])
    secret = tmp_path / "pusher-secret"
    secret.write_text("demo-secret\n")
    config.write_text(config.read_text().replace("secret: demo-secret", f"secret: 'file:{secret}'"))
    relay = Process(tmp_path, "relay", config)
    wait_ready(relay.urls["relay"])
    ask = asking(tmp_path, config, relay)
    local = Local(services.urls["local"])
    eyes = Subscriber(services.urls["pusher"], "chatroom", ["new_message"])
    since = {name: account["since"] for name, account in accounts(ask).items()}

    # Nothing differs, nothing happens.
    assert "no account or bridge differs" in hang_up(relay, "no account or bridge differs")

    # A rule of the bridge: the connections stay.
    good = config.read_text()
    config.write_text(good.replace("lobby: { between", "lobby: { author: '{name} via {account}', between"))
    said = hang_up(relay, "accounts kept")
    assert "bridges changed: lobby" in said and "connected anew" not in said
    assert {name: account["since"] for name, account in accounts(ask).items()} == since
    local.post("lobby", "ann", "by the new rule", "1")
    wait_until(lambda: len(eyes.events) == 1, what="the copy")
    assert "ann via here" in json.dumps(eyes.events[0][1])

    # What is wrong says where, and changes nothing.
    for bad, place in [
        (good.replace("mirror: [", "miror: ["), ":6:"), (good.replace("site:chatroom", "sit:chatroom"), ":6:"),
        (good.replace("accounts:", "accounts: ["), "relay.yaml:"), ("", "relay.yaml:1:1"),
    ]:
        config.write_text(bad)
        said = hang_up(relay, "nothing was changed")
        assert f"{config}" in said and place in said, said
    config.unlink()
    hang_up(relay, "nothing was changed")
    local.post("lobby", "ann", "still the same rule", "2")
    wait_until(lambda: len(eyes.events) == 2, what="the copy")
    assert "ann via here" in json.dumps(eyes.events[1][1])

    # A secret that was changed in its file: that account alone connects anew.
    config.write_text(good.replace("lobby: { between", "lobby: { author: '{name} via {account}', between"))
    hang_up(relay, "no account or bridge differs")
    secret.write_text("another")
    said = hang_up(relay, "accounts connected anew")
    assert "accounts connected anew: site" in said and "accounts kept: here" in said
    assert "another" not in relay.log.read_text()
    secret.write_text("demo-secret")
    hang_up(relay, "accounts connected anew")
    wait_ready(relay.urls["relay"])

    # Another channel, another token, and things that need a restart.
    config.write_text(
        good.replace("bridges:", "bridges:\n  second: { between: [here:second, site:second] }")
        .replace(f"journal: {tmp_path}/relay.db", f"journal: {tmp_path}/other.db")
        .replace(f", token: {TOKEN}, allow", ", token: another-token, allow"))
    said = hang_up(relay, "takes effect at the next start")
    assert "bridges added: second" in said and "relay.journal has changed" in said
    assert ferry(ask, "status")[0] == 77
    ask.write_text(ask.read_text().replace(f", token: {TOKEN}, allow", ", token: another-token, allow"))
    wait_until(lambda: all(a["state"] == "connected" for a in accounts(ask).values()), what="all connected")
    second = Subscriber(services.urls["pusher"], "second", ["new_message"])
    local.post("second", "ann", "on the new bridge", "3")
    wait_until(lambda: len(second.events) == 1, what="the copy on the new bridge")
    assert len(eyes.events) == 2
    eyes.close()
    second.close()
    relay.stop()


@pytest.mark.timeout(120)
def test_messages_during_reloads_are_neither_lost_nor_doubled(services, tmp_path):
    config = relay_config(tmp_path, services.urls["local"], services.urls["pusher"])
    relay = Process(tmp_path, "relay", config)
    wait_ready(relay.urls["relay"])
    local = Local(services.urls["local"])
    eyes = Subscriber(services.urls["pusher"], "chatroom", ["new_message"])
    good = config.read_text()
    for number in range(200):
        if number % 10 == 0:
            config.write_text(good.replace("lobby: { between", f"lobby: {{ author: '{{name}} {number}', between"))
            relay.process.send_signal(signal.SIGHUP)
        local.post("lobby", "ann", f"{number}", f"{number}")
    wait_until(lambda: len(eyes.events) >= 200, what="all copies")
    time.sleep(0.2)  # Whatever would be repeated has its chance.
    assert [event["text"] for _, event in eyes.events] == [str(number) for number in range(200)]
    eyes.close()
    relay.stop()


@pytest.mark.timeout(60)
def test_serve_says_what_a_restart_would_change(services, tmp_path):
    config = tmp_path / "serve.yaml"
    good = config.read_text()
    assert "has not changed" in hang_up(services, "has not changed")
    config.write_text(good.replace("demo-key", "other-key"))
    hang_up(services, "takes effect at the next start")
    config.write_text(good.replace("facades:", "facade:"))
    assert "serve.yaml:" in hang_up(services, "nothing was changed")
    config.write_text(good)
    assert Local(services.urls["local"]).post("lobby", "ann", "still here", "1")
