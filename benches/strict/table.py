"""The tables of tests/data/hostile: see the head of each file for its format."""

import re
import tomllib
from collections import namedtuple
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "hostile"
HIDDEN = "GET /smuggled HTTP/1.1\r\nhost: a.example\r\n\r\n"
GET = [(":method", "GET"), (":scheme", "http"), (":authority", "a.example"), (":path", "/p")]
END, WHOLE = 1, 4

# `accepted`: the body that the origin must get, or None if it must get nothing.
# `may`: the standard lets other servers accept it.
Case = namedtuple("Case", "name send accepted either may")
Fault = namedtuple("Fault", "name method send then later expect status body may")


def http1():
    cases = []
    for group in _load("http1.toml")["group"]:
        for put, body, may in _expectations(group):
            send = group["send"].replace("{}", put).replace("{case}", str(len(cases)))
            name = f"{group['name']} {put[:60]!r}"
            cases.append(Case(name, _bytes(send), body, False, may))
    return cases


def _expectations(group):
    for key in ("400", "431", "501", "either", "broken", "413"):
        yield from ((put, None, False) for put in group.get(key, []))
        yield from ((put, None, True) for put in group.get(f"{key}-may", []))
    for accept in group.get("accept", []):
        yield accept["put"], _bytes(accept.get("body", group.get("body", ""))), False


def http2():
    return [_stream(number, case) for number, case in enumerate(_load("http2.toml")["case"])]


def _stream(number, case):
    body = _bytes(case.get("body", "")) if "line" in case else None
    frames = _raw(number, case["frames"]) if "frames" in case else _message(number, case)
    return Case(case["name"], frames, body, case.get("either", False), case.get("may", False))


def _message(number, case):
    data, trailers = case.get("data", []), case.get("trailers", [])
    last = 0 if "open" in case else END
    alone = not (data or trailers)
    frames = frame(1, WHOLE | (last if alone else 0), 1, block(_head(number, case, alone)))
    for n, piece in enumerate(data):
        is_last = n + 1 == len(data) and not trailers
        frames += frame(0, last if is_last else 0, 1, _bytes(piece))
    return frames + (frame(1, WHOLE | last, 1, block(trailers)) if trailers else b"")


def _head(number, case, alone):
    fields = dict(GET) | ({} if alone else {":method": "POST"}) | dict(case.get("set", []))
    fields = [(n, v) for n, v in fields.items() if n not in case.get("drop", [])]
    return fields + [("x-case", str(number))] + [tuple(f) for f in case.get("add", [])]


def _raw(number, frames):
    out = b""
    for kind, flags, stream, payload in frames:
        payload = payload.replace("{get}", block(_head(number, {}, True)).decode("latin-1"))
        payload = payload.replace("{post}", block(_head(number, {}, False)).decode("latin-1"))
        payload = payload.replace("{many}", block([("x-a", "b")] * 120).decode("latin-1"))
        out += frame(kind, flags, stream, _bytes(payload))
    return out


def faults():
    return [
        Fault(f["name"], f.get("method", "GET"), _bytes(f["send"]), f.get("then", "keep"),
              _bytes(f.get("later", "")), f["expect"], f.get("status", 200),
              _bytes(f.get("body", "")), f.get("may", False))
        for f in _load("faults.toml")["fault"]
    ]


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def block(fields):
    """A header block of literals without names in the table (RFC 7541, 6.2.2)."""
    out = b""
    for field in fields:
        out += b"\0" + b"".join(_string(text.encode("latin-1")) for text in field)
    return out


def _string(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, length = len(text) - 127, bytearray([127])
    while rest >= 128:
        length.append(rest % 128 | 128)
        rest //= 128
    return bytes(length) + bytes([rest]) + text


def _load(name):
    with open(DATA / name, "rb") as file:
        return tomllib.load(file)


def _bytes(text):
    return re.sub(r"\{(\w+)(?:\*(\d+))?\}", _fill, text).encode("latin-1")


def _fill(match):
    what, count = match[1], match[2]
    if what == "hidden":
        return HIDDEN
    if count is None:
        return match[0]
    if what == "fields":
        return "\r\n".join(f"x-{n}: 1" for n in range(int(count)))
    if what == "interim":
        return "HTTP/1.1 103 Early Hints\r\n\r\n" * int(count)
    return what * int(count)
