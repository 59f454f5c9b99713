#!/usr/bin/env python3
"""One side of a run, `honest` or `attack`: sends the requests of a row to a port, and prints what came of it as JSON.

    driver.py SIDE SETTINGS

SETTINGS is JSON: the row, the seed, ports, certificate, secret, solver and the time at which the row starts.
"""

import asyncio
import json
import os
import random
import sys
import time
import zlib

sys.dont_write_bytecode = True

import attack
import clients
import honest
from challenges import Solver
from rows import Row

GRACE = 90              # seconds after the last start until a request counts as unfinished


class Scene:
    """The run: the row's clock, connections and random numbers."""

    def __init__(self, settings):
        self.row = Row(**settings["row"])
        self.seed, self.ports, self.start = settings["seed"], settings["ports"], settings["start"]
        self.secret = bytes.fromhex(settings["secret"])
        self.network = clients.Network(self.ports[0], settings["certificate"])
        self.solver = Solver(settings["solver"])
        self.tasks, self.late, self.last = set(), [], self.start

    def rng(self, name):
        return random.Random(f"{self.seed} {self.row.name} {name}")

    def now(self):
        """Seconds of the attack since the row began."""
        return (time.time() - self.start) * self.row.speed

    async def until(self, moment):
        await asyncio.sleep(max(0, self.start + moment / self.row.speed - time.time()))

    def pick_port(self, number):
        """The gateway that a client uses, if there are several."""
        return self.ports[zlib.crc32(str(number).encode()) % len(self.ports)]

    def run_at(self, plan):
        loop = asyncio.get_running_loop()
        offset = loop.time() - time.time()
        for moment, work in plan:
            planned = self.start + moment / self.row.speed
            loop.call_at(planned + offset, self.begin, work, planned)
            self.last = max(self.last, planned)

    def begin(self, work, planned):
        self.late.append(time.time() - planned)
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def finish(self):
        while time.time() < self.last or self.tasks:
            if time.time() > self.last + GRACE:
                break
            await asyncio.sleep(0.1)
        for task in list(self.tasks):
            task.cancel()

    def result(self):
        late = sorted(self.late) or [0]
        return {"late_p99": late[int(len(late) * 0.99)], "solved": self.solver.solved, "solver_seconds": self.solver.seconds,
                "failures": sorted(set(clients.ERRORS))[:5], "failed": len(clients.ERRORS), "cpu": time.process_time()}


async def main(side, settings):
    scene = Scene(settings)
    actors = {"honest": honest.Crowd, "attack": attack.Attack}[side](scene)
    actors.schedule()
    await scene.finish()
    scene.solver.close()
    print(json.dumps(actors.result() | scene.result()), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
    # Skips the tear-down of thousands of handles.
    sys.stdout.flush()
    os._exit(0)
