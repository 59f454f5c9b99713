"""The clients of the soak: honest ones, slow ones, rude ones. Each is an endless task.

Honest clients note each status with the time at which it came; the others only make trouble.
"""

import asyncio
import base64
import os
import random
import ssl
import time

SLOW = 20


class Traffic:
    """All clients, and what the honest ones got."""

    def __init__(self, plain, tls):
        self.plain, self.tls = plain, tls
        # Times of server errors, counts of everything, and what broke.
        self.faults, self.statuses, self.errors = [], {}, []
        self.context = ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def clients(self):
        yield from (self.keeps(self.plain, None) for _ in range(8))
        yield from (self.keeps(self.tls, self.context) for _ in range(8))
        yield from (self.comes_and_goes() for _ in range(4))
        yield from (self.uploads() for _ in range(2))
        yield from (self.downloads() for _ in range(2))
        yield from (self.talks() for _ in range(4))
        yield from (self.guesses() for _ in range(2))
        yield from (self.crowds() for _ in range(8))
        yield from (self.leaves() for _ in range(2))
        yield from (self.babbles() for _ in range(2))
        for kind in (self.slow_head, self.slow_body, self.slow_reader, self.slow_hello, self.idle):
            yield from (self.again(kind) for _ in range(SLOW))

    # Honest.

    async def keeps(self, port, context):
        """Many requests over one connection, each from another address of a few thousand."""
        while True:
            try:
                reader, writer = await self.open(port, context)
                for _ in range(random.randint(50, 500)):
                    await self.ask(reader, writer, f"/small?{random.random()}", client())
                    await asyncio.sleep(random.uniform(0, 0.3))
                writer.close()
            except OSErrors as error:
                self.failed("keeps", error)
                await asyncio.sleep(1)

    async def comes_and_goes(self):
        """A handshake for each request."""
        while True:
            try:
                reader, writer = await self.open(self.tls, self.context)
                await self.ask(reader, writer, "/small", client())
                writer.close()
            except OSErrors as error:
                self.failed("comes and goes", error)
            await asyncio.sleep(random.uniform(0, 0.4))

    async def uploads(self):
        while True:
            try:
                reader, writer = await self.open(self.tls, self.context)
                body = b"10000\r\n" + b"y" * 65536 + b"\r\n"
                await self.ask(reader, writer, "/echo", client(), method="POST",
                               fields="transfer-encoding: chunked\r\n", body=body * 16 + b"0\r\n\r\n")
                writer.close()
            except OSErrors as error:
                self.failed("uploads", error)
            await asyncio.sleep(random.uniform(0.5, 2))

    async def downloads(self):
        while True:
            try:
                reader, writer = await self.open(self.plain, None)
                await self.ask(reader, writer, "/large", client())
                writer.close()
            except OSErrors as error:
                self.failed("downloads", error)
            await asyncio.sleep(random.uniform(0.5, 2))

    async def talks(self):
        """A WebSocket, for a while."""
        while True:
            try:
                reader, writer = await self.open(self.plain, None)
                key = base64.b64encode(os.urandom(16)).decode()
                writer.write(f"GET /socket HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
                             f"sec-websocket-key: {key}\r\nsec-websocket-version: 13\r\n\r\n".encode())
                status = int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1])
                self.note(status)
                for _ in range(random.randint(1, 20) if status == 101 else 0):
                    writer.write(b"ping")
                    await reader.readexactly(4)
                    await asyncio.sleep(random.uniform(0, 1))
                writer.close()
            except OSErrors as error:
                self.failed("talks", error)
                await asyncio.sleep(1)

    async def guesses(self):
        """Passwords: 401 a few times, then the shadow's 200."""
        while True:
            try:
                reader, writer = await self.open(self.tls, self.context)
                user = f"x-user: {random.randint(0, 10**6)}\r\n"
                for _ in range(8):
                    await self.ask(reader, writer, "/login", client(), method="POST",
                                   fields=user + "content-length: 4\r\n", body=b"pass")
                writer.close()
            except OSErrors as error:
                self.failed("guesses", error)
            await asyncio.sleep(random.uniform(0, 1))

    async def crowds(self):
        """More at once from one address than are let in."""
        while True:
            try:
                reader, writer = await self.open(self.plain, None)
                await self.ask(reader, writer, "/slow", "10.1.1.1")
                writer.close()
            except OSErrors as error:
                self.failed("crowds", error)
            await asyncio.sleep(random.uniform(0, 1))

    # Rude.

    async def leaves(self):
        """Gone before the answer has come, or in its midst."""
        while True:
            try:
                reader, writer = await self.open(self.plain, None)
                path = random.choice(["/slow", "/large", "/small"])
                writer.write(f"GET {path} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
                await asyncio.sleep(random.uniform(0, 0.3))
                writer.transport.abort()
            except OSErrors:
                pass
            await asyncio.sleep(random.uniform(0, 0.5))

    async def babbles(self):
        """What is not HTTP."""
        while True:
            try:
                port = random.choice([self.plain, self.tls])
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(random.choice([
                    os.urandom(200), b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
                    b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + os.urandom(100)]))
                await asyncio.wait_for(reader.read(-1), 30)
                writer.close()
            except OSErrors:
                pass
            await asyncio.sleep(random.uniform(0, 1))

    # Slow.

    async def again(self, kind):
        await asyncio.sleep(random.uniform(0, 20))
        while True:
            try:
                await kind()
            except OSErrors:
                pass
            await asyncio.sleep(random.uniform(0, 5))

    async def slow_head(self):
        await self.dribble(b"GET /small HTTP/1.1\r\nhost: a\r\nx-slow: ", 1)

    async def slow_body(self):
        await self.dribble(b"POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 9999\r\n\r\n", 2)

    async def slow_hello(self):
        await self.dribble(b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03", 1, self.tls)

    async def dribble(self, start, pause, port=None):
        reader, writer = await asyncio.open_connection("127.0.0.1", port or self.plain)
        writer.write(start)
        while not reader.at_eof():
            writer.write(b"a")
            try:
                await asyncio.wait_for(reader.read(1024), pause)
            except asyncio.TimeoutError:
                pass
        writer.close()

    async def slow_reader(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.plain, limit=16)
        writer.write(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        while await reader.read(1):
            await asyncio.sleep(2)
        writer.close()

    async def idle(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.plain)
        await reader.read(1)
        writer.close()

    # What all need.

    async def open(self, port, context):
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**17), 30)

    async def ask(self, reader, writer, path, source, method="GET", fields="", body=b""):
        writer.write(f"{method} {path} HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {source}\r\n{fields}\r\n".encode() + body)
        status = await asyncio.wait_for(answer(reader), 60)
        self.note(status)

    def note(self, status):
        if status >= 500:
            self.faults.append(time.monotonic())
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def failed(self, who, error):
        self.errors.append((time.monotonic(), f"{who}: {type(error).__name__} {error}"))


OSErrors = (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, asyncio.LimitOverrunError, ValueError)


def client():
    """One of many addresses, most of them from a small part."""
    few = random.random() < 0.5
    return f"10.0.{random.randint(0, 3 if few else 255)}.{random.randint(1, 250)}"


async def answer(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").lower().split("\r\n")
    fields = dict(f.split(": ", 1) for f in fields if f)
    if fields.get("transfer-encoding") == "chunked":
        while size := int(await reader.readline(), 16):
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(fields.get("content-length", 0)))
    return int(line.split(" ")[1])
