"""The defences: configurations of nginx, HAProxy and lockgate, with all times divided by the row's speed."""

from pathlib import Path

from population import networks

HERE = Path(__file__).resolve().parent
TITLES = {"nginx": "nginx, per address", "haproxy": "HAProxy, failures per address", "old guide": "lockgate, earlier guide",
          "preset": "lockgate, presets", "strict": "lockgate, presets with `strict`"}
BASELINES = ("nginx", "haproxy", "old guide")
UNITS = {"m": 60, "h": 3_600, "d": 86_400}


class Times:
    """Writes a time of the attack, such as `10m`, as time of the run."""

    def __init__(self, speed):
        self.speed = speed

    def milliseconds(self, text):
        return max(1, round(int(text[:-1]) * UNITS[text[-1]] * 1_000 / self.speed))

    def toml(self, text):
        return f'"{self.milliseconds(text)}ms"'


def configuration(defence, row, ports, work):
    """The text of the configuration, and the command that runs it."""
    times = Times(row.speed)
    values = {"WORK": work, **ports}
    if defence == "nginx":
        return fill("nginx.conf.in", {**values, **nginx_rates(row.speed)}), ["nginx", "-c", "{}", "-p", str(work)]
    if defence == "haproxy":
        values |= {f"T{text.upper()}": f"{times.milliseconds(text)}ms" for text in ("1m", "10m", "1h")}
        return fill("haproxy.cfg.in", values), ["haproxy", "-db", "-f", "{}"]
    text = fill("gateway.toml.in", values | {"NETWORKS": "\n".join(f'"{net}" = {{ asn = {asn} }}' for net, asn in networks().items())})
    rules = {"old guide": lambda: old_guide(times), "challenge": lambda: CHALLENGE,
             "preset": lambda: presets(row, times, False), "strict": lambda: presets(row, times, True)}[defence]()
    return text + rules.replace("@STALE@", str(ports["STALE"])), ["LOCKGATE", "run", "--config", "{}"]


def fill(template, values):
    text = (HERE / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text


def nginx_rates(speed):
    """nginx takes whole requests a minute: 10 for logins, 60 for pages and the API, 30 an hour for invitations."""
    return {"LOGINS": round(10 * speed), "PAGES": round(60 * speed), "INVITES": max(1, round(speed / 2))}


def old_guide(times):
    """The rules of the earlier guide; `@10m@` is a time."""
    text = (HERE / "old-guide.toml.in").read_text()
    for name in ("1m", "5m", "10m", "1h", "1d", "7d"):
        text = text.replace(f"@{name}@", times.toml(name))
    return text.replace("@DELAY@", f'"{max(1, round(3_000 / times.speed))}ms"')


# Sub-rule: what it counts in, and how long it bans.
RULES = {
    "login": {"known-device": ("15m", ["15m"]), "account": ("1h", ["1h", "6h"]), "address": ("10m", ["10m", "1h"]),
              "account-check": ("15m", ["1h"]), "tool": ("1m", ["10m", "1h", "6h"]), "site": ("1m", ["10m", "1h", "6h"]),
              "ceiling": ("1m", ["10m", "1h", "6h"]), "clearance": ("1h", ["1h"]), "clearance-logins": ("1h", ["1h"])},
    "pages": {"only": ("10m", ["1d"]), "clearance": ("1h", ["1h"])},
    "signup": {"account": ("1h", ["1h"]), "new-devices": ("10m", ["1h", "6h"]), "clearance": ("1h", ["1h"]),
               "register-clearance": ("1h", ["1h"])},
}
STRICT_DROPS = {"tool", "site", "ceiling", "only", "new-devices"}


def presets(row, times, strict):
    user = 'user_field = "user"\n' if row.bind else ""
    settings = {"login": f'path = "/login"\n{user}ceiling = {row.ceiling}\n', "pages": 'path = "/product/*"\n',
                "signup": f'path = "/register"\nactions = "/invite"\nyoung = {times.toml("1d")}\n'}
    text = ""
    for kind, lines in settings.items():
        if strict:
            lines = lines.replace(f"ceiling = {row.ceiling}\n", "")
        text += f'[[protect]]\nkind = "{kind}"\n{lines}' + ("strict = true\n" if strict else "")
        text += "".join(override(name, *bounds, times) for name, bounds in RULES[kind].items() if applies(kind, name, row, strict))
        text += "\n"
    return text + RETRY.replace("@1m@", times.toml("1m"))


def applies(kind, name, row, strict):
    if strict and name in STRICT_DROPS or name == "register-clearance" and not strict:
        return False
    if name == "ceiling" and not row.ceiling:
        return False
    return row.bind or kind != "login" or name not in ("account", "account-check")


def override(name, period, bans, times):
    ban = f"duration = {times.toml(bans[0])}" if len(bans) == 1 else f"escalate = [{', '.join(map(times.toml, bans))}]"
    return f"rules.{name} = {{ period = {times.toml(period)}, {ban} }}\n"


# For the flood of wrong solutions: a challenge can be had at any time.
CHALLENGE = """[challenge]
[[rules]]
name     = "logins"
mitigate = 'http.request.method eq "POST" and http.request.uri.path eq "/login"'
action   = "challenge"
"""

RETRY = """[[rules]]
name      = "retry-loop"
mitigate  = 'starts_with(http.request.uri.path, "/api/")'
# lockgate: allow chosen-key
key       = ['http.request.headers["x-api-key"]']
missing   = "skip"
algorithm = "gcra"
limit     = 60
period    = @1m@
burst     = 10
headers   = "both"
"""
