"""WebSocket conformance, the PyPI library `websockets` as the server of our client.

Prints its port. The path chooses what happens; what the client did is then told on standard output, a line each.
Ends with its standard input.
"""

import os
import socket
import sys
import threading

from websockets.frames import Close, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol


def frame(opcode, data=b"", fin=True):
    return Frame(opcode, data, fin).serialize(mask=False)


class Peer:
    def __init__(self, connection):
        self.socket = connection
        self.socket.settimeout(10)
        self.protocol = ServerProtocol(subprotocols=["chat"], select_subprotocol=choose, max_size=None)
        self.events = []

    def flush(self):
        for data in self.protocol.data_to_send():
            if data:
                self.socket.sendall(data)

    def pump(self):
        data = self.socket.recv(65536)
        if data:
            self.protocol.receive_data(data)
        else:
            self.protocol.receive_eof()
        self.events += self.protocol.events_received()
        self.flush()
        return bool(data)

    def next(self):
        while not self.events:
            if not self.pump():
                return None
        return self.events.pop(0)

    def close_code(self):
        while True:
            got = self.next()
            if got is None:
                return "none"
            if got.opcode is Opcode.CLOSE:
                return Close.parse(got.data).code if got.data else 1005

    def echo(self):
        """Whole messages, until the client closes."""
        data, opcode = b"", None
        while (got := self.next()) is not None:
            if got.opcode is Opcode.CLOSE:
                return Close.parse(got.data).code if got.data else 1005
            if got.opcode in (Opcode.PING, Opcode.PONG):
                continue
            opcode = opcode or got.opcode
            data += got.data
            if got.fin:
                self.socket.sendall(frame(opcode, data))
                data, opcode = b"", None
        return "none"


def choose(protocol, offered):
    return "chat" if "chat" in offered else None


def serve(connection):
    peer = Peer(connection)
    request = peer.next()
    assert isinstance(request, Request)
    path = request.path
    if path == "/refused":
        peer.protocol.send_response(peer.protocol.reject(403, "not you"))
        peer.flush()
        connection.close()
        return
    response = peer.protocol.accept(request)
    if path == "/bad-accept":
        del response.headers["Sec-WebSocket-Accept"]
        response.headers["Sec-WebSocket-Accept"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
    peer.protocol.send_response(response)
    if path == "/early":
        # In the same packet as the handshake's answer.
        connection.sendall(b"".join(peer.protocol.data_to_send()) + frame(Opcode.TEXT, b"early"))
    peer.flush()
    if path == "/fragments":
        connection.sendall(
            frame(Opcode.TEXT, b"a", False) + frame(Opcode.PING, b"p1") + frame(Opcode.CONT, b"b", False)
            + frame(Opcode.PING, b"p2") + frame(Opcode.CONT, b"c")
        )
        pongs = [peer.next() for _ in range(2)]
        say(path, " ".join(f"{p.opcode.name} {bytes(p.data).decode()}" for p in pongs))
        connection.sendall(frame(Opcode.CLOSE, Close(4001, "done").serialize()))
    elif path == "/bytewise":
        for byte in frame(Opcode.TEXT, "Grüße".encode()):
            connection.sendall(bytes([byte]))
    elif path == "/invalid-utf8":
        connection.sendall(frame(Opcode.TEXT, b"\xc3\x28"))
    elif path == "/oversized":
        connection.sendall(b"\x82\x7f" + (3 << 20).to_bytes(8, "big") + b"x")
    elif path == "/rsv":
        connection.sendall(b"\xa1\x01x")
    elif path == "/masked":
        connection.sendall(Frame(Opcode.TEXT, b"x").serialize(mask=True))
    elif path == "/fragmented-ping":
        connection.sendall(b"\x09\x00")
    elif path == "/vanish":
        connection.close()
        return
    elif path == "/no-code":
        connection.sendall(frame(Opcode.CLOSE))
    code = peer.echo() if path == "/echo" else peer.close_code()
    say(path, f"closed {code}")
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(65536):
        pass
    connection.close()


lock = threading.Lock()


def say(path, text):
    with lock:
        print(f"{path} {text}", flush=True)


def guarded(connection):
    try:
        serve(connection)
    except Exception as error:
        say("?", f"{type(error).__name__} {error}")


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)


def accept():
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=guarded, args=(connection,), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
os._exit(0)
