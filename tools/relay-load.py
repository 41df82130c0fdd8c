#!/usr/bin/env python3
"""Measures a relay with many channels: Pusher's facade to Twilio's over loopback, a bridge for each channel.

    tools/relay-load.py [CHANNELS] [MESSAGES] [FERRY]

Facades and relay run in one process, everything durable. Messages are triggered in batches of ten, over all channels in
turn. Prints one JSON line: messages a second from the first trigger to the last copy, CPU of the process for each, and
its largest resident memory. FERRY is a release build.
"""
import hashlib
import hmac
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CHANNELS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
MESSAGES = int(sys.argv[2]) if len(sys.argv) > 2 else 30_000
FERRY = sys.argv[3] if len(sys.argv) > 3 else ".build/release/ferry"
POSTERS = 4


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def configuration(folder, pusher, twilio, relay):
    app = {"app_id": "1001", "key": "load-key", "secret": "load-secret"}
    keys = {"account_sid": "AC" + "0" * 32, "auth_token": "load-token", "service_sid": "IS" + "0" * 32,
            "api_key": "SK" + "0" * 32, "api_secret": "load-secret"}
    names = [f"room-{number}" for number in range(CHANNELS)]
    return {
        "accounts": {
            "site": {"provider": "pusher", "host": "127.0.0.1", "port": pusher, "tls": False, **app},
            "desk": {
                "provider": "twilio", "api_url": f"http://127.0.0.1:{twilio}", "create": True, "poll": "1h", **keys},
        },
        "bridges": {name: {"from": f"site:{name}", "to": [f"desk:{name}"]} for name in names},
        "relay": {"listen": f"127.0.0.1:{relay}", "token": "load", "journal": str(folder / "relay.db")},
        "serve": {
            "data": str(folder / "data"),
            "facades": [
                {"provider": "pusher", "listen": f"127.0.0.1:{pusher}", **app},
                {"provider": "twilio", "listen": f"127.0.0.1:{twilio}", "conversations": names, **keys},
            ],
        },
    }


def trigger(port, numbers, failures):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for start in range(0, len(numbers), 10):
        batch = [
            {"name": "new_message", "channel": f"room-{number % CHANNELS}",
             "data": json.dumps({"ID": number, "sender": "ann", "text": f"message {number}, of a common length"})}
            for number in numbers[start:start + 10]]
        body = json.dumps({"batch": batch}).encode()
        query = (f"auth_key=load-key&auth_timestamp={int(time.time())}&auth_version=1.0"
                 f"&body_md5={hashlib.md5(body).hexdigest()}")
        path = "/apps/1001/batch_events"
        signature = hmac.new(b"load-secret", f"POST\n{path}\n{query}".encode(), hashlib.sha256).hexdigest()
        connection.request(
            "POST", f"{path}?{query}&auth_signature={signature}", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            failures.append(text)
            return


def metric(port, name):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer load"})
    text = urllib.request.urlopen(request, timeout=60).read().decode()
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for(condition, what, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"relay-load: {what} did not come")
        time.sleep(0.05)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        pusher, twilio, relay = free_port(), free_port(), free_port()
        config, ready = folder / "load.yaml", folder / "ready.json"
        config.write_text(json.dumps(configuration(folder, pusher, twilio, relay)))
        server = subprocess.Popen(
            [FERRY, "demo", "--config", str(config), "--ready-file", str(ready), "--data", str(folder / "data")],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(ready.exists, "the start")
            wait_for(lambda: metric(relay, "ferry_account_connected") >= 1, "the connection to Pusher")
            time.sleep(1)
            failures, threads = [], []
            before, start = cpu_seconds(server.pid), time.monotonic()
            for poster in range(POSTERS):
                numbers = list(range(poster, MESSAGES, POSTERS))
                threads.append(threading.Thread(target=trigger, args=(pusher, numbers, failures)))
                threads[-1].start()
            for thread in threads:
                thread.join()
            triggered = time.monotonic() - start
            if failures:
                sys.exit(f"relay-load: refused: {failures[0]}")
            wait_for(lambda: metric(relay, "ferry_sends_total") >= MESSAGES, "the last copy")
            seconds = time.monotonic() - start
            status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
            print(json.dumps({
                "channels": CHANNELS, "messages": MESSAGES, "per_second": round(MESSAGES / seconds),
                "triggered_per_second": round(MESSAGES / triggered),
                "cpu_us": round((cpu_seconds(server.pid) - before) / MESSAGES * 1e6),
                "sends": int(metric(relay, "ferry_sends_total")),
                "dead": int(metric(relay, "ferry_dead_letters_total")),
                "resident_mib": int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024}))
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
