"""The attacker: what it sends, and from when on it is stopped."""

import asyncio
import time

import known
import population
from clients import HOST, Browser, Tool

HITS = 0.005            # of the pairs that it tries are valid
STREAK = 20             # stopped in a row: the defence acts
ATTACK, OWN = ["x-bench: attack"], ["x-bench: own"]


class Bot:
    """One attacking device. Its requests wait for each other."""

    def __init__(self, scene, number, place, fingerprint):
        self.lock = asyncio.Lock()
        port = scene.pick_port(number)
        self.client = Browser(scene.network, place, fingerprint, port) if fingerprint else Tool(scene.network, place, port)


class Attack:
    def __init__(self, scene):
        self.scene, self.row, self.rng = scene, scene.row, scene.rng("attack")
        self.sent, self.stopped, self.errors = 0, 0, 0
        self.streak, self.streak_start, self.acts_after = 0, 0.0, None
        self.bots, self.own = [], []

    def schedule(self):
        row = self.row
        if not row.attempts:
            return
        places = population.attackers(row, self.rng)
        self.bots = [Bot(self.scene, number, *place) for number, place in enumerate(places)]
        if row.own:
            self.own = [Bot(self.scene, number, place[0], population.MAIN[number % 3]) for number, place in enumerate(places)]
        self.prepare_cookies(places)
        step = row.span / row.attempts
        work = {"login": self.try_pair, "account": self.guess, "pages": self.scrape, "invite": self.spam, "retry": self.loop}[row.kind]
        self.scene.run_at((row.lead + number * step, work(number)) for number in self.order())
        if row.own:
            self.scene.run_at((row.lead + (number + 0.5) * step, self.log_in_own(number)) for number in range(row.attempts))

    def order(self):
        """The accounts that send invitations do so in no order."""
        numbers = list(range(self.row.attempts))
        if self.row.kind == "invite":
            self.rng.shuffle(numbers)
        return numbers

    def prepare_cookies(self, places):
        if self.row.farm:
            for number, bot in enumerate(self.bots):
                owner = number % self.row.farm
                self.know(bot.client, f"own{owner}", 0, owner.to_bytes(8, "big"))
        if self.row.kind == "invite":
            self.bots = [Bot(self.scene, number, *places[number % len(places)]) for number in range(self.row.attempts // 9)]
            for number, bot in enumerate(self.bots):
                bot.client.jar["session"] = f"spam{number}"
                self.know(bot.client, f"spam{number}", 1_800 / self.row.speed, self.rng.randbytes(8))

    def know(self, client, user, age, identity):
        first = int(time.time() - age)
        client.jar[known.COOKIE] = known.cookie(self.scene.secret, HOST, [user], identity, first, first)

    async def send(self, bot, method, path, body=None, headers=(), solutions=3):
        """One request of the attack, with up to three solutions if it solves."""
        self.sent += 1
        async with bot.lock:
            while True:
                response = await bot.client.request(method, path, body, [*ATTACK, *headers])
                if not (response.challenged and self.row.solver and solutions):
                    break
                solutions -= 1
                await self.scene.solver.pass_challenge(bot.client, response)
            if self.row.attempts == self.row.addresses:
                bot.client.close()
        self.note(response)
        return response

    def note(self, response):
        if not response.status:
            self.errors += 1
        elif response.reached:
            self.streak = 0
        else:
            self.stopped += 1
            self.streak += 1
            if self.streak == 1:
                self.streak_start = max(0.0, self.scene.now() - self.row.lead)
            if self.streak == STREAK and self.acts_after is None:
                self.acts_after = self.streak_start

    def bot(self, number):
        return self.bots[number % len(self.bots)]

    async def try_pair(self, number):
        password = f"pw-v{number}" if self.rng.random() < HITS else "leaked"
        await self.send(self.bot(number), "POST", "/login", f"user=v{number}&password={password}")

    async def guess(self, number):
        await self.send(self.bot(number), "POST", "/login", f"user=victim&password=guess{number}")

    async def log_in_own(self, number):
        """Successful logins to accounts of the attacker, from devices that are new each time."""
        bot = self.own[number % len(self.own)]
        for turn in range(self.row.own):
            user = f"mine{(number * self.row.own + turn) % self.row.accounts}"
            async with bot.lock:
                bot.client.jar.clear()
                await bot.client.request("POST", "/login", f"user={user}&password=pw-{user}", OWN)

    async def scrape(self, number):
        bot = self.bot(number)
        response = await self.send(bot, "GET", f"/product/{number}", solutions=1)
        for asset in range(self.row.assets if response.reached else 0):
            async with bot.lock:
                await bot.client.request("GET", f"/static/{asset}", headers=ATTACK)

    async def spam(self, number):
        await self.send(self.bot(number), "POST", "/invite", "mail=stranger%40example.com", solutions=1)

    async def loop(self, number):
        await self.send(self.bot(number), "GET", "/api/orders", headers=["x-api-key: loop"])

    def result(self):
        return {"sent": self.sent, "stopped": self.stopped, "errors": self.errors,
                "acts_after": self.acts_after}
