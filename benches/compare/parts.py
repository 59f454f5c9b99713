"""What a comparison runs: packages, certificate, configurations and processes.

Every process listens on 127.0.0.1 at a free port, lives in one work directory and is ended by its
own id. Nothing here measures.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "wrk": "wrk",
    "h2load": "nghttp2-client",
    "valgrind": "valgrind",
    "openssl": "openssl",
}
TEMPLATES = {"nginx": "nginx.conf.in", "haproxy": "haproxy.cfg.in", "lockgate": "gateway.toml.in"}
PROXIES = tuple(TEMPLATES)


class Failed(Exception):
    """A part could not be set up or gave an answer that makes the figures worthless."""


def install_packages():
    # Debian keeps nginx and haproxy in /usr/sbin, which is not on every user's path.
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = sorted({p for tool, p in PACKAGES.items() if not shutil.which(tool)})
    if not missing:
        return
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    apt = sudo + ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    subprocess.run(apt + ["update"], check=True)
    subprocess.run(apt + ["install", "-y", "--no-install-recommends", *missing], check=True)


def build_lockgate():
    subprocess.run(["cargo", "build", "--release", "--locked"], cwd=ROOT, check=True)


def lockgate_binary():
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "lockgate"


def versions(proxies):
    """Name and version of every part, in the order the report prints them."""
    first = lambda *command: _output(*command).splitlines()[0].strip()
    rows = []
    if "nginx" in proxies:
        rows.append(("nginx", f"{first('nginx', '-v').split('/')[-1]}, {_nginx_tls()}"))
    if "haproxy" in proxies:
        rows.append(("HAProxy", first("haproxy", "-v").split()[2]))
    if "lockgate" in proxies:
        commit = _output("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD").strip()
        rows.append(("lockgate", f"{first(str(lockgate_binary()), '--version')} ({commit})"))
        rows.append(("rustc", first("rustc", "--version").removeprefix("rustc ")))
    rows += [
        ("wrk", first("wrk", "-v").split(" [")[0].removeprefix("wrk ")),
        ("h2load", first("h2load", "--version").split("/")[-1]),
        ("valgrind", first("valgrind", "--version").removeprefix("valgrind-")),
        ("kernel", os.uname().release),
        ("CPU", f"{_cpu_model()}, {os.cpu_count()} cores"),
    ]
    return rows


def _output(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def _nginx_tls():
    built = [line for line in _output("nginx", "-V").splitlines() if "OpenSSL" in line]
    return " ".join(built[0].split()[2:4]) if built else "TLS unknown"


def _cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


class Bench:
    """One work directory with a certificate and an origin, and the proxies started in it."""

    def __init__(self, work):
        self.work = Path(work)
        self.children = []
        self._make_certificate()
        (self.work / "large").write_bytes(b"x" * (1 << 20))
        self.origin_port = free_port()
        body = ("0123456789abcdef" * 64)[:1024]
        conf = self._fill("origin.conf.in", "origin", ORIGIN=self.origin_port, BODY=body)
        self._start(["nginx", "-c", str(conf), "-p", str(self.work)], "origin", [self.origin_port])

    def start(self, name, workers, wrapper=(), patience=20):
        """Starts a proxy; with `workers` 1 it is one process with one thread that serves."""
        ports = {"PLAIN": free_port(), "TLS": free_port()}
        master = "off" if workers == 1 else "on"
        conf = self._fill(
            TEMPLATES[name], name, ORIGIN=self.origin_port, WORKERS=workers, MASTER=master, **ports
        )
        command = {
            "nginx": ["nginx", "-c", str(conf), "-p", str(self.work)],
            "haproxy": ["haproxy", "-db", "-f", str(conf)],
            "lockgate": [str(lockgate_binary()), "run", "--config", str(conf)],
        }[name.split("-")[0]]
        child = self._start([*wrapper, *command], name, list(ports.values()), patience)
        return Proxy(name, child.pid, ports["PLAIN"], ports["TLS"])

    def stop(self, pid):
        for child in [c for c in self.children if c.pid == pid]:
            self.children.remove(child)
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                _kill_family(child.pid)
                child.wait()

    def stop_all(self):
        for child in list(self.children):
            self.stop(child.pid)

    def _make_certificate(self):
        cert, key = self.work / "site.pem", self.work / "site.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "30", "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", str(key), "-out", str(cert)],
            check=True, stderr=subprocess.DEVNULL,
        )
        (self.work / "site.both.pem").write_text(cert.read_text() + key.read_text())

    def _fill(self, template, name, **values):
        text = (HERE / template).read_text().replace("@WORK@", str(self.work))
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        path = self.work / (name + Path(template).stem[Path(template).stem.rfind("."):])
        path.write_text(text)
        return path

    def _start(self, command, name, ports, patience=20):
        log = open(self.work / f"{name}.out", "ab")
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.work
        )
        self.children.append(child)
        deadline = time.monotonic() + patience
        while not all(_answers(port) for port in ports):
            if child.poll() is not None or time.monotonic() > deadline:
                said = (self.work / f"{name}.out").read_text(errors="replace")[-2000:]
                raise Failed(f"{name} did not start:\n{said}")
            time.sleep(0.05)
        return child


class Proxy:
    """A running proxy: where it listens and what it has spent."""

    def __init__(self, name, pid, plain, tls):
        self.name, self.pid = name, pid
        self._ports = {"http": plain, "https": tls}

    def url(self, scheme, path):
        return f"{scheme}://127.0.0.1:{self._ports[scheme]}{path}"

    def tls_address(self):
        return f"127.0.0.1:{self._ports['https']}"

    def cpu_seconds(self):
        """User and system time of all its processes, those that ended included."""
        return sum(_cpu_ticks(pid) for pid in family(self.pid)) / os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def family(pid):
    """A process and all its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [pid, *(p for child in children for p in family(int(child)))]


def _cpu_ticks(pid):
    # proc(5): the command may hold spaces, so fields are counted after its closing bracket;
    # utime, stime, cutime and cstime are fields 14 to 17.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(f) for f in fields[11:15])


def _answers(port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _kill_family(pid):
    for member in family(pid):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            pass
