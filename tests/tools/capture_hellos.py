#!/usr/bin/env python3
"""Captures the ClientHello of real clients into tests/data/hellos/.

Wants curl, openssl, node and tshark on the PATH and `pip install curl_cffi` (browser profiles).
Each client connects to a small TCP server that keeps the bytes and hangs up. `NAME.hex` holds
the TLS records as they came; `expected.tsv` holds the JA3 that tshark finds in them and the JA4
of ja4_reference.py. Every run captures anew: random bytes, shuffled extensions and so JA3 change.
"""

import pathlib
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading

import ja4_reference

HERE = pathlib.Path(__file__).resolve().parent
OUT = HERE.parent / "data" / "hellos"
BROWSERS = """
chrome99 chrome100 chrome101 chrome104 chrome107 chrome110 chrome116 chrome119 chrome120 chrome123
chrome124 chrome131 chrome133a chrome136 chrome142 chrome146 chrome99_android chrome131_android
edge99 edge101 firefox133 firefox135 firefox144 firefox147 tor145 safari153 safari155 safari170
safari172_ios safari180 safari184 safari184_ios safari260 safari260_ios
""".split()


def receive(server, kept):
    connection, _ = server.accept()
    connection.settimeout(10)
    data = b""
    while not whole(data):
        more = connection.recv(65536)
        if not more:
            break
        data += more
    kept.append(data)
    connection.close()


def whole(data):
    """Whether these records hold a complete handshake message."""
    joined = b""
    while len(data) >= 5:
        length = int.from_bytes(data[3:5], "big")
        if len(data) < 5 + length:
            return False
        joined += data[5 : 5 + length]
        if len(joined) >= 4 and len(joined) >= 4 + int.from_bytes(joined[1:4], "big"):
            return True
        data = data[5 + length :]
    return False


def capture(client):
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(20)
    kept = []
    thread = threading.Thread(target=receive, args=(server, kept))
    thread.start()
    client(server.getsockname()[1])
    thread.join()
    server.close()
    return kept[0]


def command(*words):
    def run(port):
        filled = [w.replace("PORT", str(port)) for w in words]
        subprocess.run(filled, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    return run


def browser(profile):
    def run(port):
        from curl_cffi import requests
        try:
            requests.get(f"https://localhost:{port}/", impersonate=profile, timeout=10)
        except requests.RequestsError:
            pass
    return run


def python(configure):
    def run(port):
        context = ssl.create_default_context()
        configure(context)
        try:
            context.wrap_socket(
                socket.create_connection(("127.0.0.1", port)), server_hostname="python.example"
            )
        except OSError:
            pass
    return run


def clients():
    yield "curl", command("curl", "-sk", "https://localhost:PORT/")
    yield "curl_address", command("curl", "-sk", "https://127.0.0.1:PORT/")
    yield "curl_http1", command("curl", "-sk", "--http1.1", "https://localhost:PORT/")
    yield "curl_no_alpn", command("curl", "-sk", "--no-alpn", "https://localhost:PORT/")
    yield "curl_tls12", command("curl", "-sk", "--tls-max", "1.2", "https://localhost:PORT/")
    s_client = ("openssl", "s_client", "-connect", "127.0.0.1:PORT")
    yield "openssl", command(*s_client)
    yield "openssl_name", command(*s_client, "-servername", "www.example.com")
    yield "openssl_tls12", command(*s_client, "-tls1_2")
    yield "openssl_tls11", command(*s_client, "-tls1_1", "-cipher", "ALL:@SECLEVEL=0")
    yield "openssl_all", command(*s_client, "-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0")
    yield "openssl_odd_alpn", command(*s_client, "-alpn", "/x-1/")
    yield "python", python(lambda context: None)
    yield "python_h2", python(lambda context: context.set_alpn_protocols(["h2", "http/1.1"]))
    script = "require('https').get('https://localhost:PORT/').on('error', () => {})"
    yield "node", command("node", "-e", script)
    script = "require('http2').connect('https://localhost:PORT/').on('error', () => {})"
    yield "node_h2", command("node", "-e", script)
    for profile in BROWSERS:
        yield profile, browser(profile)


def pcap(data):
    """One TCP connection to port 443 with `data` as its first segment."""
    def packet(flags, sequence, acknowledged, payload, back=False):
        ports = (443, 40000) if back else (40000, 443)
        hosts = (b"\x0a\0\0\2", b"\x0a\0\0\1") if back else (b"\x0a\0\0\1", b"\x0a\0\0\2")
        tcp = struct.pack(">HHIIBBHHH", *ports, sequence, acknowledged, 0x50, flags, 65535, 0, 0)
        size = 20 + len(tcp) + len(payload)
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 1, 0x4000, 64, 6, 0, *hosts)
        return ip + tcp + payload
    packets = [
        packet(0x02, 0, 0, b""),
        packet(0x12, 0, 1, b"", back=True),
        packet(0x10, 1, 1, b""),
        packet(0x18, 1, 1, data),
    ]
    raw_ip = 101
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, raw_ip)
    for at, one in enumerate(packets):
        out += struct.pack("<IIII", 1, at, len(one), len(one)) + one
    return out


def tshark_ja3(data):
    with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
        file.write(pcap(data))
        file.flush()
        fields = ["-e", "tls.handshake.ja3_full", "-e", "tls.handshake.ja3"]
        words = ["tshark", "-r", file.name, "-Y", "tls.handshake.type==1", "-T", "fields"]
        done = subprocess.run(words + fields, capture_output=True, text=True, check=True)
    full, ja3 = done.stdout.rstrip("\n").split("\t")
    return full, ja3


def main():
    ja4_reference.check()
    rows = []
    for name, client in clients():
        data = capture(client)
        (OUT / f"{name}.hex").write_text(data.hex() + "\n")
        full, ja3 = tshark_ja3(data)
        rows.append((name, full, ja3, ja4_reference.ja4(ja4_reference.message_of(data))))
        print(name, len(data), ja3, rows[-1][3], file=sys.stderr)
    lines = ["name\tja3_raw\tja3\tja4"] + ["\t".join(row) for row in rows]
    (OUT / "expected.tsv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
