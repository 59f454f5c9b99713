"""User-space instructions a request, by callgrind on one thread.

Each case sends N and then M requests over as many connections; the difference divided by M − N
leaves out start-up, handshakes and the counters' first use.
"""

import re
import shutil
import subprocess
from pathlib import Path

from load import h2load
from parts import Failed

# Name in the report, scheme, h2load's options.
CASES = {
    "plain": ("plain h1", "http", ("--h1", "-c", "8")),
    "tls-h1": ("TLS h1", "https", ("--h1", "-c", "8")),
    "tls-h2": ("TLS h2", "https", ("-c", "8", "-m", "32")),
}
WARM_UP = 1000
PATIENCE = 300


def per_request(bench, name, few, many, keep=None, cases=CASES, serving_only=False):
    """Instructions a request by case. The profiles of the `many` runs are copied to `keep`.

    With `serving_only`, of the thread that serves: work in the background, once a second, is not counted.
    """
    out = bench.work / f"callgrind.{name}"
    threads = f"--separate-threads={'yes' if serving_only else 'no'}"
    wrapper = ["valgrind", "--tool=callgrind", "-q", threads, f"--callgrind-out-file={out}"]
    proxy = bench.start(name, 1, wrapper, PATIENCE)
    dumps = _Dumps(proxy.pid, out)
    found = {}
    for case in cases:
        _, scheme, options = CASES[case]
        h2load(proxy, scheme, *options, "-n", str(WARM_UP))
        dumps.take()
        h2load(proxy, scheme, *options, "-n", str(few))
        low = _total(dumps.take())
        h2load(proxy, scheme, *options, "-n", str(many))
        profile = dumps.take()
        found[case] = (_total(profile) - low) / (many - few)
        if keep:
            shutil.copy(profile, Path(keep) / f"callgrind.{name}.{case}")
    bench.stop(proxy.pid)
    return found


class _Dumps:
    """Cuts a running callgrind's counts into parts; each starts at zero."""

    def __init__(self, pid, out):
        self.pid, self.out, self.taken = pid, out, 0

    def take(self):
        done = subprocess.run(
            ["callgrind_control", f"--dump=part{self.taken}", str(self.pid)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        )
        self.taken += 1
        # One file, or one for each thread.
        written = list(self.out.parent.glob(f"{self.out.name}.{self.taken}")) or list(
            self.out.parent.glob(f"{self.out.name}.{self.taken}-*"))
        if done.returncode != 0 or not written:
            raise Failed(f"callgrind wrote no dump:\n{done.stdout}")
        return max(written, key=_total)


def _total(dump):
    found = re.search(r"^(?:totals|summary): (\d+)", dump.read_text(errors="replace"), re.M)
    if not found:
        raise Failed(f"{dump} has no total")
    return int(found.group(1))
