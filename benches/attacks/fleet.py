"""Attack 2 on two gateways that share Redis, with reloads and an outage of Redis during the attack."""

import json
import signal
import sys
import time

import parts
import report
from bench import origin_stats, versions
from rows import FLEET, smaller

STORE = """
[store]
kind = "redis"
[store.redis]
url = "redis://127.0.0.1:{port}"
mode = "{mode}"
"""


def measure(machine, args):
    for row in map(smaller, FLEET) if args.quick else FLEET:
        for defence in args.defences:
            if defence in ("nginx", "haproxy"):
                continue
            for seed in args.seeds:
                found = run(machine, row, defence, seed)
                kept = {"row": row.name, "defence": defence, "seed": seed, **found, "versions": versions(machine.binary)}
                with open(args.results, "a") as file:
                    file.write(json.dumps(kept) + "\n")
                print(report.line(kept), file=sys.stderr, flush=True)


def run(machine, row, defence, seed):
    ports = {name: parts.free_port() for name in ("ORIGIN", "STALE", "REDIS")}
    redis = ["redis-server", "--port", str(ports["REDIS"]), "--bind", "127.0.0.1", "--save", ""]
    store = STORE.format(port=ports["REDIS"], mode=row.name.split()[1])
    gateways = [ports | {"TLS": parts.free_port()} for _ in range(2)]
    try:
        machine.start_origin(ports, row.latency)
        server = machine.start(redis, "redis", [ports["REDIS"]])
        proxies = [machine.start_proxy(defence, row, each, store, f"gateway-{number}") for number, each in enumerate(gateways)]

        def faults(start):
            """Reloads after a sixth and five sixths of the attack. In between, Redis is gone for a sixth and comes back empty."""
            wait_for = lambda part: time.sleep(max(0, start + (row.lead + row.span * part) / row.speed - time.time()))
            wait_for(1 / 6)
            reload(proxies)
            wait_for(1 / 2)
            machine.stop(server)
            wait_for(2 / 3)
            machine.start(redis, "redis", [ports["REDIS"]])
            wait_for(5 / 6)
            reload(proxies)

        found = machine.drive(row, seed, [each["TLS"] for each in gateways], faults)
        return found | {"origin": origin_stats(ports["ORIGIN"])}
    finally:
        machine.stop_all()


def reload(proxies):
    for proxy in proxies:
        proxy.send_signal(signal.SIGHUP)
