"""Fifty browser fingerprints (JA4): three make up 70 % of honest clients, as in the design's simulation.

curl_cffi knows 14 different ones. The others are those of browsers that lack a cipher suite or two, as after a
company's policy or in an old version.
"""

import itertools


class Fingerprint:
    def __init__(self, target, ciphers=""):
        self.target, self.ciphers = target, ciphers


MAIN = [Fingerprint(target) for target in ("chrome146", "safari260_ios", "chrome99_android")]
TARGETS = ["chrome131", "chrome150", "firefox133", "firefox147", "safari155", "safari184", "safari260",
           "safari2601", "safari153", "tor145"]
CHROME = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
          "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
          "ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES256-SHA", "AES128-GCM-SHA256", "AES256-GCM-SHA384", "AES128-SHA", "AES256-SHA"]


def variants():
    """Chrome without two of its cipher suites; the first stays, which every server here accepts."""
    for pair in itertools.combinations(CHROME[1:], 2):
        yield Fingerprint("chrome146", ":".join(name for name in CHROME if name not in pair))


RARE = [Fingerprint(target) for target in TARGETS]
RARE += list(itertools.islice(variants(), 47 - len(RARE)))
ALL = MAIN + RARE
WEIGHTS = [35, 20, 15] + [30 / len(RARE)] * len(RARE)
