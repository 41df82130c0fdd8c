"""WebSocket conformance, the PyPI library `websockets` as the client of our server.

Usage: client.py URL. The server echoes every message and accepts the subprotocol "chat". It allows messages of 2 MiB.
Prints one line a case, "ok NAME" or "FAILED NAME: WHY", and exits with 1 when any failed.
"""

import socket
import sys
import traceback
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import State
from websockets.sync.client import connect
from websockets.uri import parse_uri

URL = sys.argv[1]
LIMIT = 2 << 20


class Raw:
    """A connection whose frames we choose one by one."""

    def __init__(self, **options):
        self.protocol = ClientProtocol(parse_uri(URL), max_size=None, **options)
        parts = urlsplit(URL)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout=3)
        self.events = []
        self.protocol.send_request(self.protocol.connect())
        self.flush()
        while self.protocol.state is State.CONNECTING:
            self.pump()
        assert self.protocol.state is State.OPEN, self.protocol.handshake_exc
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

    def send(self, *frames):
        for frame in frames:
            self.socket.sendall(frame.serialize(mask=True))

    def bytes(self, data):
        self.socket.sendall(data)

    def next(self):
        while not self.events:
            if not self.pump():
                raise EOFError("the server closed the connection")
        return self.events.pop(0)

    def message(self):
        """The next whole message."""
        data, opcode = b"", None
        while True:
            frame = self.next()
            if frame.opcode in (Opcode.PING, Opcode.PONG, Opcode.CLOSE):
                continue
            opcode = opcode or frame.opcode
            data += frame.data
            if frame.fin:
                return opcode, bytes(data)

    def expect_close(self, *codes):
        """The server closes with one of these codes and then ends the connection."""
        code = self.close_code()
        assert code in codes, f"closed with {code}, not {codes}"

    def close_code(self):
        while True:
            frame = self.next()
            if frame.opcode is Opcode.CLOSE:
                code = Close.parse(frame.data).code
                while self.pump():
                    pass
                self.socket.close()
                return code


CASES = []


def case(function):
    CASES.append(function)
    return function


def frame(opcode, data=b"", fin=True):
    return Frame(opcode, data, fin)


@case
def text_and_binary_of_many_sizes():
    with connect(URL, max_size=None) as ws:
        for size in [0, 1, 125, 126, 127, 128, 65535, 65536, 65537, 1 << 20]:
            ws.send("x" * size)
            assert ws.recv() == "x" * size, size
            ws.send(b"\x00\xff" * (size // 2))
            assert ws.recv() == b"\x00\xff" * (size // 2), size


@case
def many_messages_in_order():
    with connect(URL) as ws:
        for first in range(0, 2000, 100):
            for number in range(first, first + 100):
                ws.send(f"message {number}")
            for number in range(first, first + 100):
                assert ws.recv() == f"message {number}"


@case
def subprotocol_is_echoed():
    with connect(URL, subprotocols=["other", "chat"]) as ws:
        assert ws.subprotocol == "chat", ws.subprotocol
    with connect(URL, subprotocols=["other"]) as ws:
        assert ws.subprotocol is None, ws.subprotocol


@case
def fragments_are_joined():
    raw = Raw()
    raw.send(frame(Opcode.TEXT, b"one ", False), frame(Opcode.CONT, b"two ", False), frame(Opcode.CONT, b"three"))
    assert raw.message() == (Opcode.TEXT, b"one two three")
    raw.send(frame(Opcode.BINARY, b"", False), frame(Opcode.CONT, b"", False), frame(Opcode.CONT, b"\x01"))
    assert raw.message() == (Opcode.BINARY, b"\x01")


@case
def a_message_in_fragments_of_one_byte():
    raw = Raw()
    text = "Grüße 👋".encode()
    raw.send(frame(Opcode.TEXT, text[:1], False))
    for index in range(1, len(text) - 1):
        raw.send(frame(Opcode.CONT, text[index : index + 1], False))
    raw.send(frame(Opcode.CONT, text[-1:]))
    assert raw.message() == (Opcode.TEXT, text)


@case
def bytes_that_arrive_one_by_one():
    raw = Raw()
    for byte in frame(Opcode.TEXT, b"slow").serialize(mask=True):
        raw.bytes(bytes([byte]))
    assert raw.message() == (Opcode.TEXT, b"slow")


@case
def control_frames_between_fragments():
    raw = Raw()
    raw.send(
        frame(Opcode.TEXT, b"a", False), frame(Opcode.PING, b"p1"), frame(Opcode.CONT, b"b", False),
        frame(Opcode.PONG, b"unasked"), frame(Opcode.PING, b"p2"), frame(Opcode.CONT, b"c"),
    )
    seen = [raw.next() for _ in range(3)]
    assert [(f.opcode, bytes(f.data)) for f in seen] == [
        (Opcode.PONG, b"p1"), (Opcode.PONG, b"p2"), (Opcode.TEXT, b"abc"),
    ], seen


@case
def pings_are_answered_with_their_payload():
    raw = Raw()
    for payload in [b"", b"x", b"y" * 125]:
        raw.send(frame(Opcode.PING, payload))
        answer = raw.next()
        assert (answer.opcode, bytes(answer.data)) == (Opcode.PONG, payload)


@case
def close_codes_are_echoed():
    for code in [1000, 1001, 1003, 1007, 1011, 3000, 4000, 4999]:
        raw = Raw()
        raw.send(frame(Opcode.CLOSE, Close(code, "bye").serialize()))
        raw.expect_close(code)


@case
def a_close_without_a_code_is_answered():
    raw = Raw()
    raw.send(frame(Opcode.CLOSE))
    raw.expect_close(1000, 1005)


@case
def bad_close_codes_are_a_protocol_error():
    for code in [0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535]:
        raw = Raw()
        raw.send(frame(Opcode.CLOSE, code.to_bytes(2, "big")))
        raw.expect_close(1002)


@case
def a_close_frame_of_one_byte_is_a_protocol_error():
    raw = Raw()
    raw.send(frame(Opcode.CLOSE, b"\x03"))
    raw.expect_close(1002)


@case
def a_close_reason_must_be_utf8():
    raw = Raw()
    raw.send(frame(Opcode.CLOSE, b"\x03\xe8\xff\xfe"))
    raw.expect_close(1007)


@case
def invalid_utf8_is_refused():
    bad = [b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"ok \xe2\x82"]
    for text in bad:
        raw = Raw()
        raw.send(frame(Opcode.TEXT, text))
        raw.expect_close(1007)
    raw = Raw()
    raw.send(frame(Opcode.TEXT, b"\xce\xba", False), frame(Opcode.CONT, b"\xed\xa0", False))
    raw.expect_close(1007)


@case
def oversized_messages_are_refused():
    raw = Raw()
    raw.bytes(b"\x81\xff" + (LIMIT + 1).to_bytes(8, "big") + b"\x00\x00\x00\x00x")
    raw.expect_close(1009)
    raw = Raw()
    raw.send(frame(Opcode.BINARY, b"x" * (LIMIT // 2), False), frame(Opcode.CONT, b"x" * (LIMIT // 2), False))
    raw.bytes(b"\x80\x81\x00\x00\x00\x00x")
    raw.expect_close(1009)


@case
def reserved_bits_are_refused():
    for bit in [0x40, 0x20, 0x10]:
        raw = Raw()
        raw.bytes(bytes([0x81 | bit, 0x81, 0, 0, 0, 0]) + b"x")
        raw.expect_close(1002)


@case
def reserved_opcodes_are_refused():
    for opcode in [3, 7, 11, 15]:
        raw = Raw()
        raw.bytes(bytes([0x80 | opcode, 0x80, 0, 0, 0, 0]))
        raw.expect_close(1002)


@case
def control_frames_are_neither_fragmented_nor_long():
    for data in [b"\x09\x80\x00\x00\x00\x00", b"\x08\x80\x00\x00\x00\x00", b"\x89\xfe\x00\x7e\x00\x00\x00\x00"]:
        raw = Raw()
        raw.bytes(data)
        raw.expect_close(1002)


@case
def fragments_out_of_order_are_refused():
    raw = Raw()
    raw.send(frame(Opcode.CONT, b"x"))
    raw.expect_close(1002)
    raw = Raw()
    raw.send(frame(Opcode.TEXT, b"x", False), frame(Opcode.TEXT, b"y"))
    raw.expect_close(1002)


@case
def frames_of_a_client_must_be_masked():
    raw = Raw()
    raw.bytes(b"\x81\x01x")
    raw.expect_close(1002)


@case
def data_after_a_close_is_ignored():
    raw = Raw()
    raw.send(frame(Opcode.CLOSE, Close(1000, "").serialize()), frame(Opcode.TEXT, b"late"), frame(Opcode.PING, b"late"))
    raw.expect_close(1000)


def main():
    failures = 0
    for function in CASES:
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {name}", flush=True)
        except Exception as error:
            failures += 1
            where = traceback.extract_tb(error.__traceback__)[1]
            print(f"FAILED {name}: {type(error).__name__} {error} (line {where.lineno}: {where.line})", flush=True)
    sys.exit(1 if failures else 0)


main()
