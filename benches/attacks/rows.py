"""The attacks: the rows of the table, as data. Times are those of the attack, before they are divided by `speed`."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    goal: str                   # a key of GOALS
    kind: str = "login"         # "login", "account", "pages", "invite" or "retry": see actors.py
    speed: float = 12           # by how much everything but the origin server's 100 ms is faster
    lead: float = 120           # seconds of honest traffic before the attack
    span: float = 600           # seconds of the attack
    attempts: int = 10_000
    addresses: int = 2_000
    style: str = "browser"      # of the attacker's fingerprints: "tool", "browser", "two" or "fifty"
    per_second: float = 2.22    # honest users that arrive
    known: float = 0.6
    fresh: float = 0.02         # of them, in rows of invitations: registered today
    no_js: float = 0.005
    apps: float = 0.0
    office: int = 60
    mobile: int = 500
    solver: bool = False
    own: int = 0                # own successful logins for each attempt …
    accounts: int = 20          # … of so many accounts
    farm: int = 0               # cookies of own accounts
    assets: int = 0             # files that a scraper loads with each page
    latency: int = 100          # of the origin server, in milliseconds
    bind: bool = True           # known clients are bound to users
    ceiling: int = 80           # of the login preset
    design: str = ""            # leak / harmed in the design's simulation: proposed; strict

    @property
    def honest(self):
        return round(self.per_second * (self.lead + self.span))


LOGIN = Row("2", "browser fingerprints: 10,000 in 10 min, 2,000 addresses", "login", design="0.10 / 0.22; 0 / 0.22")
QUICK = Row("0a", "6,000 in 20 s, 2,000 addresses, a tool's fingerprint", "login", speed=1, lead=0, span=20, attempts=6_000,
            style="tool", per_second=10, known=0, no_js=0, mobile=0, design="0.39 / 0; 0 / 0")
SLOW = replace(LOGIN, name="4", title="slow: one attempt an hour from each address, 14/s, for 10 min", attempts=8_333, addresses=8_333,
               per_second=3.3, design="0.10 / 0.18; 0 / 0.18")
PAGES = Row("9", "scraping 20,000 pages in 10 min, 500 addresses", "pages", kind="pages", speed=6, attempts=20_000, addresses=500,
            per_second=1.67, known=0.4, design="11 / 0; 0 / 0.29")
ROWS = [
    QUICK,
    replace(QUICK, name="0b", title="the same, two browser fingerprints", style="two", design="0.50 / 0; 0 / 0"),
    replace(LOGIN, name="1", title="a tool's fingerprint: 10,000 in 10 min, 2,000 addresses", style="tool"),
    LOGIN,
    replace(LOGIN, name="3", title="50 browser fingerprints", style="fifty"),
    replace(LOGIN, name="3b", title="browser fingerprints, fast: 10,000 in 25 s", speed=1, lead=60, span=25, per_second=6.2,
            design="0.69 / 0; 0 / 0"),
    SLOW,
    replace(SLOW, name="4b", title="the same, site of 20 logins/s", speed=4, per_second=20, lead=60, design="0.28 / 0.18; 0 / 0.18"),
    replace(SLOW, name="4c", title="1,000 attempts an hour, for 20 min", goal="strict only", span=1_200, attempts=333, addresses=333,
            design="21 / 0.16; 0 / 0.18"),
    replace(SLOW, name="4d", title="150 attempts an hour, for 20 min", goal="strict only", span=1_200, attempts=50, addresses=50,
            design="83 / 0.03; 0 / 0.18"),
    replace(LOGIN, name="5", title="**solver**, 5,000 in 5 min", goal="solver", solver=True, speed=6, span=300, attempts=5_000,
            design="100 / 0.22; 100 / 0.22"),
    replace(SLOW, name="5b", title="solver, slow: 14/s for 4 min", goal="solver", solver=True, speed=4, span=240, attempts=3_333,
            addresses=3_333, design="99.7 / 0.61; 99.8 / 0.49"),
    replace(LOGIN, name="5c", title="solver, 50 addresses", goal="solver", solver=True, addresses=50, design="7.8 / 0.97; 7.8 / 0.97"),
    replace(LOGIN, name="6", title="dilution, 20 own accounts, 1:1", speed=6, own=1, design="0.29 / 0.22; 0 / 0.22"),
    replace(LOGIN, name="6b", title="dilution, 20 own accounts, 3:1", speed=6, own=3, design="0.56 / 0.22; 0 / 0.22"),
    replace(LOGIN, name="6d", title="dilution, 10,000 own accounts, 3:1", speed=6, own=3, accounts=10_000, design="0.56 / 0.22; 0 / 0.22"),
    replace(LOGIN, name="7", title="farm: cookies of 20 own accounts", farm=20),
    Row("8", "one account: 10,000 guesses in 30 min", "account", kind="account", speed=30, lead=0, span=1_800, per_second=0.83,
        design="0.05 / 0; 0 / 0.30"),
    Row("8b", "the same, solver", "account", kind="account", speed=30, lead=0, span=1_800, per_second=0.83, solver=True,
        design="0.15 / 0.33; 0.15 / 0.63"),
    PAGES,
    replace(PAGES, name="9c", goal="long pages", title="scraping for 6 h; attacker and site a fifth: 60,000 pages, 100 addresses", speed=90, lead=600, span=21_600,
            attempts=60_000, addresses=100, per_second=0.185, office=12, mobile=100, design="1.55 / 0.01; 0 / 0.31"),
    replace(PAGES, name="9d", title="scraping, loads two images a page, 5 min", goal="report", span=300, attempts=10_000, assets=2,
            design="100 / 0; 0 / 0.29"),
    replace(PAGES, name="9e", title="scraping, solver, 5 min", goal="report", span=300, attempts=10_000, solver=True,
            design="100 / 0; 100 / 0.29"),
    Row("10", "invitations: 300 new accounts, 9 each in an hour", "invite", kind="invite", speed=60, lead=0, span=3_600, attempts=2_700,
        addresses=100, per_second=2.78, known=1, design="0.70 / 0.75; 0 / 0.75"),
    Row("10b", "the same, solver", "report", kind="invite", speed=60, lead=0, span=3_600, attempts=2_700, addresses=100, per_second=2.78,
        known=1, solver=True, design="100 / 0.75; 100 / 0.75"),
    Row("10c", "as 10, one honest account in twenty is new today", "report", kind="invite", speed=60, lead=0, span=3_600, attempts=2_700,
        addresses=100, per_second=2.78, known=1, fresh=0.05),
    Row("11", "retry loop at 10/s in the office of 60", "retry", kind="retry", speed=6, lead=0, span=600, attempts=6_000, addresses=20, mobile=0,
        per_second=0.333, style="tool", design="10.2 / 0"),
    replace(LOGIN, name="12", title="no attack, 3.3 logins/s, 10 min", goal="quiet", attempts=0, per_second=3.3, design="– / 0; – / 0.25"),
    replace(LOGIN, name="12b", title="no attack, 0.05 logins/s, 5.5 h", goal="quiet", attempts=0, speed=240, lead=600, span=20_000,
            per_second=0.05, design="– / 0; – / 0.20"),
    replace(LOGIN, name="12c", title="no attack, 20 logins/s, 80 % new devices, 4 min", goal="monday", attempts=0, speed=3, lead=60,
            span=240, per_second=20, known=0.2, design="– / 0.40; – / 0.41"),
    replace(LOGIN, name="12d", title="the same, `ceiling = 0`", goal="quiet", attempts=0, speed=3, lead=60, span=240, per_second=20,
            known=0.2, ceiling=0, design="– / 0; – / 0.41"),
    replace(LOGIN, name="13", title="as 2, 15 % app users who cannot solve", goal="report", apps=0.15, design="0.21 / 7.4; 0 / 7.4"),
    replace(LOGIN, name="13b", title="as 2, first day: no client is known", goal="report", known=0, design="0.35 / 0.59; 0 / 0.59"),
    replace(LOGIN, name="15c", title="as 2, 3 % without JavaScript", goal="report", no_js=0.03, design="– / 1.6"),
    replace(LOGIN, name="15d", title="as 7, cookies not bound to users", goal="report", farm=20, bind=False, design="2.2 / –"),
    replace(LOGIN, name="15e", title="as 2, origin server takes 1 s", goal="report", latency=1_000, design="0.69 / –"),
]

# What the design's acceptance table asks of lockgate: at most so many per cent leak, harmed and challenged.
GOALS = {
    "login": {"preset": (1, 1, None), "strict": (1, 1, None)},
    "strict only": {"preset": (None, 1, None), "strict": (1, 1, None)},
    "solver": {"preset": (None, 1, None), "strict": (None, 1, None)},
    "account": {"preset": (1, 1, None), "strict": (1, 1, None)},
    "pages": {"preset": (None, 1, None), "strict": (1, 1, None)},
    "long pages": {"preset": (1, 1, None), "strict": (1, 1, None)},
    "invite": {"preset": (1, 1, None), "strict": (1, 1, None)},
    "retry": {"preset": (11, 0, None), "strict": (11, 0, None)},
    "quiet": {"preset": (None, 0, 1), "strict": (None, 1, None)},
    "monday": {"preset": (None, 1, None), "strict": (None, 1, None)},
    "report": {},
}

FLEET = [replace(LOGIN, name=f"fleet {mode}", title=f"attack 2 on two gateways, {mode}, store outage from 5 min to 6 min 40 s", design="")
         for mode in ("exact", "async")]


def smaller(row):
    """A fifth of the row, for a smoke test."""
    return replace(row, span=row.span / 5, lead=row.lead / 5, attempts=row.attempts // 5)
