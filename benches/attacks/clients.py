"""HTTP clients with real TLS fingerprints and a source address of their own.

A `Browser` is libcurl with the TLS library and the fingerprint of a browser (curl_cffi), over HTTP/2. A `Tool` is the
TLS of this Python with OpenSSL, over HTTP/1.1, as a script sends it. Both keep their connection and their cookies.
"""

import asyncio
import ssl
from io import BytesIO

from curl_cffi import AsyncCurl, Curl, CurlError, CurlMOpt, CurlOpt

HOST = "shop.example"
TIMEOUT = 30
SHARDS = 16


class Response:
    """Status 0 is a failed connection."""

    def __init__(self, status, head=b"", body=b""):
        self.status, self.body = status, body
        self.headers = {}
        for line in head.split(b"\r\n")[1:]:
            name, colon, value = line.partition(b":")
            if colon:
                self.headers.setdefault(name.decode().lower(), []).append(value.strip().decode("latin-1"))

    def header(self, name):
        return self.headers.get(name, [""])[0]

    @property
    def reached(self):
        """The origin server sent it, and not its stale copy."""
        return self.header("x-origin") == "origin"

    @property
    def challenged(self):
        return self.status == 429 and self.header("x-lockgate-challenge") == "required"


class Jar(dict):
    """Cookies of one site, all with the path `/`."""

    def store(self, response):
        for line in response.headers.get("set-cookie", []):
            name, _, value = line.partition(";")[0].partition("=")
            self[name.strip()] = value.strip()

    def header(self):
        return "; ".join(f"{name}={value}" for name, value in self.items())


class Network:
    """The connections of one process, to one port."""

    def __init__(self, port, certificate):
        self.port, self.certificate = port, certificate
        self.multis = [AsyncCurl(cacert=certificate) for _ in range(SHARDS)]
        for multi in self.multis:
            multi.setopt(CurlMOpt.MAXCONNECTS, 4000)
        self.tls = ssl.create_default_context(cafile=certificate)
        self.tls.set_alpn_protocols(["http/1.1"])
        self.opened = 0

    def multi(self):
        self.opened += 1
        return self.multis[self.opened % SHARDS]


class Browser:
    def __init__(self, network, address, fingerprint, port=None):
        self.network, self.address, self.fingerprint, self.port = network, address, fingerprint, port
        self.jar, self.curl = Jar(), None

    def open(self):
        self.multi = self.network.multi()
        self.curl = curl = Curl(cacert=self.network.certificate)
        curl.impersonate(self.fingerprint.target)
        if self.fingerprint.ciphers:
            curl.setopt(CurlOpt.SSL_CIPHER_LIST, self.fingerprint.ciphers)
        curl.setopt(CurlOpt.INTERFACE, f"host!{self.address}")
        self.origin = f"https://{HOST}:{self.port or self.network.port}"
        curl.setopt(CurlOpt.RESOLVE, [f"{self.origin.removeprefix('https://')}:127.0.0.1"])
        curl.setopt(CurlOpt.TIMEOUT, TIMEOUT)
        # libcurl would resume the session of another client, and a resumption has another fingerprint.
        curl.setopt(CurlOpt.SSL_SESSIONID_CACHE, 0)
        # libcurl shares connections between handles with equal settings. A path of its own, which is never read,
        # keeps the clients of an office apart.
        curl.setopt(CurlOpt.CAPATH, f"/nonexistent/{self.network.opened}")

    async def request(self, method, path, body=None, headers=()):
        if self.curl is None:
            self.open()
        curl, head, content = self.curl, BytesIO(), BytesIO()
        curl.setopt(CurlOpt.URL, self.origin + path)
        if body is not None:
            curl.setopt(CurlOpt.POSTFIELDS, body.encode())
        else:
            curl.setopt(CurlOpt.HTTPGET, 1)
        if body is not None and not any(line.startswith("sec-fetch-site") for line in headers):
            # The form of a page of the site.
            headers = [*headers, "sec-fetch-site: same-origin", f"origin: {self.origin}"]
        curl.setopt(CurlOpt.HTTPHEADER, [line.encode() for line in headers])
        curl.setopt(CurlOpt.COOKIE, self.jar.header())
        curl.setopt(CurlOpt.HEADERDATA, head)
        curl.setopt(CurlOpt.WRITEDATA, content)
        try:
            await self.multi.add_handle(curl)
        except CurlError as error:
            self.close()
            return failed(error)
        curl.clean_handles_and_buffers(clear_headers=True, clear_resolve=False)
        response = parse(head.getvalue(), content.getvalue())
        self.jar.store(response)
        return response

    def close(self):
        if self.curl is not None:
            self.curl.close()
            self.curl = None


class Tool:
    def __init__(self, network, address, port=None):
        self.network, self.address, self.jar, self.port = network, address, Jar(), port
        self.reader = self.writer = None

    async def request(self, method, path, body=None, headers=()):
        try:
            return await asyncio.wait_for(self.exchange(method, path, body, headers), TIMEOUT)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, ValueError) as error:
            self.close()
            return failed(error)

    async def exchange(self, method, path, body, headers):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(
                "127.0.0.1", self.port or self.network.port, ssl=self.network.tls, server_hostname=HOST, local_addr=(self.address, 0))
        lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{self.port or self.network.port}", "User-Agent: python-requests/2.32.5", "Accept: */*", *headers]
        if self.jar:
            lines.append(f"Cookie: {self.jar.header()}")
        if body is not None:
            if not any(line.lower().startswith("content-type") for line in headers):
                lines.append("Content-Type: application/x-www-form-urlencoded")
            lines.append(f"Content-Length: {len(body)}")
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n" + (body or "")).encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        response = parse(head, b"")
        response.body = await self.read_body(response)
        if response.header("connection").lower() == "close":
            self.close()
        self.jar.store(response)
        return response

    async def read_body(self, response):
        if response.status in (204, 304):
            return b""
        if "chunked" not in response.header("transfer-encoding"):
            return await self.reader.readexactly(int(response.header("content-length") or 0))
        body = b""
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            body += await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readuntil(b"\r\n")
        return body

    def close(self):
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None


def parse(head, body):
    """The last head: libcurl passes on those of 1xx responses too."""
    last = head.strip(b"\r\n").split(b"\r\n\r\n")[-1]
    status = last.split(b" ", 2)[1:2]
    return Response(int(status[0]) if status else 0, last, body)


ERRORS = []


def failed(error):
    ERRORS.append(f"{type(error).__name__}: {error}"[:120])
    return Response(0)
