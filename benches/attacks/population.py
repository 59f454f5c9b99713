"""Who takes part: honest users and attackers, with addresses, networks, fingerprints and habits drawn by a seed.

Shares are those of the design's simulation: an office behind one address, a mobile network behind one address, the
others alone; three fingerprints cover 70 %; 20 % mistype, 2 % five times; one in a hundred of the attacker's addresses is
that of the mobile network, and one is the office's.
"""

from fingerprints import ALL, MAIN, WEIGHTS

NETWORKS = 20
OFFICE, MOBILE = ("127.25.0.1", 5), ("127.27.0.1", 7)
FIRST_ASN = 64_500


class Person:
    def __init__(self, number, kind, address, network, fingerprint):
        self.number, self.kind, self.address, self.network, self.fingerprint = number, kind, address, network, fingerprint
        self.user = f"u{number}"
        self.javascript = self.known = True
        self.start = 0.0        # in the attack's seconds
        self.reported = True    # it arrives during the attack


def networks():
    """Network and autonomous system of every address in use."""
    return {f"127.{20 + number}.0.0/16": FIRST_ASN + number for number in range(NETWORKS)}


def address(network, number, attacker):
    """An address of the network; the attacker's have another half of it."""
    return f"127.{20 + network}.{number // 250 % 120 + (130 if attacker else 1)}.{number % 250 + 1}"


def people(row, rng):
    total = row.honest
    office, mobile = min(row.office, total * 3 // 10), min(row.mobile, total * 5 // 16)
    found = []
    for number in range(total):
        found.append(person := one_person(row, rng, number, office, mobile))
        person.start = rng.uniform(0, row.lead + row.span)
        person.reported = person.start >= row.lead or not row.attempts
        person.javascript = rng.random() >= row.no_js
        if row.apps and rng.random() < row.apps:
            person.javascript, person.kind = False, "app"
        person.known = rng.random() < row.known
    return found


def one_person(row, rng, number, office, mobile):
    if number < office:
        kind, place = "office", OFFICE
    elif number < office + mobile:
        kind, place = "mobile", MOBILE
    else:
        network = number % NETWORKS if row.speed == 1 and row.lead == 0 else rng.randrange(NETWORKS)
        kind, place = "own", (address(network, number, False), network)
    fingerprint = MAIN[number % 2] if row.style == "two" else rng.choices(ALL, WEIGHTS)[0]
    return Person(number, kind, *place, fingerprint)


def typos(rng):
    draw = rng.random()
    return 0 if draw < 0.80 else 1 if draw < 0.93 else 2 if draw < 0.98 else 5


def attackers(row, rng):
    """Address and fingerprint of each attacking client; None is a tool's own."""
    hidden = row.lead > 0 or row.speed > 1
    return [attacker(row, rng, number, hidden) for number in range(row.addresses)]


def attacker(row, rng, number, hidden):
    place = address(number % NETWORKS, number, True)
    if hidden and row.addresses >= 100 and number % 100 == 1:
        place = MOBILE[0]
    if hidden and row.addresses >= 500 and number == 0:
        place = OFFICE[0]
    if row.kind == "retry":
        place = OFFICE[0]
    fingerprint = {"tool": lambda: None, "browser": lambda: MAIN[number % 3], "two": lambda: MAIN[number % 2],
                   "fifty": lambda: ALL[rng.randrange(len(ALL))]}[row.style]()
    return place, fingerprint
