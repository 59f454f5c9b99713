"""A flood of wrong solutions, interleaved with quiet: how long do honest requests take?"""

import json
import statistics
import subprocess
import sys
import time

import parts
import report
from bench import HEAD_START, HERE, PYTHON, SOLVER, versions
from rows import ROWS

PHASES = ("quiet", "invalid tokens", "wrong solutions")
SECONDS = 3
PER_SECOND = 500
GOAL = 1.2


def measure(machine, args):
    row = next(row for row in ROWS if row.name == "12")
    rounds = 3 if args.quick else 15
    ports = {name: parts.free_port() for name in ("ORIGIN", "STALE", "TLS")}
    try:
        machine.start_origin(ports, 0)
        machine.start_proxy("challenge", row, ports)
        settings = {"port": ports["TLS"], "certificate": str(machine.work / "site.pem"), "solver": str(SOLVER), "phases": PHASES,
                    "seconds": SECONDS, "rounds": rounds, "per_second": PER_SECOND, "start": time.time() + HEAD_START}
        sides = [subprocess.Popen([str(PYTHON), str(HERE / "flood_driver.py"), side, json.dumps(settings)], stdout=subprocess.PIPE, text=True)
                 for side in ("honest", "flood")]
        machine.children += sides
        honest, flood = (json.loads(side.communicate()[0]) for side in sides)
    finally:
        machine.stop_all()
    kept = {"row": "flood", "defence": "preset", "seed": 0, "honest": honest, "flood": flood, "versions": versions(machine.binary)}
    with open(args.results, "a") as file:
        file.write(json.dumps(kept) + "\n")
    print("\n".join(section(kept)), file=sys.stderr)


def section(kept):
    honest, flood = kept["honest"], kept["flood"]
    lines = ["## A flood of wrong solutions", "",
             f"{len(honest['quiet'])} interleaved rounds of {SECONDS} s each. The attacker sends {PER_SECOND:,} solutions a second over 16 connections: with tokens",
             "that fail the first check, or valid ones with seven right parts and one wrong, the most expensive to verify. Twenty honest",
             "clients load a file. Figures are medians of the rounds; a ratio is the median of the rounds' ratios. Invalid tokens show what the",
             "load itself costs on this machine.", "",
             "| phase | p50 | p99 | p99 to quiet | p99 to invalid tokens | responses to the flood |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for phase, rounds in honest.items():
        ratio, to_load = (statistics.median(one[1] / other[1] for one, other in zip(rounds, honest[base])) for base in PHASES[:2])
        missed = " **missed**" if phase == PHASES[-1] and ratio > GOAL else ""
        counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(flood.get(phase, {}).items())) or "–"
        p50, p99 = (statistics.median(values) * 1_000 for values in zip(*rounds))
        lines.append(f"| {phase} | {p50:.1f} ms | {p99:.1f} ms | {ratio:.2f}{missed} | {to_load:.2f} | {counts} |")
    return lines + ["", f"The goal is {GOAL} for wrong solutions, compared with quiet.", ""]
