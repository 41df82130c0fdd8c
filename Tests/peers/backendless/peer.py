"""A Socket.IO client as a process of its own: JSON lines in, JSON lines out.

Runs with either generation of python-socketio, each in its own virtual environment.
Usage: peer.py URL APP_ID TRANSPORT[,TRANSPORT] [reconnect]
With "reconnect" it connects again after every loss and, as the official libraries do, subscribes under the same ids.
"""
import json
import sys
import threading

import socketio

url, app_id, transports = sys.argv[1:4]
reconnects = "reconnect" in sys.argv[4:]
subscriptions = {}
namespace = "/" + app_id
client = socketio.Client(
    reconnection=reconnects, reconnection_delay=0.2, reconnection_delay_max=1, randomization_factor=0)
lock = threading.Lock()
# The library starts a thread for every message, and so loses their order.
trigger = client.eio._trigger_event
client.eio._trigger_event = lambda *arguments, **options: trigger(*arguments, **{**options, "run_async": False})


def say(event, data=None):
    with lock:
        print(json.dumps({"event": event, "data": data}), flush=True)


def connected():
    # Those from before: what is asked for from now on is sent where it is read.
    known = list(subscriptions.values())
    say("connect")
    for subscription in known:
        client.emit("SUB_ON", subscription, namespace=namespace)


client.on("connect", connected, namespace=namespace)
client.on("disconnect", lambda *_: say("disconnect"), namespace=namespace)
client.on("connect_error", lambda *reason: say("connect_error", reason[0] if reason else None), namespace=namespace)
for name in ("SUB_RES", "SUB_READY", "MET_RES"):
    client.on(name, lambda data, name=name: say(name, data), namespace=namespace)

try:
    client.connect(url, transports=transports.split(","), namespaces=[namespace], socketio_path=app_id)
except socketio.exceptions.ConnectionError as error:
    say("failed", str(error))
    sys.exit(1)
say("transport", client.transport())
for line in sys.stdin:
    request = json.loads(line)
    if request["event"] == "disconnect":
        client.disconnect()
        break
    if reconnects and request["event"] == "SUB_ON":
        subscriptions[request["data"]["id"]] = request["data"]
    client.emit(request["event"], request["data"], namespace=namespace)
say("end")
