"""An origin for slow clients: `/endless` never ends, anything else is answered once its body is there."""

import asyncio
import re
import socket
import sys

PIECE = b"x" * 65536


async def serve(reader, writer):
    # Else the kernel holds megabytes of each answer that nobody reads.
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: *(\d+)", head, re.I)
            await reader.readexactly(int(length.group(1)) if length else 0)
            if b" /endless " in head.split(b"\r\n", 1)[0]:
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n")
                while True:
                    writer.write(PIECE)
                    await writer.drain()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, OSError):
        pass
    finally:
        writer.close()


async def main(port):
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096, limit=65536)
    await server.serve_forever()


asyncio.run(main(int(sys.argv[1])))
