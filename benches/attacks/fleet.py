"""Attack 2 on two gateways that share Redis, with an outage of Redis in the middle of the attack."""

import json
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
        for number, each in enumerate(gateways):
            machine.start_proxy(defence, row, each, store, f"gateway-{number}")

        def outage(start):
            """Redis is gone from the middle of the attack, for a sixth of it. It comes back empty."""
            time.sleep(max(0, start + (row.lead + row.span / 2) / row.speed - time.time()))
            machine.stop(server)
            time.sleep(row.span / 6 / row.speed)
            machine.start(redis, "redis", [ports["REDIS"]])

        found = machine.drive(row, seed, [each["TLS"] for each in gateways], outage)
        return found | {"origin": origin_stats(ports["ORIGIN"])}
    finally:
        machine.stop_all()
