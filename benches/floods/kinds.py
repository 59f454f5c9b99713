"""The floods: what is sent first, and what is sent over and over.

Frames are RFC 9113's. Nothing here opens a connection or measures.
"""

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONT = range(10)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# One connection sends no more than this.
ENOUGH = 50_000


class Flood:
    """A kind: `opening` once, then `turn(n)` again and again."""

    def __init__(self, name, turn, opening=b"", tls=True, reads=True, connections=1, turns=ENOUGH,
                 hold=0.0):
        self.name, self.turn, self.opening, self.tls = name, turn, opening, tls
        self.reads, self.connections, self.turns, self.hold = reads, connections, turns, hold


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def settings(**values):
    ids = {"table": 1, "push": 2, "streams": 3, "window": 4, "frame": 5, "list": 6}
    entries = [ids[k].to_bytes(2, "big") + v.to_bytes(4, "big") for k, v in values.items()]
    return frame(SETTINGS, 0, 0, b"".join(entries))


def string(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, out = len(text) - 127, b"\x7f"
    while rest >= 128:
        out, rest = out + bytes([rest % 128 | 128]), rest // 128
    return out + bytes([rest]) + text


def block(method=b"GET", path=b"/api/items", more=()):
    fields = [(b":method", method), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", path), *more]
    return b"".join(b"\0" + string(name) + string(value) for name, value in fields)


def hello(**values):
    return PREFACE + settings(**values)


def sid(turn):
    return 2 * turn + 1


def get(stream, **head):
    return frame(HEADERS, END_STREAM | END_HEADERS, stream, block(**head))


def post(stream, **head):
    return frame(HEADERS, END_HEADERS, stream, block(method=b"POST", **head))


def always(data):
    return lambda turn: data


CANCEL = (8).to_bytes(4, "big")
FIELD = b"\0\x01x\x01v"
LARGE = b"\x40\x01x" + string(b"v" * 3000)
HEAD = HEADERS, END_STREAM, 1
CHUNKED = b"POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"


def bomb(turn):
    if turn == 0:
        return frame(HEADERS, END_STREAM | END_HEADERS, 1, block() + LARGE)
    return frame(HEADERS, END_STREAM | END_HEADERS, sid(turn), block() + b"\xbe" * 4000)


def large_head(turn):
    head = block(more=[(b"x-large", b"v" * 300)] * 90)
    return frame(HEADERS, 0, sid(turn), head[:16000]) + frame(CONT, END_HEADERS, sid(turn), head[16000:])


FLOODS = [
    Flood("rapid reset", lambda t: get(sid(t)) + frame(RST, 0, sid(t), CANCEL), hello()),
    Flood("reset of the stream before", lambda t: get(sid(t)) + frame(RST, 0, sid(max(t - 1, 0)), CANCEL), hello()),
    Flood("made reset: window overflow", lambda t: post(sid(t)) + frame(WINDOW, 0, sid(t), b"\x7f\xff\xff\xff"), hello()),
    Flood("made reset: update by 0", lambda t: post(sid(t)) + frame(WINDOW, 0, sid(t), bytes(4)), hello()),
    Flood("made reset: DATA after the end", lambda t: get(sid(t)) + frame(DATA, 1, sid(t), b"x"), hello()),
    Flood("made reset: a second head", lambda t: post(sid(t)) + post(sid(t)), hello()),
    Flood("made reset: wrong length", lambda t: post(sid(t), more=[(b"content-length", b"1")]) + frame(DATA, 1, sid(t), b"more"), hello()),
    Flood("made reset: PRIORITY of 4 octets", lambda t: post(sid(t)) + frame(PRIORITY, 0, sid(t), bytes(4)), hello()),
    Flood("malformed heads", lambda t: frame(HEADERS, 5, sid(t), b"\x82\x87"), hello()),
    Flood("streams without an end", lambda t: post(sid(t)), hello()),
    Flood("CONTINUATION, small", always(frame(CONT, 0, 1, FIELD)), hello() + frame(*HEAD, block())),
    Flood("CONTINUATION, 16 KiB", always(frame(CONT, 0, 1, FIELD * 3276)), hello() + frame(*HEAD, block()), turns=5000),
    Flood("CONTINUATION, empty", always(frame(CONT, 0, 1)), hello() + frame(*HEAD, block())),
    Flood("HEADERS, empty", lambda t: frame(HEADERS, 1, sid(t)) + frame(CONT, 4, sid(t), block()), hello()),
    Flood("header bomb", bomb, hello()),
    Flood("SETTINGS", always(settings()), hello()),
    Flood("SETTINGS that move windows", lambda t: settings(window=1000 + t % 2), hello() + b"".join(post(sid(n)) for n in range(90))),
    Flood("PING", always(frame(PING, 0, 0, bytes(8))), hello()),
    Flood("PING, answers not read", always(frame(PING, 0, 0, bytes(8))), hello(), reads=False, turns=500_000),
    Flood("SETTINGS, answers not read", always(settings()), hello(), reads=False, turns=500_000),
    Flood("PRIORITY", always(frame(PRIORITY, 0, 1, b"\0\0\0\x03\x01")), hello()),
    Flood("WINDOW_UPDATE", always(frame(WINDOW, 0, 0, (256).to_bytes(4, "big"))), hello()),
    Flood("window by the octet", always(frame(WINDOW, 0, 1, b"\0\0\0\x01")), hello(window=0) + get(1, path=b"/api/large")),
    Flood("unknown frames", always(frame(0xBE, 0, 0, b"x")), hello()),
    Flood("GOAWAY", always(frame(GOAWAY, 0, 0, bytes(8))), hello() + post(1)),
    Flood("DATA, empty", always(frame(DATA, 0, 1)), hello() + post(1)),
    Flood("DATA, padding only", always(frame(DATA, PADDED, 1, b"\xc8" + bytes(200))), hello() + post(1)),
    Flood("64 × 128 heads of 30 KiB", large_head, hello(), connections=64, turns=128, hold=2.0),
    Flood("zero windows, 16 × 100 answers of 1 MiB", lambda t: get(sid(t), path=b"/api/large"), hello(window=0), connections=16, turns=100, hold=2.0, reads=False),
    Flood("wide windows, not read, 16 × 100 of 1 MiB", lambda t: get(sid(t), path=b"/api/large"), hello(window=0x7FFFFFFF) + frame(WINDOW, 0, 0, (0x7FFF0000).to_bytes(4, "big")), connections=16, turns=100, hold=2.0, reads=False),
    Flood("h1: pipeline, answers not read", always(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"), tls=False, reads=False, turns=500_000),
    Flood("h1: chunks of an octet", always(b"1\r\nz\r\n"), CHUNKED, tls=False),
    Flood("h1: chunk extensions", always(b"1;x=yyyyyyyyyyyyyyyyyyyyyyy\r\nz\r\n"), CHUNKED, tls=False),
    Flood("h1: fields", always(b"x-a: 1\r\n"), b"GET / HTTP/1.1\r\nhost: localhost\r\n", tls=False),
    Flood("h1: trailers", always(b"x-a: 1\r\n"), CHUNKED + b"0\r\n", tls=False),
    Flood("connections that come and go", always(b""), tls=False, connections=3000, turns=0),
    Flood("half a preface, 500 connections", always(b""), PREFACE[:20], tls=False, connections=500, turns=0, hold=12.0),
]
