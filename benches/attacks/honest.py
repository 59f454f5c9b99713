"""Honest users: what they want, and whether they get it.

A user is *harmed* if it is refused, deceived or cannot solve a challenge, and so does not reach its goal. It is
*challenged* if it met at least one challenge. Only users that arrive during the attack are reported.
"""

import asyncio
import collections
import itertools
import time

import known
import population
from clients import HOST, Browser
from population import Person

# The median is 1.6 s: reading, waiting and solving in a browser.
SOLVE_TIME = (0.5, 0.6)


class Crowd:
    def __init__(self, scene):
        self.scene, self.row, self.rng = scene, scene.row, scene.rng("honest")
        self.people = []
        self.harmed, self.challenged, self.kinds = {}, collections.Counter(), {}

    def schedule(self):
        {"login": self.visits, "account": self.account, "pages": self.visits, "invite": self.inviters, "retry": self.customers}[self.row.kind]()
        self.scene.run_at((person.start, self.act(person)) for person in self.people)

    def visits(self):
        self.people = population.people(self.row, self.rng)

    def account(self):
        """Usual logins, and twenty of the victim: ten with a device that is known."""
        self.visits()
        for number in range(20):
            kind, home = ("victim known", 3) if number < 10 else ("victim new", 4)
            person = Person(f"v{number}", kind, population.address(home, 20_000 + number, False), home, population.MAIN[0])
            person.user, person.known = "victim", number < 10
            person.start = self.rng.uniform(self.row.span / 6, self.row.span)
            self.people.append(person)

    def inviters(self):
        """Everybody has an account, some since today. Half of the new ones invite, 3 % of the others."""
        for person in population.people(self.row, self.rng):
            person.fresh = self.rng.random() < self.row.fresh
            if self.rng.random() < (0.5 if person.fresh else 0.03):
                self.people.append(person)

    def customers(self):
        """200 API keys, 60 of them in the office, one request in five seconds each."""
        self.people = population.people(self.row, self.rng)
        for person in self.people:
            person.start = 0.0

    async def act(self, person):
        client = self.client(person)
        number = person.number
        try:
            kind = self.row.kind
            await {"login": self.log_in, "account": self.log_in, "pages": self.browse, "invite": self.invite, "retry": self.call}[kind](person, client)
        finally:
            client.close()
        self.kinds[number] = person.kind

    def client(self, person):
        client = Browser(self.scene.network, person.address, person.fingerprint, self.scene.pick_port(person.number))
        if person.known:
            age = 1_000_000
            if self.row.kind == "invite":
                client.jar["session"] = person.user
                age = (3_600 if person.fresh else 1_000_000) / self.row.speed
            now = time.time()
            identity = self.rng.randbytes(8)
            client.jar[known.COOKIE] = known.cookie(self.scene.secret, HOST, [person.user], identity, int(now - age), int(now - min(age, 1e5)))
        return client

    async def log_in(self, person, client):
        wrong = population.typos(self.rng)
        while True:
            password = "typo" if wrong else f"pw-{person.user}"
            response = await self.reach(person, client, "POST", "/login", f"user={person.user}&password={password}")
            if response is None:
                return
            if response.status == 302:
                break
            wrong -= 1
            await self.pause(self.rng.uniform(3, 15))
        await self.pause(0.2)
        response = await client.request("GET", "/account")
        if not response.reached:
            self.harm(person, response)

    async def reach(self, person, client, method, path, body=None):
        """The response of the origin server, after all challenges; None if the user is harmed. `path` may be a function."""
        form = body
        while True:
            response = await client.request(method, path() if callable(path) else path, form)
            if not response.challenged:
                return response if response.reached else self.harm(person, response)
            self.challenged[person.number] += 1
            if not person.javascript or self.challenged[person.number] > 4:
                return self.harm(person, response)
            # The clearance counts, whatever the response to the solution was: a wrong one brings the next challenge.
            _, form = await self.scene.solver.pass_challenge(client, response, self.rng.lognormvariate(*SOLVE_TIME) / self.row.speed)
            form = form or body

    async def browse(self, person, client):
        cached = self.rng.random() < 0.3
        pages = min(80, 1 + int(self.rng.expovariate(1 / 7)))
        while pages:
            if await self.reach(person, client, "GET", lambda: f"/product/{self.item()}") is None:
                return
            for number in range(1 if cached else 3):
                await client.request("GET", f"/static/{number}")
            cached, pages = True, pages - 1
            if pages:
                await self.pause(self.rng.expovariate(1 / 15))

    def item(self):
        return self.rng.choices(range(20_000), cum_weights=POPULARITY)[0]

    async def invite(self, person, client):
        for left in reversed(range(min(12, 1 + int(self.rng.expovariate(1 / 4))))):
            if await self.reach(person, client, "POST", "/invite", "mail=friend%40example.com") is None:
                return
            if left:
                await self.pause(self.rng.uniform(5, 40))

    async def call(self, person, client):
        times = sorted(self.rng.uniform(0, self.row.span) for _ in range(int(self.row.span * 0.2)))
        for moment in times:
            await self.scene.until(moment)
            response = await client.request("GET", "/api/orders", headers=[f"x-api-key: key{person.number}"])
            if not response.reached:
                self.harm(person, response)

    async def pause(self, seconds):
        await asyncio.sleep(seconds / self.row.speed)

    def harm(self, person, response):
        reason = person.kind if response.status else "connection"
        self.harmed[person.number] = reason

    def result(self):
        reported = {person.number for person in self.people if person.reported}
        harmed = {number: kind for number, kind in self.harmed.items() if number in reported}
        by_kind = {}
        for kind in harmed.values():
            by_kind[kind] = by_kind.get(kind, 0) + 1
        return {"users": len(reported), "harmed": len(harmed), "by_kind": by_kind, "challenged": len(self.challenged.keys() & reported),
                "unfinished": len(reported - set(self.kinds))}


POPULARITY = list(itertools.accumulate(1 / (number + 1) ** 0.9 for number in range(20_000)))
