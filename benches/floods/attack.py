"""One flood against one proxy, with an honest client beside it."""

import select
import socket
import ssl
import statistics
import threading
import time
from pathlib import Path

import parts

BATCH = 64
# A flood that nobody stops ends after so many seconds.
LONGEST = 15.0
# A proxy that takes nothing for so long holds the flood up.
HELD_UP = 2.0


class Outcome:
    """What came of a flood."""

    def __init__(self, ended, frames, cpu, mib, honest):
        self.ended, self.frames, self.cpu, self.mib, self.honest = ended, frames, cpu, mib, honest


class Honest(threading.Thread):
    """Asks over a new connection again and again, and takes down how long it took."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.over, self.times, self.failures = port, threading.Event(), [], 0

    def run(self):
        while not self.over.is_set():
            begun = time.monotonic()
            try:
                ok = ask(self.port)
            except OSError:
                ok = False
            self.times.append(time.monotonic() - begun)
            self.failures += not ok
            self.over.wait(0.005)

    def result(self):
        self.over.set()
        self.join(15)
        return statistics.median(self.times) * 1e3, max(self.times) * 1e3, self.failures


class Line:
    """One connection of a flood."""

    def __init__(self, proxy, flood):
        self.flood, self.heard, self.turn, self.ended = flood, b"", 0, None
        self.goaway, self.status = None, None
        self.out = flood.opening
        self.socket = connect(proxy, flood.tls)

    def step(self):
        """Sends some more and reads what is there; true: something was sent."""
        moved = False
        if not self.out and self.turn < self.flood.turns:
            end = min(self.turn + BATCH, self.flood.turns)
            self.out = b"".join(self.flood.turn(n) for n in range(self.turn, end))
            self.turn = end
        try:
            moved = self.send()
            if self.flood.reads:
                self.read()
        except (ConnectionError, ssl.SSLError, OSError):
            self.last_words()
        return moved

    def send(self):
        if not self.out:
            return False
        try:
            sent = self.socket.send(self.out[:65536])
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False
        self.out = self.out[sent:]
        return sent > 0

    def read(self):
        try:
            got = self.socket.recv(65536)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        self.heard += got
        if not got:
            self.ended = self.said() or "closed"
        elif (said := self.said()) and said != "GOAWAY 0":
            self.ended = said

    def last_words(self):
        """What came before a reset may still be there."""
        try:
            while got := self.socket.recv(65536):
                self.heard += got
        except OSError:
            pass
        self.ended = self.said() or "closed"

    def said(self):
        """The last GOAWAY, or the last status that is an error; what was read is let go."""
        if not self.flood.tls:
            for part in self.heard.split(b"HTTP/1.1 ")[1:]:
                self.status = part[:3].decode() if part[:3] >= b"400" else None
            self.heard = self.heard[-12:]
            return self.status
        at = 0
        while len(self.heard) >= at + 9:
            end = at + 9 + int.from_bytes(self.heard[at:at + 3], "big")
            if len(self.heard) < end:
                break
            if self.heard[at + 3] == 7:
                self.goaway = f"GOAWAY {int.from_bytes(self.heard[at + 13:at + 17], 'big'):x}"
            at = end
        self.heard = self.heard[at:]
        return self.goaway


def connect(proxy, tls):
    plain = socket.create_connection(("127.0.0.1", proxy._ports["https" if tls else "http"]), 5)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        plain = context.wrap_socket(plain)
    plain.setblocking(False)
    return plain


def ask(port):
    with socket.create_connection(("127.0.0.1", port), 5) as line:
        line.settimeout(5)
        line.sendall(b"GET /api/items HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        return line.recv(65536).startswith(b"HTTP/1.1 200")


def memory(pid, which):
    """KiB of all processes of a proxy."""
    total = 0
    for member in parts.family(pid):
        status = Path(f"/proc/{member}/status").read_text()
        total += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith(which))
    return total


def run(proxy, flood):
    for _ in range(20):
        ask(proxy._ports["http"])
    cpu, before = proxy.cpu_seconds(), memory(proxy.pid, "VmRSS")
    honest = Honest(proxy._ports["http"])
    honest.start()
    lines = flow(proxy, flood)
    figures = honest.result()
    spent = proxy.cpu_seconds() - cpu
    grown = max(memory(proxy.pid, "VmHWM") - before, 0) / 1024
    for line in lines:
        line.socket.close()
    frames = sum(line.turn for line in lines)
    return Outcome(verdict(lines), frames, spent, grown, figures)


def flow(proxy, flood):
    if flood.turns == 0 and not flood.opening:
        return [gone(proxy, flood) for _ in range(flood.connections)]
    lines = []
    for _ in range(flood.connections):
        lines.append(Line(proxy, flood))
    begun = moved = time.monotonic()
    while any(not line.ended for line in lines):
        now = time.monotonic()
        if now - begun > LONGEST or now - moved > max(HELD_UP, flood.hold):
            break
        if any([line.step() for line in lines if not line.ended]):
            moved = now
        else:
            sockets = [line.socket for line in lines if not line.ended and flood.reads]
            select.select(sockets, [], [], 0.02)
    return lines


def gone(proxy, flood):
    line = Line(proxy, flood)
    line.socket.close()
    line.ended = "left"
    return line


def verdict(lines):
    """What most lines came to."""
    ends = [line.ended or ("held up" if line.out else "taken") for line in lines]
    return max(set(ends), key=ends.count)
