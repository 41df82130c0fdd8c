"""A Socket.IO client as a process of its own: JSON lines in, JSON lines out.

Runs with either generation of python-socketio, each in its own virtual environment.
Usage: peer.py URL APP_ID TRANSPORT[,TRANSPORT]
"""
import json
import sys
import threading

import socketio

url, app_id, transports = sys.argv[1:4]
namespace = "/" + app_id
client = socketio.Client(reconnection=False)
lock = threading.Lock()
# The library starts a thread for every message, and so loses their order.
trigger = client.eio._trigger_event
client.eio._trigger_event = lambda *arguments, **options: trigger(*arguments, **{**options, "run_async": False})


def say(event, data=None):
    with lock:
        print(json.dumps({"event": event, "data": data}), flush=True)


client.on("connect", lambda: say("connect"), namespace=namespace)
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
    client.emit(request["event"], request["data"], namespace=namespace)
say("end")
