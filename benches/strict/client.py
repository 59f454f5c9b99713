"""Clients that send bytes as they are and tell what came back."""

import re
import socket
from collections import namedtuple

from table import block, frame

# `status` 0: no answer. `whole`: it ended as it must.
Answer = namedtuple("Answer", "status body whole")
NOTHING = Answer(0, b"", False)
PATIENCE = 3


def http1(port, data):
    """All that came back until the other side closed or was silent for too long."""
    came = b""
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.settimeout(PATIENCE)
        try:
            stream.sendall(data)
        except OSError:
            pass
        try:
            while piece := stream.recv(65536):
                came += piece
        except OSError:
            pass
    return came


def ask1(port, method, path):
    request = f"{method} {path} HTTP/1.1\r\nhost: faults.example\r\nconnection: close\r\n\r\n"
    return answer1(http1(port, request.encode()), method)


def answer1(came, method):
    """The answer in `came`, by a strict reading."""
    head, end, rest = came.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] (\d{3})", head)
    if not end or not status:
        return NOTHING
    status = int(status[1])
    if 100 <= status < 200 and status != 101:
        return answer1(rest, method)
    if method == "HEAD" or status in (204, 304):
        return Answer(status, rest, True)
    length = re.search(rb"(?im)^content-length: *(\d+)\r?$", head)
    if re.search(rb"(?im)^transfer-encoding: *chunked\r?$", head):
        return Answer(status, *_unchunk(rest))
    return Answer(status, rest, not length or len(rest) >= int(length[1]))


def _unchunk(rest):
    body = b""
    while match := re.match(rb"([0-9A-Fa-f]+)[^\r\n]*\r\n", rest):
        size = int(match[1], 16)
        rest = rest[match.end():]
        if size == 0:
            return body, rest.endswith(b"\r\n")
        if rest[size:size + 2] != b"\r\n":
            break
        body, rest = body + rest[:size], rest[size + 2:]
    return body, False


def http2(port, frames):
    """What came of stream 1."""
    settings = frame(4, 0, 0, b"\0\4\x7f\xff\xff\xff") + frame(8, 0, 0, b"\x7f\0\0\0")
    with socket.create_connection(("127.0.0.1", port)) as stream:
        stream.settimeout(PATIENCE)
        try:
            stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + frames)
        except OSError:
            pass
        return _hear(stream)


def _hear(stream):
    status, body, length = 0, b"", None
    while next_frame := _frame(stream):
        kind, flags, number, payload = next_frame
        if kind == 4 and not flags & 1:
            try:
                stream.sendall(frame(4, 1, 0, b""))
            except OSError:
                pass
        if number == 1 and kind == 1 and not status:
            status = _status(payload)
            status = 0 if 100 <= status < 200 else status
            # `content-length` is entry 28 of the table; a body that is shorter is visibly cut.
            length = re.search(rb"(?:\x5c|[\x0f\x1f]\x0d)[\x01-\x0a](\d+)", payload)
        if number == 1 and kind == 0:
            body += payload
        if number == 1 and kind in (0, 1) and flags & 1 and status:
            return Answer(status, body, not (body and length) or len(body) >= int(length[1]))
        if (number == 1 and kind == 3) or kind == 7:
            break
    return Answer(status, body, False)


def _frame(stream):
    try:
        head = _exactly(stream, 9)
        return head[3], head[4], int.from_bytes(head[5:], "big"), _exactly(stream, int.from_bytes(head[:3], "big"))
    except OSError:
        return None


def _exactly(stream, length):
    data = b""
    while len(data) < length:
        piece = stream.recv(length - len(data))
        if not piece:
            raise OSError("closed")
        data += piece
    return data


def _status(payload):
    while payload and 0x20 <= payload[0] < 0x40:
        payload = payload[1:]
    if 0x88 <= payload[0] <= 0x8E:
        return (200, 204, 206, 304, 400, 404, 500)[payload[0] - 0x88]
    if payload[1] == 3:
        return int(payload[2:5])
    # Three digits in Huffman's code: 0, 1 and 2 have five bits, the others six.
    bits = "".join(f"{byte:08b}" for byte in payload[2:6])
    number = ""
    for _ in range(3):
        five = int(bits[:5], 2)
        number += str(five if five < 3 else int(bits[:6], 2) - 0x19 + 3)
        bits = bits[5 if five < 3 else 6:]
    return int(number)


def ask2(port, method, path):
    fields = [(":method", method), (":scheme", "http"), (":authority", "faults.example"), (":path", path)]
    return http2(port, frame(1, 5, 1, block(fields)))
