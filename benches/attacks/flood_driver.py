#!/usr/bin/env python3
"""One side of the flood, `honest` or `flood`: flood_driver.py SIDE SETTINGS; prints JSON."""

import asyncio
import collections
import json
import os
import sys
import time

sys.dont_write_bytecode = True

from challenges import Solver, read
from clients import Network, Tool

JSON = ["content-type: application/json"]
CONNECTIONS, HONEST = 16, 20


class Timetable:
    """Which phase it is: the phases follow each other, in rounds."""

    def __init__(self, settings):
        self.start, self.seconds, self.phases, self.rounds = (settings[name] for name in ("start", "seconds", "phases", "rounds"))

    def now(self):
        """Round and phase; None after the end."""
        turn = int((time.time() - self.start) // self.seconds)
        if turn < 0 or turn >= self.rounds * len(self.phases):
            return None
        return turn // len(self.phases), self.phases[turn % len(self.phases)]

    def over(self):
        return time.time() > self.start + self.seconds * self.rounds * len(self.phases)


async def honest(network, table, settings):
    times = {phase: [[] for _ in range(table.rounds)] for phase in table.phases}

    async def client(number):
        one = Tool(network, f"127.30.0.{number + 1}")
        while not table.over():
            began, when = time.perf_counter(), table.now()
            response = await one.request("GET", "/static/1")
            assert response.status == 200, response.status
            # A request that began in one phase and ended in the next counts for neither.
            if when is not None and when == table.now():
                times[when[1]][when[0]].append(time.perf_counter() - began)
            await asyncio.sleep(0.02)

    await asyncio.gather(*map(client, range(HONEST)))
    return {phase: [(at(values, 0.5), at(values, 0.99)) for values in rounds] for phase, rounds in times.items()}


def at(values, share):
    return sorted(values)[int(len(values) * share)]


async def flood(network, table, settings):
    counts = {phase: collections.Counter() for phase in table.phases}

    async def client(number):
        one = Tool(network, f"127.31.0.{number + 1}")
        challenge = read(await one.request("POST", "/login", "user=a&password=b", ["accept: application/json"]))
        solver = Solver(settings["solver"])
        solution = await solver.solve(challenge)
        solver.close()
        solution[-1] += 1
        bodies = {"wrong solutions": json.dumps({"token": challenge.token, "solution": solution}),
                  "invalid tokens": json.dumps({"token": challenge.token[:40] + "AAAA" + challenge.token[44:], "solution": solution})}
        step = CONNECTIONS / settings["per_second"]
        planned = time.time()
        while not table.over():
            planned = max(planned + step, time.time() - 1)
            await asyncio.sleep(max(0, planned - time.time()))
            when = table.now()
            if when is None or when[1] not in bodies:
                continue
            response = await one.request("POST", challenge.url, bodies[when[1]], JSON)
            counts[when[1]][str(response.status)] += 1

    await asyncio.gather(*map(client, range(CONNECTIONS)))
    return counts


async def main(side, settings):
    network = Network(settings["port"], settings["certificate"])
    print(json.dumps(await {"honest": honest, "flood": flood}[side](network, Timetable(settings), settings)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
    os._exit(0)
