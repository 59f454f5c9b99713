"""The origins behind each proxy: one that reads strictly and keeps what it got, one that is broken.

What the first calls disputed is what two readers of HTTP could take in two ways.
"""

import re
import socket
import struct
import threading
import time
from collections import namedtuple

TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
HOST = re.compile(r"([A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(:\d{0,5})?")
GUARDED = ("x-forwarded-", "x-real-ip", "content-length", "transfer-encoding")

# `text`: all bytes of it; `wrong`: why it is disputed, or None.
Got = namedtuple("Got", "line case body text wrong")


class More(Exception):
    """The request is not whole yet."""


class Disputed(Exception):
    """The bytes can be read in two ways."""


class Server:
    """Calls `serve` with each connection, on a thread of its own."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            stream, _ = self.listener.accept()
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        try:
            self.serve(stream)
        except OSError:
            pass
        finally:
            stream.close()


class Recorder(Server):
    """Keeps what it got, by the case that it belongs to."""

    def __init__(self):
        self.got = {}
        self.now = None
        super().__init__()

    def keep(self, got):
        # What names no case came while one was tried.
        case = self.now if got.case is None else (self.now[0], got.case)
        self.got.setdefault(case, []).append(got)

    def serve(self, stream):
        data = b""
        while piece := stream.recv(65536):
            data += piece
            while data:
                try:
                    got, length = read(data)
                except More:
                    break
                except Disputed as why:
                    text = data.decode("latin-1")
                    self.keep(Got("", case_of(text), b"", text, str(why)))
                    stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
                    return
                data = data[length:]
                self.keep(got)
                stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


def case_of(text):
    found = re.search(r"(?i)^x-case: (\d+)\r?$", text, re.M)
    return int(found[1]) if found else None


def read(data):
    """The first request, and its length."""
    rest = [data]
    line = _line(rest)
    _check_line(line)
    fields = _fields(rest)
    _check_fields(line, fields)
    body = _body(rest, fields)
    length = len(data) - len(rest[0])
    text = data[:length].decode("latin-1")
    return Got(line, case_of(text), body, text, None), length


def _line(rest):
    end = rest[0].find(b"\n")
    if end < 0:
        raise More
    line = rest[0][:end]
    if not line.endswith(b"\r") or b"\r" in line[:-1]:
        raise Disputed("a line end that is not CRLF")
    rest[0] = rest[0][end + 1:]
    return line[:-1].decode("latin-1")


def _check_line(line):
    parts = line.split(" ")
    if len(parts) != 3 or not TOKEN.fullmatch(parts[0]) or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise Disputed(f"request line {line[:80]!r}")
    target = parts[1]
    if any(c <= " " or c == "\x7f" or c == "#" for c in target):
        raise Disputed(f"target {target[:80]!r}")
    whole = re.fullmatch(r"(?i)https?://[^/?]+.*", target)
    if not (target.startswith("/") or whole or (target == "*" and parts[0] == "OPTIONS")):
        raise Disputed(f"target {target[:80]!r}")


def _fields(rest):
    fields = []
    while line := _line(rest):
        name, colon, value = line.partition(":")
        if not colon or not TOKEN.fullmatch(name):
            raise Disputed(f"field {line[:80]!r}")
        if any((c < " " and c != "\t") or c == "\x7f" for c in value):
            raise Disputed(f"a control character in {name}")
        fields.append((name.lower(), value.strip(" \t")))
    return fields


def _check_fields(line, fields):
    values = lambda name: [v for n, v in fields if n == name]
    hosts = values("host")
    # HTTP/1.0 has none where the client had none.
    if len(hosts) > 1 or (not hosts and line.endswith("1.1")) or not all(map(HOST.fullmatch, hosts)):
        raise Disputed(f"hosts {hosts}")
    whole = re.fullmatch(r"(?i)http://([^/?]+).*", line.split(" ")[1])
    if whole and hosts and whole[1].lower().removesuffix(":80") != hosts[0].lower().removesuffix(":80"):
        raise Disputed("the host is not that of the target")
    upgrades = [v for v in values("connection") if "upgrade" in v.lower()]
    if upgrades and any("h2c" in v.lower() for v in values("upgrade")):
        raise Disputed("an upgrade to h2c")
    for name, _ in fields:
        plain = name.replace("_", "-")
        if plain != name and plain.startswith(GUARDED):
            raise Disputed(f"the twin {name}")


def _body(rest, fields):
    lengths = [v for n, v in fields if n == "content-length"]
    codings = [v.lower() for n, v in fields if n == "transfer-encoding"]
    if codings == ["chunked"] and not lengths:
        return _chunks(rest)
    if codings or len(lengths) > 1 or not all(re.fullmatch(r"[0-9]+", v) for v in lengths):
        raise Disputed(f"framed by {lengths} {codings}")
    return _take(rest, int(lengths[0]) if lengths else 0)


def _chunks(rest):
    body = b""
    while True:
        size = _line(rest)
        if not re.fullmatch(r"[0-9A-Fa-f]+", size):
            raise Disputed(f"chunk size {size[:40]!r}")
        size = int(size, 16)
        if size == 0:
            break
        body += _take(rest, size)
        if _line(rest):
            raise Disputed("a chunk without an end")
    for name, _ in _fields(rest):
        if name in ("host", "content-length", "transfer-encoding"):
            raise Disputed(f"the trailer {name}")
    return body


def _take(rest, length):
    if len(rest[0]) < length:
        raise More
    taken, rest[0] = rest[0][:length], rest[0][length:]
    return taken


class Broken(Server):
    """Answers `/fault/N` with the fault of that number, and everything else well."""

    def __init__(self, faults):
        self.faults = faults
        self.held = None
        self.version = None
        self.again = set()
        super().__init__()

    def serve(self, stream):
        name = None
        while path := _path(stream):
            if name:
                self.again.add(name)
            if not path.startswith("/fault/"):
                stream.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine")
                continue
            broken = self.faults[int(path.removeprefix("/fault/"))]
            name = f"{self.version}: {broken.name}"
            self.held = stream
            stream.sendall(broken.send)
            if broken.then == "close":
                return
            if broken.then == "reset":
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            while broken.then == "drip":
                stream.sendall(b"x")
                time.sleep(0.02)

    def speak_unasked(self, fault):
        try:
            if fault.later:
                self.held.sendall(fault.later)
                time.sleep(0.05)
        except OSError:
            # The proxy has closed it, which is as good.
            pass


def _path(stream):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = stream.recv(1)
        if not piece:
            return None
        head += piece
    return head.split(b" ")[1].decode("latin-1")
