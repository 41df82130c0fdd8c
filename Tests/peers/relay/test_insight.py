"""What the relay tells of itself: one message's way, and metrics that Prometheus' own parser reads."""
import json
import urllib.parse
import urllib.request

import pytest
from bridge import TOKEN, Local, Process, Subscriber, ferry, relay_config, wait_ready, wait_until
from prometheus_client.parser import text_string_to_metric_families


def scrape(relay_url):
    with urllib.request.urlopen(relay_url + "/metrics", timeout=20) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return {family.name: family for family in text_string_to_metric_families(answer.read().decode())}


def value(families, name, **labels):
    found = [
        sample.value for family in families.values() for sample in family.samples
        if sample.name == name and all(sample.labels.get(key) == wanted for key, wanted in labels.items())]
    assert len(found) <= 1, found
    return found[0] if found else None


@pytest.mark.timeout(60)
def test_metrics_are_read_by_prometheus_parser_and_tell_the_lag(services, tmp_path):
    config = relay_config(tmp_path, services.urls["local"], services.urls["pusher"])
    # A channel whose name would break a careless label, and an account that cannot be reached.
    config.write_text(
        config.read_text()
        .replace("bridges:", 'bridges:\n  odd: { between: [\'here:a"b\\c\', "site:odd"] }\n  off: { from: here:lobby, to: gone:x }')
        .replace("accounts:", f'accounts:\n  gone: {{ provider: local, url: "http://127.0.0.1:9", token: {TOKEN} }}'))
    relay = Process(tmp_path, "relay", config)
    local = Local(services.urls["local"])
    url = relay.urls["relay"]
    wait_until(lambda: value(scrape(url), "ferry_account_state", account="here", state="connected") == 1, what="here")
    wait_until(lambda: value(scrape(url), "ferry_account_state", account="site", state="connected") == 1, what="site")
    for number in range(5):
        local.post("lobby", "ann", f"{number}", f"{number}")
    wait_until(lambda: value(scrape(url), "ferry_sends_total", lane="lobby>site:chatroom") == 5, what="the copies")
    # A send is counted before it is settled.
    wait_until(lambda: value(scrape(url), "ferry_lane_pending", lane="lobby>site:chatroom") == 0, what="all settled")
    families = scrape(url)
    assert families["ferry_sends"].type == "counter" and families["ferry_lane_pending"].type == "gauge"
    assert value(families, "ferry_events_accepted_total", account="here") == 5
    assert value(families, "ferry_lane_oldest_seconds", lane="lobby>site:chatroom") == 0
    assert value(families, "ferry_lane_pending", lane='odd>here:a"b\\c') == 0
    # What cannot be delivered grows older.
    first = value(families, "ferry_lane_oldest_seconds", lane="off>gone:x")
    assert first > 0
    wait_until(
        lambda: value(scrape(url), "ferry_lane_oldest_seconds", lane="off>gone:x") > first + 0.5, what="a growing age")
    assert value(scrape(url), "ferry_lane_pending", lane="off>gone:x") == 5
    wait_until(lambda: value(scrape(url), "ferry_account_state", account="gone", state="degraded") == 1, what="degraded")
    try:
        urllib.request.urlopen(url + "/readyz", timeout=20)
        raise AssertionError("ready although an account is not")
    except urllib.error.HTTPError as error:
        assert error.code == 503 and "gone is degraded" in error.read().decode()
    for family in families.values():
        for sample in family.samples:
            assert TOKEN not in json.dumps(sample.labels)
    relay.stop()


@pytest.mark.timeout(60)
def test_one_messages_way_is_explained_while_the_relay_runs_and_after(services, tmp_path):
    config = relay_config(tmp_path, services.urls["local"], services.urls["pusher"])
    relay = Process(tmp_path, "relay", config)
    wait_ready(relay.urls["relay"])
    local = Local(services.urls["local"])
    eyes = Subscriber(services.urls["pusher"], "chatroom", ["new_message", "message_updated"])
    sent = local.post("lobby", "ann", "very private words", "1")
    wait_until(lambda: len(eyes.events) == 1, what="the copy")
    copy = str(eyes.events[0][1]["ID"])

    def explain(*arguments):
        code, out, err = ferry(config, "explain", *arguments)
        assert "very private words" not in out + err
        return code, out, err

    def settled():
        code, out, _ = explain("here:lobby", str(sent["id"]), "--json")
        return code == 0 and [d["state"] for d in json.loads(out)["messages"][0]["events"][0]["deliveries"]] == ["settled"]

    wait_until(settled, what="the delivery settled")
    trace = json.loads(explain("here:lobby", str(sent["id"]), "--json")[1])
    key = trace["messages"][0]["copies"][0]["key"]
    event = trace["messages"][0]["events"][0]["key"]
    for address, name in [("site:chatroom", copy), ("-", copy), ("-", key), ("here:lobby", event)]:
        again = json.loads(explain(address, name, "--json")[1])
        assert trace["messages"][0] in again["messages"], (address, name)
    code, out, _ = explain("site:chatroom", copy)
    assert code == 0 and "-> site:chatroom by lobby: done" in out and copy in out and "bridge lobby mirrors" in out
    query = urllib.parse.urlencode({"id": copy})
    request = urllib.request.Request(
        f"{relay.urls['relay']}/api/trace?{query}", headers={"Authorization": f"Bearer {TOKEN}"})
    assert trace["messages"][0] in json.load(urllib.request.urlopen(request, timeout=20))["messages"]
    assert explain("here:lobby", "unknown")[0] == 65
    assert explain("nonsense", "1")[0] == 64
    eyes.close()
    relay.stop()
    assert json.loads(explain("here:lobby", str(sent["id"]), "--json")[1])["messages"] == trace["messages"]
    (tmp_path / "relay.db").rename(tmp_path / "moved.db")
    # Without the file the running relay is asked, and there is none.
    assert explain("here:lobby", "1")[0] == 69
