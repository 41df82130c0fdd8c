"""The command line at a Twilio service: by the account of a configuration, and by an address alone."""
import json
import subprocess
import urllib.parse

import pytest

from conftest import ACCOUNT, FERRY, KEY, SECRET, SERVICE, TOKEN


@pytest.fixture
def by_account(facade, tmp_path):
    config = tmp_path / "client.yaml"
    config.write_text(f"""
accounts:
  support:
    provider: twilio
    account_sid: {ACCOUNT}
    auth_token: {TOKEN}
    api_key: {KEY}
    api_secret: {SECRET}
    service_sid: {SERVICE}
    api_url: {facade.url}
""")
    return lambda *words, **more: ferry(*words, "--config", str(config), **more)


def ferry(*words, code=0, **more):
    done = subprocess.run([FERRY, *words], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout.strip() if code == 0 else done.stderr


def address(facade, user=ACCOUNT, password=TOKEN):
    return f"twilio+http://{user}:{password}@{urllib.parse.urlsplit(facade.url).netloc}/lobby"


def test_a_message_s_whole_life(by_account, client):
    lobby = client.conversations.v1.conversations("lobby")
    text = "hello \U0001f469\u200d\U0001f469\u200d\U0001f467 \u00e9"
    first = by_account("post", "support:lobby", text, "--as", "ann")
    message = lobby.messages(first).fetch()
    assert (message.author, message.body) == ("ann", text)
    by_account("post", "support:lobby", "edited", "--edit", first)
    assert lobby.messages(first).fetch().body == "edited"
    shown = json.loads(by_account("history", "support:lobby", "--json"))
    assert (shown["id"], shown["text"], shown["author"]["name"]) == (first, "edited", "ann")
    by_account("post", "support:lobby", "--delete", first)
    assert lobby.messages.list() == []
    by_account("post", "support:lobby", "--typing", "1", "--as", "ann")
    assert "support:lobby" in by_account("channels", "support")
    lobby.participants.create(identity="carol")
    assert by_account("members", "support:lobby") == "carol"
    assert "There is no conversation nosuch" in by_account("post", "support:nosuch", "x", code=65)
    assert "reached" in by_account("check")


def test_one_key_posts_once(facade, by_account, client):
    first = by_account("post", "support:lobby", "once", "--key", "build-7")
    assert by_account("post", "support:lobby", "once", "--key", "build-7") == first
    assert ferry("post", address(facade), "once", "--key", "build-7") == first
    assert by_account("post", "support:lobby", "another", "--key", "build-8") != first
    assert [m.body for m in client.conversations.v1.conversations("lobby").messages.list()] == ["once", "another"]


def test_an_address_needs_no_configuration(facade):
    for user, password in ((ACCOUNT, TOKEN), (KEY, SECRET)):
        sid = ferry("post", address(facade, user, password), "hello", "--as", user)
        assert sid.startswith("IM")
    assert [json.loads(line)["author"]["name"] for line in ferry("history", address(facade), "--json").splitlines()] == [
        ACCOUNT, KEY]
    assert "credentials were not accepted" in ferry("post", address(facade, KEY, "wrong"), "x", code=77)
