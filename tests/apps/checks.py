"""Does what users of the applications do, through lockgate. Prints one line per check."""

import base64
import hashlib
import http.client
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

import grpc

TLS, PLAIN, ADMIN = (int(port) for port in sys.argv[1:4])
FILES = Path(sys.argv[4])
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


def main():
    failed = 0
    for function in CHECKS:
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok      {name}", flush=True)
        except Exception as error:
            failed += 1
            print(f"FAILED  {name}: {error!r}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


def request(method, host, target, body=None, headers=()):
    """Sends a request over TLS. The certificate is self-signed."""
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", TLS, timeout=30, context=context)
    connection.request(method, target, body, {"host": host, **dict(headers)})
    response = connection.getresponse()
    return response.status, response, response.read()


class Browser:
    """A session with the admin site of the Django project."""

    def __init__(self):
        self.cookies = {}

    def send(self, method, target, form=None):
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        body = None
        if form is not None:
            headers |= {"content-type": "application/x-www-form-urlencoded", "origin": "https://shop.example"}
            body = urlencode(form)
        status, response, text = request(method, "shop.example", target, body, headers)
        for line in response.headers.get_all("set-cookie") or []:
            name, _, value = line.split(";")[0].partition("=")
            self.cookies[name] = value
        return status, response, text.decode()

    def log_in(self, password):
        _, _, page = self.send("GET", "/admin/login/?next=/admin/")
        token = re.search('name="csrfmiddlewaretoken" value="([^"]+)"', page)
        form = {"csrfmiddlewaretoken": token and token[1], "username": "alice", "password": password, "next": "/admin/"}
        return self.send("POST", "/admin/login/", form)


@check
def django_is_healthy_and_its_user_logs_in():
    browser = Browser()
    status, response, text = browser.log_in("correct horse")
    assert (status, response.headers["location"]) == (302, "/admin/"), (status, text[:300])
    status, _, text = browser.send("GET", "/admin/")
    assert status == 200 and "Site administration" in text, status


@check
def failed_logins_of_django_are_stopped():
    statuses = [Browser().log_in("wrong")[0] for _ in range(6)]
    assert statuses == [200, 200, 200, 200, 429, 429], statuses
    status, _, _ = Browser().send("GET", "/admin/login/")
    assert status == 200, status


@check
def a_large_file_arrives_unchanged():
    status, response, body = request("GET", "files.example", "/large.bin")
    assert status == 200 and response.headers["content-length"] == str(len(body))
    sums = [hashlib.sha256(data).hexdigest() for data in (body, (FILES / "large.bin").read_bytes())]
    assert sums[0] == sums[1], sums
    assert request("GET", "files.example", "/none")[0] == 404


@check
def the_editor_of_node_red_loads():
    status, _, body = request("GET", "flows.example", "/")
    assert status == 200 and b"Node-RED" in body, status
    status, response, _ = request("GET", "flows.example", "/settings", headers={"accept": "application/json"})
    assert status == 200 and response.headers["content-type"].startswith("application/json"), status
    flow = b'[{"id":"1","type":"tab","label":"from the test"}]'
    headers = {"content-type": "application/json", "node-red-deployment-type": "full"}
    assert request("POST", "flows.example", "/flows", flow, headers)[0] == 204
    assert b"from the test" in request("GET", "flows.example", "/flows")[2]


@check
def the_websocket_of_node_red_opens_and_sends():
    raw = socket.create_connection(("127.0.0.1", TLS), timeout=30)
    stream = ssl._create_unverified_context().wrap_socket(raw)
    key = base64.b64encode(os.urandom(16)).decode()
    head = ["GET /comms HTTP/1.1", "host: flows.example", "connection: Upgrade", "upgrade: websocket"]
    head += ["sec-websocket-version: 13", f"sec-websocket-key: {key}", "", ""]
    stream.sendall("\r\n".join(head).encode())
    received = stream.recv(4096)
    assert received.startswith(b"HTTP/1.1 101"), received
    subscribe = b'{"subscribe":"notification/#"}'
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(subscribe))
    stream.sendall(bytes([0x81, 0x80 | len(subscribe)]) + mask + masked)
    data = received.partition(b"\r\n\r\n")[2]
    while len(data) < 2:
        data += stream.recv(4096)
    assert data[0] == 0x81, data
    stream.close()


@check
def events_arrive_when_they_are_sent():
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", TLS, timeout=30, context=context)
    connection.request("GET", "/", headers={"host": "events.example"})
    response = connection.getresponse()
    delays = []
    for line in response:
        if line.startswith(b"data: "):
            delays.append(time.time() - float(line[6:]))
    # Buffered until the end, the first one would be more than a second late.
    assert len(delays) == 5 and max(delays) < 1, delays


def echo(channel, method):
    return channel.unary_unary(f"/echo.Echo/{method}")


@check
def grpc_calls_and_streams_pass():
    with grpc.insecure_channel(f"127.0.0.1:{PLAIN}") as channel:
        assert echo(channel, "Call")(b"x" * 100_000, timeout=30) == b"x" * 100_000
        messages = [str(number).encode() for number in range(200)]
        stream = channel.stream_stream("/echo.Echo/Stream")
        assert list(stream(iter(messages), timeout=30)) == messages


@check
def a_refused_grpc_call_has_the_status_resource_exhausted():
    with grpc.insecure_channel(f"127.0.0.1:{PLAIN}") as channel:
        codes = []
        for _ in range(3):
            try:
                echo(channel, "Limited")(b"x", timeout=30)
                codes.append(grpc.StatusCode.OK)
            except grpc.RpcError as error:
                codes.append(error.code())
    assert codes == [grpc.StatusCode.OK] * 2 + [grpc.StatusCode.RESOURCE_EXHAUSTED], codes


@check
def every_application_passes_its_health_checks():
    # Three failed checks, one per second, make a server unhealthy.
    time.sleep(4)
    upstreams = json.load(urllib.request.urlopen(f"http://127.0.0.1:{ADMIN}/api/upstreams", timeout=10))
    health = {upstream["name"]: [server["health"] for server in upstream["servers"]] for upstream in upstreams}
    assert set(map(tuple, health.values())) == {("healthy",)}, health


main()
