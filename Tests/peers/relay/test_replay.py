"""A real conversation crosses the bridge: all of it, once, in order, unchanged, whatever happens to the relay."""
import random
import socket
import threading
import time
import urllib.parse

import pytest
from bridge import (Local, Process, Subscriber, conversation, official, relay_config, wait_ready, wait_until)


def shown(subscriber):
    return [(data["sender"], data["text"]) for event, data in list(subscriber.events) if event == "new_message"]


@pytest.mark.timeout(300)
def test_a_conversation_replayed_into_the_local_room_arrives_at_pusher(services, tmp_path):
    expected = conversation()
    subscriber = Subscriber(services.urls["pusher"], "chatroom", ["new_message"])
    relay = Process(tmp_path, "relay", relay_config(tmp_path, services.urls["local"], services.urls["pusher"]))
    wait_ready(relay.urls["relay"])
    local = Local(services.urls["local"])
    for number, (author, text) in enumerate(expected):
        local.post("lobby", author, text, f"log-{number}")
    wait_until(lambda: len(shown(subscriber)) >= len(expected), 60, "everything at the Pusher side")
    relay.stop()
    assert shown(subscriber) == expected
    subscriber.close()


@pytest.mark.timeout(300)
def test_a_conversation_triggered_with_the_official_library_arrives_in_the_local_room(services, tmp_path):
    expected = conversation()
    relay = Process(tmp_path, "relay", relay_config(tmp_path, services.urls["local"], services.urls["pusher"]))
    wait_ready(relay.urls["relay"])
    client = official(services.urls["pusher"])
    for author, text in expected:
        client.trigger("chatroom", "new_message", {"sender": author, "text": text})
    local = Local(services.urls["local"])

    def arrived():
        return [(m["author"]["name"], m["text"]) for m in local.messages("lobby")]

    wait_until(lambda: len(arrived()) >= len(expected), 60, "everything in the local room")
    relay.stop()
    assert arrived() == expected


class Gate:
    """A TCP door before the Pusher side, so that it can be out of reach."""

    def __init__(self, url):
        self.target = (urllib.parse.urlsplit(url).hostname, urllib.parse.urlsplit(url).port)
        self.is_open = True
        self.lock = threading.Lock()
        self.sockets = set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if not self.is_open:
                near.close()
                continue
            try:
                far = socket.create_connection(self.target)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.sockets |= {near, far}
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def shut(self):
        self.is_open = False
        with self.lock:
            for end in self.sockets:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
            self.sockets.clear()

    def close(self):
        self.shut()
        self.listener.close()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_killing_the_relay_twenty_times_and_an_outage_lose_and_repeat_nothing(services, tmp_path, seed):
    expected = conversation()
    generator = random.Random(seed)
    subscriber = Subscriber(services.urls["pusher"], "chatroom", ["new_message"])
    gate = Gate(services.urls["pusher"])
    config = relay_config(tmp_path, services.urls["local"], gate.url)
    relay = Process(tmp_path, "relay", config)
    wait_ready(relay.urls["relay"])

    def replay():
        local = Local(services.urls["local"])
        for number, (author, text) in enumerate(expected):
            local.post("lobby", author, text, f"log-{number}")
            time.sleep(22 / len(expected))

    writer = threading.Thread(target=replay)
    writer.start()
    for kill in range(20):
        if kill == 10:
            gate.shut()
            time.sleep(10)
            gate.is_open = True
        time.sleep(generator.uniform(0.05, 0.9))
        relay.kill()
        relay = Process(tmp_path, "relay", config)
    writer.join()
    wait_until(lambda: len(shown(subscriber)) >= len(expected), 120, "everything at the Pusher side")
    relay.stop()
    gate.close()
    assert shown(subscriber) == expected
    subscriber.close()
