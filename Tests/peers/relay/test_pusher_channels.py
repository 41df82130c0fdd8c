"""Long messages, pictures and secrets cross a Pusher channel unharmed."""
import base64
import hashlib
import json
import random
import subprocess
import threading
import time
import urllib.parse

import pusher
import pytest

from bridge import APP, FERRY, TOKEN, Local, Process, Subscriber, ferry, official, services_config, wait_ready, wait_until
from test_demo import Tail, png
from test_replay import Gate

MASTER_KEY = base64.b64encode(b"01234567890123456789012345678901").decode()


def story(size):
    """At least `size` bytes of what is cut, escaped or composed in every way there is."""
    line = 'Ann said: "na\u00efve \\ path" \u65e5\u672c\u8a9e \U0001f469\u200d\U0001f469\u200d\U0001f467 e\u0301 \u0627\u0644\u0633\u0644\u0627\u0645\t<b>&amp;</b>\n'
    return line * (size // len(line.encode()) + 1) + "the end"


def site(url, **settings):
    return {"provider": "pusher", **APP, "host": "127.0.0.1", "port": urllib.parse.urlsplit(url).port, "tls": False,
            **settings}


def relay(folder, name, accounts, between, mirror="messages, edits, deletes, typing, images"):
    """A relay with one bridge, connected."""
    folder = folder / name
    folder.mkdir(exist_ok=True)
    config = folder / "relay.yaml"
    config.write_text(json.dumps({
        "accounts": accounts,
        "bridges": {"lobby": {"between": between, "mirror": mirror.split(", ")}},
        "relay": {"listen": "127.0.0.1:0", "journal": f"{folder}/relay.db", "token": TOKEN,
                  "allow_hosts": ["127.0.0.1"]}}))
    process = Process(folder, "relay", config)
    process.config = config
    wait_ready(process.urls["relay"])
    return process


def room(url):
    return {"provider": "local", "url": url, "token": TOKEN}


class Forwarder:
    """An app that copies what is said on one channel to another, with its own program: Ferry's marks are gone."""

    def __init__(self, url, source, target):
        self.client = official(url)
        self.target = target
        self.texts = []
        self.sets = {}
        self.subscriber = Subscriber(url, source, ["new_message", "chunked-new_message"])
        self.subscriber.took = self.took

    def took(self, event, data):
        data = json.loads(data)
        if event.startswith("chunked-"):
            # As the official example of the convention puts them together.
            chunks = self.sets.setdefault(data["id"], {})
            chunks[data["index"]] = data
            if not any(chunk["final"] for chunk in chunks.values()):
                return
            data = json.loads("".join(chunks[index]["chunk"] for index in range(len(chunks))))
        del data["ferry"]
        self.texts.append(data["text"])
        text = json.dumps(data)
        slices = [text[start:start + 1500] for start in range(0, len(text), 1500)]
        if len(slices) == 1:
            self.client.trigger(self.target, "new_message", text)
            return
        for index, part in enumerate(slices):
            self.client.trigger(
                self.target, "chunked-new_message",
                {"id": str(data["ID"]), "index": index, "chunk": part, "final": index == len(slices) - 1})


@pytest.mark.timeout(120)
@pytest.mark.parametrize("long", ["split", "chunk"])
def test_a_long_message_and_a_picture_go_from_local_through_pusher_to_another_local_server(services, tmp_path, long):
    (tmp_path / "other").mkdir()
    other = Process(tmp_path / "other", "serve", services_config(tmp_path / "other"))
    account = site(services.urls["pusher"], long=long)
    near = relay(
        tmp_path, "near", {"here": room(services.urls["local"]), "site": account}, ["here:lobby", "site:private-x"])
    far = relay(
        tmp_path, "far", {"other": room(other.urls["local"]), "site": account}, ["site:private-y", "other:lobby"])
    app = Forwarder(services.urls["pusher"], "private-x", "private-y")
    text = story(30_000)
    picture = png(300_000)
    (tmp_path / "picture.png").write_bytes(picture)
    code, _, err = ferry(near.config, "post", "here:lobby", "-", "--as", "ann", stdin=text.encode())
    assert code == 0, err
    code, _, err = ferry(
        near.config, "post", "here:lobby", "look", "--image", str(tmp_path / "picture.png"), "--as", "ann")
    assert code == 0, err
    local = Local(other.urls["local"])

    def arrived():
        return "".join(message["text"] for message in local.messages("lobby")).endswith("the endlook")

    wait_until(arrived, what="everything at the other local server")
    messages = local.messages("lobby")
    assert "".join(message["text"] for message in messages) == text + "look"
    assert len(messages) == 2 if long == "chunk" else len(messages) > 3
    assert {message["author"]["name"] for message in messages} == {"ann"}
    (attachment,) = messages[-1]["attachments"]
    digest = hashlib.sha256(picture).hexdigest()
    assert attachment["sha256"] == digest
    assert hashlib.sha256(local.call("GET", f"/v1/files/{digest}")).hexdigest() == digest
    app.subscriber.close()
    for process in (far, near, other):
        process.stop()


class Recorder(Gate):
    """A door that remembers what went through it, unmasked."""

    def __init__(self, url):
        self.flows = []
        super().__init__(url)

    def pump(self, source, target):
        flow = bytearray()
        self.flows.append(flow)

        class Tee:
            def recv(_, size):
                data = source.recv(size)
                flow.extend(data)
                return data

            def shutdown(_, how):
                source.shutdown(how)

        super().pump(Tee(), target)

    @staticmethod
    def unmasked(flow):
        """A client's frames in the clear; anything else as it is."""
        head, _, rest = bytes(flow).partition(b"\r\n\r\n")
        if b"websocket" not in head.lower() or not head.startswith(b"GET"):
            return bytes(flow)
        clear, place = bytearray(head), 0
        while place + 2 <= len(rest):
            length, start = rest[place + 1] & 127, place + 2
            if length == 126:
                length, start = int.from_bytes(rest[start:start + 2], "big"), start + 2
            elif length == 127:
                length, start = int.from_bytes(rest[start:start + 8], "big"), start + 8
            assert rest[place + 1] & 128, "a client masks its frames"
            mask, start = rest[start:start + 4], start + 4
            clear += bytes(byte ^ mask[i % 4] for i, byte in enumerate(rest[start:start + length])) + b"\n"
            place = start + length
        return bytes(clear)

    def everything(self):
        return b"\n".join(self.unmasked(flow) for flow in list(self.flows))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("long", ["split", "chunk"])
def test_a_bridge_through_an_encrypted_channel_works_and_the_service_never_sees_what_is_said(
        services, tmp_path, long):
    channel, word = "private-encrypted-room", "Nachtigall"
    recorder = Recorder(services.urls["pusher"])
    account = site(recorder.url, long=long, encryption_master_key=MASTER_KEY)
    bridge = relay(
        tmp_path, "near", {"here": room(services.urls["local"]), "site": account}, ["here:lobby", f"site:{channel}"])
    tail = Tail(bridge.config, f"site:{channel}")
    long_text = f"{word} " * 3000 + story(10_000)
    (tmp_path / f"{word}.png").write_bytes(png(50_000))

    def post(*arguments, **options):
        code, out, err = ferry(bridge.config, "post", "here:lobby", *arguments, "--as", f"{word} Ann", **options)
        assert code == 0, err
        return out.strip()

    first = post(f"{word} one")
    post("-", stdin=long_text.encode())
    post(f"{word} look", "--image", str(tmp_path / f"{word}.png"))
    post(f"{word} edited", "--edit", first)
    post("--typing", "1")

    def posted():
        return [line for line in tail.find(kind="message")]

    wait_until(lambda: any(line["attachments"] for line in posted()), what="the messages on the channel")
    wait_until(lambda: tail.find(kind="edit", text=f"{word} edited"), what="the edit")
    wait_until(lambda: tail.find(kind="typing"), what="the typing")
    assert "".join(line["text"] for line in posted()) == f"{word} one{long_text}{word} look"
    assert {line["author"]["name"] for line in posted()} == {f"{word} Ann"}

    # The other way round, from the official library.
    library = pusher.Pusher(
        **APP, ssl=False, host="127.0.0.1", port=urllib.parse.urlsplit(recorder.url).port,
        encryption_master_key_base64=MASTER_KEY)
    library.trigger(channel, "new_message", {"sender": f"{word} Bob", "text": f"{word} back"})
    local = Local(services.urls["local"])
    wait_until(
        lambda: [m for m in local.messages("lobby") if m["text"] == f"{word} back"], what="the message back")

    seen = recorder.everything()
    assert b"ciphertext" in seen and b"new_message" in seen and len(seen) > 60_000
    assert word.encode() not in seen
    for file in (tmp_path / "data").rglob("pusher*"):
        assert not file.is_file() or word.encode() not in file.read_bytes()
    tail.close()
    bridge.stop()
    recorder.close()


class Witness:
    """`ferry tail --json` into a file: a pipe would be full before it is read."""

    def __init__(self, folder, address):
        self.path = folder / "witness.jsonl"
        self.output = open(self.path, "w")
        self.process = subprocess.Popen(
            [FERRY, "tail", address, "--json", "--config", str(folder / "witness.yaml")], stdout=self.output,
            stderr=subprocess.PIPE)
        Process.started.append(self)
        while b"is connected" not in self.process.stderr.readline():
            assert self.process.poll() is None

    def lines(self):
        return [json.loads(line) for line in self.path.read_text().split("\n") if line.endswith("}")]

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()
        self.output.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("channel,long", [
    ("private-encrypted-room", "split"), ("presence-room", "chunk"), ("private-encrypted-room", "chunk")])
def test_killing_the_relay_and_the_line_in_the_middle_loses_and_repeats_nothing(services, tmp_path, channel, long):
    """Batches and slices of every size, the relay killed and the line cut again and again."""
    generator = random.Random(11)
    gate = Gate(services.urls["pusher"])
    settings = {"encryption_master_key": MASTER_KEY} if "encrypted" in channel else {}
    witness = site(services.urls["pusher"], **settings)
    (tmp_path / "witness.yaml").write_text(json.dumps({"accounts": {"site": witness}}))
    tail = Witness(tmp_path, f"site:{channel}")
    accounts = {"here": room(services.urls["local"]), "site": site(gate.url, long=long, **settings)}
    bridge = relay(tmp_path, "near", accounts, ["here:lobby", f"site:{channel}"])
    sizes = [generator.choice([5, 50, 500, 3000, 20_000]) for _ in range(150)]
    if long == "split":
        # What is split arrives in parts, which the comparison below would have to join.
        sizes = [min(size, 3000) for size in sizes]
    expected = [f"{number}: " + "\u00e9\"x"[number % 3] * (size // 2) for number, size in enumerate(sizes)]

    def write():
        local = Local(services.urls["local"])
        for number, text in enumerate(expected):
            local.post("lobby", "ann", text, f"kill-{number}")
            time.sleep(0.03)

    writer = threading.Thread(target=write)
    writer.start()
    for round in range(10):
        time.sleep(generator.uniform(0.1, 0.6))
        if round % 3 == 2:
            gate.shut()
            time.sleep(0.5)
            gate.is_open = True
        bridge.kill()
        bridge = Process(tmp_path / "near", "relay", tmp_path / "near" / "relay.yaml")
    writer.join()

    def texts():
        return [line["text"] for line in tail.lines() if line["kind"] == "message"]

    wait_until(lambda: len(texts()) >= len(expected), 120, "everything on the channel")
    bridge.stop()
    assert [text.split(":")[0] for text in texts()] == [text.split(":")[0] for text in expected]
    assert texts() == expected
    tail.close()
    gate.close()
