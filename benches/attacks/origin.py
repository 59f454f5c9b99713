#!/usr/bin/env python3
"""The origin server: login, account, product pages, static files, invitations, an API.

    origin.py PORT STALE_PORT LATENCY_MS

It counts what reaches it by the header `x-bench` ("attack", "own", or absent: an honest client). `GET /stats` returns
the counts. Static files take no time, everything else takes LATENCY_MS. The second port is the "stale copy" to which a
rule may divert.
"""

import asyncio
import collections
import json
import sys

BODY = b"x" * 600
STATS = collections.Counter()


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request at a time, as proxies send it."""

    def __init__(self, label, latency):
        self.label, self.latency, self.buffer = label, latency, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            lines = self.buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body = self.buffer[end + 4:end + 4 + length].decode("latin-1")
            self.buffer = self.buffer[end + 4 + length:]
            method, target, _ = lines[0].split(" ")
            self.respond(method, target, headers, body)

    def respond(self, method, target, headers, body):
        status, extra, content = self.handle(method, target, headers, body)
        head = (f"HTTP/1.1 {status} x\r\ncontent-length: {len(content)}\r\ncontent-type: text/html\r\n"
                f"x-origin: {self.label}\r\n{extra}\r\n").encode()
        wait = 0 if target.startswith("/static/") or target == "/stats" else self.latency
        if wait:
            asyncio.get_running_loop().call_later(wait, self.write, head + content)
        else:
            self.write(head + content)

    def write(self, response):
        if not self.transport.is_closing():
            self.transport.write(response)

    def handle(self, method, target, headers, body):
        path = target.partition("?")[0]
        if path == "/stats":
            return 200, "", json.dumps(STATS).encode()
        sender = headers.get("x-bench", "honest")
        kind = path.split("/")[1] or "root"
        if not (kind == "login" and method == "GET"):
            STATS[f"{self.label} {sender} {kind}"] += 1
        if kind == "login" and method == "POST":
            return self.log_in(sender, headers, body)
        return (201 if kind == "register" else 200), "", BODY

    def log_in(self, sender, headers, body):
        """302 for the right pair, 401 for a wrong one. The password of `u1` is `pw-u1`."""
        fields = dict(pair.partition("=")[::2] for pair in body.split("&"))
        user = fields.get("user", "")
        if fields.get("password") != f"pw-{user}":
            return 401, "", BODY
        STATS[f"pairs {sender}"] += 1
        if "x-lockgate-challenge" in headers:
            STATS[f"second factor {sender}"] += 1
        return 302, f"location: /account\r\nset-cookie: session={user}; Path=/\r\n", b""


async def main(port, stale, latency):
    loop = asyncio.get_running_loop()
    servers = [await loop.create_server(lambda label=label: Connection(label, latency / 1000), "127.0.0.1", number, backlog=4096)
               for label, number in (("origin", port), ("stale", stale))]
    await asyncio.gather(*(server.serve_forever() for server in servers))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:4])))
