"""Reads challenges, as the page or the JSON document shows them, and solves them."""

import asyncio
import html
import json
import re
from urllib.parse import quote_plus

ATTRIBUTE = re.compile(r'data-([a-z]+)="([^"]*)"')
INPUT = re.compile(r"<input\b([^>]*)>")


class Challenge:
    def __init__(self, token, salt, iterations, bits, parts, url, form=None):
        self.token, self.salt, self.url, self.form = token, salt, url, form
        self.iterations, self.bits, self.parts = int(iterations), int(bits), int(parts)


def read(response):
    """The challenge of a 429 response, with the form that the page would send again."""
    text = response.body.decode()
    if "json" in response.header("content-type"):
        return Challenge(**{name: value for name, value in json.loads(text)["challenge"].items()})
    data = {name: html.unescape(value) for name, value in ATTRIBUTE.findall(text)}
    fields = [attributes(found) for found in INPUT.findall(text)]
    form = "&".join(f"{quote_plus(field['name'])}={quote_plus(field.get('value', ''))}" for field in fields if "name" in field)
    return Challenge(**{name: data[name] for name in ("token", "salt", "iterations", "bits", "parts", "url")}, form=form or None)


def attributes(text):
    return {name: html.unescape(value) for name, value in re.findall(r'([a-z-]+)="([^"]*)"', text)}


class Solver:
    """One process of `solve.c`. It counts solutions and their CPU time."""

    def __init__(self, program):
        self.program, self.process, self.lock = program, None, asyncio.Lock()
        self.solved, self.seconds = 0, 0.0

    async def solve(self, challenge):
        async with self.lock:
            if self.process is None:
                pipe = asyncio.subprocess.PIPE
                self.process = await asyncio.create_subprocess_exec(self.program, stdin=pipe, stdout=pipe)
            self.process.stdin.write(f"{challenge.salt} {challenge.iterations} {challenge.bits} {challenge.parts}\n".encode())
            line = (await self.process.stdout.readline()).split()
        self.solved += 1
        self.seconds += int(line[0]) / 1e6
        return [int(number) for number in line[1:]]

    async def pass_challenge(self, client, response, wait=0.0):
        """Solves and posts; returns the form to send again, or None. The time is at least `wait`."""
        challenge = read(response)
        began = asyncio.get_running_loop().time()
        solution = await self.solve(challenge)
        await asyncio.sleep(max(0, wait - (asyncio.get_running_loop().time() - began)))
        document = json.dumps({"token": challenge.token, "solution": solution})
        headers = ["content-type: application/json", "accept: */*", "sec-fetch-mode: cors", "sec-fetch-dest: empty", "sec-fetch-site: same-origin"]
        for _ in range(4):
            posted = await client.request("POST", challenge.url, document, headers)
            if posted.status != 503:
                break
            await asyncio.sleep(1)
        return posted.status == 204, challenge.form

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
