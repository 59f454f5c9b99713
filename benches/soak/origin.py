"""An origin for the soak: small and large answers, uploads, WebSocket echoes. Takes a port.

It answers by path: /small, /large (1 MiB, chunked), /slow (after 200 ms), /login (401), /echo (the
length of the body), /socket (101, then whatever comes goes back).
"""

import asyncio
import base64
import hashlib
import sys

LARGE = b"x" * 65536
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


async def serve(reader, writer):
    try:
        while await answer(reader, writer):
            pass
    except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        pass
    finally:
        writer.close()


async def answer(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    line, *fields = head.decode("latin-1").split("\r\n")
    fields = {k.lower(): v.strip() for k, _, v in (f.partition(":") for f in fields if f)}
    path = line.split(" ")[1].split("?")[0]
    if path == "/socket":
        await socket(reader, writer, fields)
        return False
    length = await body(reader, fields)
    if path == "/slow":
        await asyncio.sleep(0.2)
    if path == "/large":
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(16):
            writer.write(b"%x\r\n%s\r\n" % (len(LARGE), LARGE))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
    else:
        status = b"401 Unauthorized" if path == "/login" else b"200 OK"
        text = b"%d" % length if path == "/echo" else b"hello"
        writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(text), text))
    await writer.drain()
    return True


async def body(reader, fields):
    if fields.get("transfer-encoding") == "chunked":
        total = 0
        while size := int((await reader.readline()).strip(), 16):
            total += len(await reader.readexactly(size + 2)) - 2
        while (await reader.readline()).strip():
            pass
        return total
    left = total = int(fields.get("content-length", 0))
    while left:
        piece = await reader.read(min(left, 65536))
        if not piece:
            raise asyncio.IncompleteReadError(b"", left)
        left -= len(piece)
    return total


async def socket(reader, writer, fields):
    accept = base64.b64encode(hashlib.sha1(fields["sec-websocket-key"].encode() + GUID).digest())
    writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                 b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
    while data := await reader.read(4096):
        writer.write(data)
        await writer.drain()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]), reuse_address=True)
    await server.serve_forever()


asyncio.run(main())
