"""Load on one proxy: the cases, and the proxy's own CPU time a request in each.

A case that meets any answer but 200 fails the run: a refused request is cheap and would flatter.
"""

import re
import subprocess
import time

from parts import Failed

PATH = "/api/items?page=1"
LARGE = "/api/large"
HEADERS = {
    "user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "accept": "application/json",
    "cookie": "theme=dark; session=5f2b8c1e9a7d4036",
}
# wrk offers OpenSSL's default order, which starts with this suite; h2load is held to the same.
SUITE = "TLS_AES_256_GCM_SHA384"

# Name in the report, then how it is run.
CASES = {
    "plain": "plain h1, 64 connections",
    "tls-h1": "TLS 1.3 h1, 64",
    "tls-h2": "TLS h2, 8 × 32 streams",
    "handshake": "full handshake + 1 request",
    "large": "1 MiB over TLS",
}


def cpu_micros(proxy, case, seconds):
    """CPU time of the proxy in µs a request, over `seconds` of load."""
    before = proxy.cpu_seconds()
    requests = RUN[case](proxy, seconds)
    spent = proxy.cpu_seconds() - before
    if requests == 0:
        raise Failed(f"{proxy.name}, {case}: no request was answered")
    return spent * 1e6 / requests


def wrk(proxy, scheme, path, seconds, connections=64):
    command = ["wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s"]
    out = _run([*command, *_headers(), proxy.url(scheme, path)])
    if "Non-2xx" in out or "Socket errors" in out:
        raise Failed(f"{proxy.name}: wrk met something else than 200:\n{out}")
    return int(re.search(r"(\d+) requests in", out).group(1))


def h2load(proxy, scheme, *options):
    command = ["h2load", "-t", "1", "--tls13-ciphers", SUITE, *options]
    out = _run([*command, *_headers(), proxy.url(scheme, PATH)])
    done = re.search(r"requests: .* (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) err", out)
    good = re.search(r"status codes: (\d+) 2xx, 0 3xx, 0 4xx, 0 5xx", out)
    if not done or not good or done.group(3) != "0" or done.group(4) != "0":
        raise Failed(f"{proxy.name}: h2load met something else than 200:\n{out}")
    return int(done.group(2))


def handshakes(proxy, seconds):
    """Connections that each make one full handshake and one request: h2load never resumes."""
    deadline, total = time.monotonic() + seconds, 0
    while time.monotonic() < deadline:
        total += h2load(proxy, "https", "--h1", "-c", "100", "-n", "100")
    return total


RUN = {
    "plain": lambda proxy, s: wrk(proxy, "http", PATH, s),
    "tls-h1": lambda proxy, s: wrk(proxy, "https", PATH, s),
    "tls-h2": lambda proxy, s: h2load(proxy, "https", "-c", "8", "-m", "32", "-D", f"{s}s"),
    "handshake": handshakes,
    "large": lambda proxy, s: wrk(proxy, "https", LARGE, s, connections=16),
}


def _headers():
    return [part for name, value in HEADERS.items() for part in ("-H", f"{name}: {value}")]


def _run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"{command[0]} failed:\n{done.stdout}")
    return done.stdout
