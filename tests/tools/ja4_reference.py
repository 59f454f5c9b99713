#!/usr/bin/env python3
"""JA4 of a ClientHello, written from FoxIO's technical_details/JA4.md and nothing else.

Slow and plain on purpose: it is what the gateway's own code is compared with. Run without
arguments it checks itself against the examples that the specification and its authors publish.
"""

import hashlib
import struct

VERSIONS = {
    0x0304: "13", 0x0303: "12", 0x0302: "11", 0x0301: "10", 0x0300: "s3", 0x0002: "s2",
    0xFEFF: "d1", 0xFEFD: "d2", 0xFEFC: "d3",
}
GREASE = {0x0A0A + 0x1010 * n for n in range(16)}


def message_of(records):
    """The handshake message inside TLS records."""
    joined = b""
    while records:
        kind, _, length = struct.unpack(">BHH", records[:5])
        assert kind == 22, "not a handshake record"
        joined += records[5 : 5 + length]
        records = records[5 + length :]
    length = int.from_bytes(joined[1:4], "big")
    return joined[: 4 + length]


def u16s(data):
    values = [v for (v,) in struct.iter_unpack(">H", data)]
    return [v for v in values if v not in GREASE]


def parse(message):
    """(version, ciphers, [(extension, body)])"""
    assert message[0] == 1, "not a ClientHello"
    version = int.from_bytes(message[4:6], "big")
    at = 38
    at += 1 + message[at]
    size = int.from_bytes(message[at : at + 2], "big")
    ciphers = u16s(message[at + 2 : at + 2 + size])
    at += 2 + size
    at += 1 + message[at]
    extensions = []
    at += 2
    while at < len(message):
        number, size = struct.unpack(">HH", message[at : at + 4])
        extensions.append((number, message[at + 4 : at + 4 + size]))
        at += 4 + size
    return version, ciphers, [e for e in extensions if e[0] not in GREASE]


def protocol_part(alpn):
    first = alpn[3 : 3 + alpn[2]] if len(alpn) > 2 else b""
    if not first:
        return "00"
    letters = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    if first[0] in letters and first[-1] in letters:
        return chr(first[0]) + chr(first[-1])
    return first.hex()[0] + first.hex()[-1]


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else "0" * 12


def hashes(ciphers, extensions, signatures):
    """JA4_b and JA4_c from lists of numbers."""
    b = ",".join(sorted("%04x" % c for c in ciphers))
    c = ",".join(sorted("%04x" % e for e in extensions if e not in (0x0000, 0x0010)))
    if signatures:
        c += "_" + ",".join("%04x" % s for s in signatures)
    return digest(b), digest(c)


def ja4(message):
    version, ciphers, extensions = parse(message)
    bodies = dict(extensions)
    if 0x002B in bodies:
        version = max(u16s(bodies[0x002B][1:]), default=0)
    signatures = u16s(bodies.get(0x000D, b"")[2:])
    b, c = hashes(ciphers, [number for number, _ in extensions], signatures)
    return "t%s%s%02d%02d%s_%s_%s" % (
        VERSIONS.get(version, "00"),
        "d" if 0x0000 in bodies else "i",
        min(len(ciphers), 99),
        min(len(extensions), 99),
        protocol_part(bodies.get(0x0010, b"")),
        b,
        c,
    )


def numbers(text):
    return [int(v, 16) for v in text.split(",")]


def check():
    """The examples of the specification."""
    ciphers = numbers(
        "1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035"
    )
    extensions = numbers(
        "001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,0015"
    )
    signatures = numbers("0403,0804,0401,0503,0805,0501,0806,0601")
    assert hashes(ciphers, extensions, signatures) == ("8daaf6152771", "e5627efa2ab1")
    assert hashes(ciphers, extensions, []) == ("8daaf6152771", "6d807ffa2a79")
    assert hashes([], [0x0000, 0x0010], []) == ("000000000000", "000000000000")
    for hexadecimal, expected in [
        ("ab", "ab"), ("abcd", "ad"), ("30ab", "3b"), ("3031abcd", "3d"), ("30abcd31", "01"),
        ("6832", "h2"), ("687474702f312e31", "h1"), ("68", "hh"), ("", "00"),
    ]:
        name = bytes.fromhex(hexadecimal)
        alpn = struct.pack(">HB", len(name) + 1, len(name)) + name
        assert protocol_part(alpn) == expected, (hexadecimal, expected)


if __name__ == "__main__":
    check()
    print("the published examples hold")
