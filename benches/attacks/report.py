"""Writes the report from the runs that were kept."""

import json

import defences
import flood
from rows import FLEET, GOALS, ROWS

PATHS = {"login": "login", "account": "login", "pages": "product", "invite": "invite", "retry": "api"}
LATE = 0.25             # seconds; more means that the clients could not keep up


def load(path):
    """The last run of each row, defence and seed."""
    if not path.exists():
        return []
    runs = {}
    for text in path.read_text().splitlines():
        run = json.loads(text)
        runs[run["row"], run["defence"], run["seed"]] = run
    return list(runs.values())


class Figures:
    """The figures of one run, in per cent."""

    def __init__(self, run):
        row = ROWS_BY_NAME[run["row"]]
        honest, attack, origin = run["honest"], run["attack"], run["origin"]
        self.sent, self.reached = attack["sent"], origin.get(f"origin attack {PATHS[row.kind]}", 0)
        self.leak = 100 * self.reached / self.sent if self.sent else None
        self.users, self.harmed_users = honest["users"], honest["harmed"]
        self.harmed = 100 * honest["harmed"] / max(1, honest["users"])
        self.challenged = 100 * honest["challenged"] / max(1, honest["users"])
        self.by_kind = honest["by_kind"]
        self.acts_after = attack["acts_after"]
        self.solved, self.solver_seconds = attack["solved"], attack["solver_seconds"]
        self.pairs = origin.get("pairs attack", 0)
        self.asked = origin.get("second factor attack", 0)
        self.late = max(honest["late_p99"], attack["late_p99"])
        self.errors = honest["failed"] + attack["failed"]


ROWS_BY_NAME = {row.name: row for row in ROWS + FLEET}


def line(run):
    """One run on one line."""
    figures = Figures(run)
    return (f"{run['row']:4} {run['defence']:9} seed {run['seed']}: leak {percent(figures.leak)} % ({figures.reached} of {figures.sent}), "
            f"harmed {percent(figures.harmed)} % ({figures.harmed_users} of {figures.users} {figures.by_kind or ''}), "
            f"challenged {figures.challenged:.1f} %, acts after {seconds(figures.acts_after)}, pairs {figures.pairs} ({figures.asked} asked), "
            f"solved {figures.solved}, late {figures.late:.2f} s, errors {figures.errors}")


def percent(value):
    if value is None:
        return "–"
    return f"{value:.2f}" if value < 10 else f"{value:.0f}"


def seconds(value):
    if value is None:
        return "–"
    return f"{value:.1f} s" if value < 100 else f"{value / 60:.1f} min"


def written(runs):
    runs_of = {}
    for run in runs:
        runs_of.setdefault((run["row"], run["defence"]), []).append(run)
    table = [run for run in runs if run["row"] in ROWS_BY_NAME]
    lines = ["# Attacks", "", "Written by `benches/attacks/run`; [README.md](README.md) says what is measured.", ""]
    lines += overview(runs_of) + fleet(runs_of)
    for run in runs_of.get(("flood", "preset"), []):
        lines += flood.section(run)
    lines += details(runs_of) + notes(table)
    if runs:
        lines += ["## Versions", "", "| part | version |", "| --- | --- |"]
        lines += [f"| {name} | {version} |" for name, version in versions(runs)]
    return "\n".join(lines) + "\n"


def versions(runs):
    """The versions of each part, in the order of the runs."""
    parts = {}
    for run in runs:
        for name, version in run["versions"]:
            parts.setdefault(name, {})[version] = None
    return [(name, ", ".join(found)) for name, found in parts.items()]


def overview(runs_of):
    lines = ["## Leak and harmed users", "",
             "Each cell: the share of the attack that reached the origin server / the share of honest users that were refused, deceived",
             "or could not solve, in per cent; with several seeds, the worst of each. **Missed** goals are marked. The last column has the",
             "figures of the design's simulation, presets; strict.", "",
             "| attack | " + " | ".join(defences.TITLES.values()) + " | goal | simulated |", "| --- " * (len(defences.TITLES) + 3) + "|"]
    for row in ROWS:
        cells = [cell(row, defence, runs_of.get((row.name, defence), [])) for defence in defences.TITLES]
        if any(each != "" for each in cells):
            lines.append(f"| {row.name} {row.title} | " + " | ".join(cells) + f" | {goal(row)} | {row.design} |")
    return lines + [""]


def fleet(runs_of):
    shown = [(row, defence) for row in FLEET for defence in defences.TITLES if (row.name, defence) in runs_of]
    if not shown:
        return []
    lines = ["## Two gateways and a store outage", "",
             "Each client uses one of two gateways that share Redis. Redis stops in the middle of the attack and comes back empty;",
             "both gateways reload before and after that.", "",
             "| attack | defence | leak / harmed, worst of the seeds | goal |", "| --- | --- | --- | --- |"]
    for row, defence in shown:
        lines.append(f"| {row.title} | {defences.TITLES[defence]} | {cell(row, defence, runs_of[row.name, defence])} | {goal(row)} |")
    return lines + [""]


def cell(row, defence, runs):
    if not runs:
        return ""
    figures = [Figures(run) for run in runs]
    worst = lambda values: max((value for value in values if value is not None), default=None)
    leak, harmed, challenged = (worst(getattr(each, name) for each in figures) for name in ("leak", "harmed", "challenged"))
    text = f"{percent(leak)} / {percent(harmed)}"
    limits = GOALS[row.goal].get(defence)
    over = lambda value, limit: limit is not None and value is not None and value > limit
    if limits and any(map(over, (leak, harmed, challenged), limits)):
        text += " **missed**"
    return text


def goal(row):
    limits = GOALS[row.goal]
    shown = [f"{'strict: ' if name == 'strict' and limits.get('preset') != bounds else ''}{bounds_text(bounds)}"
             for name, bounds in limits.items() if name == "preset" or bounds != limits.get("preset")]
    return "; ".join(shown)


def bounds_text(bounds):
    leak, harmed, challenged = bounds
    text = f"{'–' if leak is None else f'≤ {leak}'} / {'–' if harmed is None else f'≤ {harmed}'}"
    return text + (f", challenged ≤ {challenged} %" if challenged is not None else "")


def details(runs_of):
    lines = ["## Every run", "",
             "Challenged: honest users that met a challenge. Acts after: from the first request of the attack to the first of twenty",
             "in a row that were stopped, in the attack's time. Pairs: valid pairs that the attacker found; those where the origin server was told to ask for",
             "a second factor. Core-seconds: the attacker's CPU time for solutions, per attempt that reached the origin server.", "",
             "| attack | defence | seed | leak | harmed | challenged | acts after | pairs, asked | solutions, core-seconds per leak |",
             "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in ROWS + FLEET:
        for defence in defences.TITLES:
            for run in sorted(runs_of.get((row.name, defence), []), key=lambda run: run["seed"]):
                lines.append(detail(row, defence, run))
    return lines + [""]


def detail(row, defence, run):
    it = Figures(run)
    kinds = "".join(f", {name} {count}" for name, count in sorted(it.by_kind.items()))
    price = f"{it.solved}, {it.solver_seconds / max(1, it.reached):.3f}" if it.solved else "–"
    late = " **late**" if it.late > LATE else ""
    return (f"| {row.name} | {defence} | {run['seed']}{late} | {percent(it.leak)} % ({it.reached:,} of {it.sent:,}) | {percent(it.harmed)} % "
            f"({it.harmed_users} of {it.users}{kinds}) | {percent(it.challenged)} % | {seconds(it.acts_after)} | {it.pairs}, {it.asked} | {price} |")


def notes(runs):
    figures = [Figures(run) for run in runs]
    lines = []
    if late := sum(each.late > LATE for each in figures):
        lines.append(f"- In {late} of {len(figures)} runs, marked **late**, one request in a hundred was sent more than {LATE} s after its time.")
    if errors := sum(each.errors for each in figures):
        lines.append(f"- {errors:,} connections failed; an honest user whose connection fails counts as harmed (`connection`).")
    return lines + [""] if lines else []
