"""What a run needs: packages, curl_cffi, certificate, solver, origin server, proxies and the two drivers."""

import json
import os
import re
import resource
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))

import parts
import defences
import known

TARGET = Path(os.environ.get("CARGO_TARGET_DIR", parts.ROOT / "target"))
VENV = TARGET / "attacks-venv"
CURL_CFFI = "curl_cffi==0.16.3"
PYTHON = VENV / "bin" / "python"
SOLVER = TARGET / "attacks-solve"
# Before the first request: the drivers load and plan.
HEAD_START = 3


def prepare(binary):
    known.check()
    parts.PACKAGES = {tool: tool for tool in ("nginx", "haproxy", "openssl", "gcc")} | {"redis-server": "redis-server"}
    parts.install_packages()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
    subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", CURL_CFFI], check=True)
    subprocess.run(["gcc", "-O3", "-march=native", "-o", str(SOLVER), str(HERE / "solve.c")], check=True)
    if binary is None:
        parts.build_lockgate()
    return Path(binary or parts.lockgate_binary()).resolve()


class Bench:
    """A work directory with a certificate and a secret, and the processes that run in it."""

    def __init__(self, work, binary):
        self.work, self.binary, self.children = Path(work), binary, []
        self.secret = secrets.token_bytes(32)
        (self.work / "secret").write_text(self.secret.hex() + "\n")
        (self.work / "secret").chmod(0o600)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
             "-subj", "/CN=shop.example", "-addext", "subjectAltName=DNS:shop.example",
             "-keyout", str(self.work / "site.key"), "-out", str(self.work / "site.pem")],
            check=True, stderr=subprocess.DEVNULL)
        (self.work / "site.both.pem").write_text((self.work / "site.pem").read_text() + (self.work / "site.key").read_text())

    def run(self, row, defence, seed):
        """One row against one defence: what the drivers and the origin server counted."""
        ports = {name: parts.free_port() for name in ("ORIGIN", "STALE", "TLS")}
        try:
            self.start_origin(ports, row.latency)
            self.start_proxy(defence, row, ports)
            found = self.drive(row, seed, [ports["TLS"]])
            return found | {"origin": origin_stats(ports["ORIGIN"])}
        finally:
            self.stop_all()

    def start_origin(self, ports, latency):
        command = [sys.executable, str(HERE / "origin.py"), str(ports["ORIGIN"]), str(ports["STALE"]), str(latency)]
        self.start(command, "origin", [ports["ORIGIN"]])

    def start_proxy(self, defence, row, ports, extra="", name="proxy"):
        text, command = defences.configuration(defence, row, ports, self.work)
        path = self.work / f"{name}.conf"
        path.write_text(text + extra)
        command = [part.replace("LOCKGATE", str(self.binary)).replace("{}", str(path)) for part in command]
        return self.start(command, name, [ports["TLS"]])

    def start(self, command, name, ports):
        log = open(self.work / f"{name}.out", "wb")
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.work)
        self.children.append(child)
        deadline = time.monotonic() + 20
        while not all(parts._answers(port) for port in ports):
            if child.poll() is not None or time.monotonic() > deadline:
                raise parts.Failed(f"{name} did not start:\n" + (self.work / f"{name}.out").read_text(errors="replace")[-3000:])
            time.sleep(0.05)
        return child

    def drive(self, row, seed, ports, meanwhile=None):
        settings = {"row": asdict(row), "seed": seed, "ports": ports, "certificate": str(self.work / "site.pem"),
                    "secret": self.secret.hex(), "solver": str(SOLVER), "start": time.time() + HEAD_START}
        drivers = {side: subprocess.Popen([str(PYTHON), str(HERE / "driver.py"), side, json.dumps(settings)], stdout=subprocess.PIPE, text=True)
                   for side in ("honest", "attack")}
        self.children += drivers.values()
        if meanwhile:
            meanwhile(settings["start"])
        results = {}
        for side, driver in drivers.items():
            output, _ = driver.communicate()
            self.children.remove(driver)
            if driver.returncode:
                raise parts.Failed(f"the {side} driver failed")
            results[side] = json.loads(output)
        return results

    def stop(self, child):
        self.children.remove(child)
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def stop_all(self):
        for child in reversed(list(self.children)):
            self.stop(child)


def origin_stats(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as response:
        return json.load(response)


def versions(binary):
    first = lambda *command: subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout.splitlines()[0]
    commit = first("git", "-C", str(parts.ROOT), "rev-parse", "--short", "HEAD")
    return [
        ("lockgate", f"{first(str(binary), '--version')} ({commit})"),
        ("nginx", first("nginx", "-v").split("/")[-1]),
        ("HAProxy", first("haproxy", "-v").split()[2]),
        ("Redis", re.search(r"v=(\S+)", first("redis-server", "--version"))[1]),
        ("curl_cffi", CURL_CFFI.split("==")[1]),
        ("Python", sys.version.split()[0]),
        ("kernel", os.uname().release),
        ("CPU", f"{parts._cpu_model()}, {os.cpu_count()} cores"),
    ]
