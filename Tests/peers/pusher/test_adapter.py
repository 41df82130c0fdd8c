"""Ferry's own client with the official libraries at the other end."""
import http.server
import json
import subprocess
import threading
import urllib.parse

import pytest

from conftest import APP_ID, FERRY, KEY, SECRET
from test_libraries import MASTER_KEY, opened


class Account:
    """An account `site` for a facade, and the command line to use it."""

    def __init__(self, folder, facade, **settings):
        self.config = folder / "account.yaml"
        account = {
            "provider": "pusher", "app_id": APP_ID, "key": KEY, "host": "127.0.0.1", "port": facade.port, "tls": False,
            **settings}
        self.config.write_text(json.dumps({"accounts": {"site": account}}))

    def run(self, *arguments, text=None):
        done = subprocess.run(
            [FERRY, *arguments, "--config", str(self.config)], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout


class Tail:
    """`ferry tail --json`."""

    def __init__(self, account, address):
        self.process = subprocess.Popen(
            [FERRY, "tail", address, "--json", "--config", str(account.config)], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def next(self):
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.process.stdout.close()


@pytest.fixture
def tails():
    open_tails = []
    yield open_tails
    for tail in open_tails:
        tail.close()


def wait_for_subscriber(facade, channel):
    """Until somebody listens: the facade tells the official library."""
    client = facade.http()
    while channel not in client.channels_info()["channels"]:
        pass


class AuthEndpoint:
    """An app's endpoint, which signs with the official library."""

    def __init__(self, library):
        endpoint = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                endpoint.asked.append((self.headers["Authorization"], form))
                channel = form["channel_name"]
                data = {"user_id": "12", "user_info": {"name": "Bridge"}} if channel.startswith("presence-") else None
                answer = library.authenticate(channel, form["socket_id"], data)
                if isinstance(answer.get("shared_secret"), bytes):
                    answer["shared_secret"] = answer["shared_secret"].decode()
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/pusher/auth"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def test_what_the_official_library_seals_ferry_reads_and_the_other_way_round(facade, tmp_path, tails):
    channel = "private-encrypted-room"
    account = Account(tmp_path, facade, secret=SECRET, encryption_master_key=MASTER_KEY)
    tails.append(Tail(account, f"site:{channel}"))
    wait_for_subscriber(facade, channel)
    facade.http(encryption_master_key_base64=MASTER_KEY).trigger(
        channel, "new_message", {"sender": "Ann", "text": "h\u00e9llo \U0001f6a2", "ID": 7})
    message = tails[0].next()
    assert (message["kind"], message["id"], message["text"]) == ("message", "7", "h\u00e9llo \U0001f6a2")

    subscriber = facade.subscriber(channel)
    account.run("post", f"site:{channel}", "gr\u00fc\u00df dich", "--as", "bob")
    subscriber.wait(lambda: subscriber.data())
    sealed = subscriber.data()[0]
    assert "dich" not in sealed and "bob" not in sealed
    data = opened(facade, channel, sealed)
    assert (data["sender"], data["text"]) == ("bob", "gr\u00fc\u00df dich")


@pytest.mark.parametrize("channel", ["private-room", "presence-room", "private-encrypted-room"])
def test_an_account_without_a_secret_listens_by_the_official_librarys_signatures(facade, tmp_path, tails, channel):
    library = facade.http(encryption_master_key_base64=MASTER_KEY)
    endpoint = AuthEndpoint(library)
    try:
        account = Account(
            tmp_path, facade, auth_endpoint=endpoint.url, auth_headers={"Authorization": "Bearer token"})
        tails.append(Tail(account, f"site:{channel}"))
        wait_for_subscriber(facade, channel)
        library.trigger(channel, "new_message", {"sender": "Ann", "text": "hello", "ID": 7})
        assert tails[0].next()["text"] == "hello"
        assert [header for header, _ in endpoint.asked] == ["Bearer token"]
        if channel.startswith("presence-"):
            assert library.users_info(channel) == {"users": [{"id": "12"}]}
    finally:
        endpoint.close()


def test_a_long_message_is_read_by_the_chunk_convention(facade, tmp_path):
    account = Account(tmp_path, facade, secret=SECRET, long="chunk")
    text = "A \"long\" story with \u00e9 and \U0001f6a2.\n" * 2000
    subscriber = facade.subscriber("chatroom")
    # As the official example of the convention binds it.
    chunks = {}
    subscriber.channels["chatroom"].bind(
        "chunked-new_message", lambda data: subscriber._note(lambda chunk: chunks.update({chunk["index"]: chunk}), json.loads(data)))
    account.run("post", "site:chatroom", "-", text=text)
    subscriber.wait(lambda: any(chunk["final"] for chunk in chunks.values()))
    assert list(chunks) == list(range(len(chunks)))
    assert json.loads("".join(chunks[index]["chunk"] for index in range(len(chunks))))["text"] == text.rstrip("\n")
