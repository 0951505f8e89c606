"""Attackers that send many requests, or hold many connections. They run in a process of their own until it is
terminated."""

import asyncio
import contextlib
import functools
import json
import random
import time
import urllib.parse

from attacks.server import HOST, KEY, OTHER_KEY, head


async def forever(port, count, one):
    """`count` attackers, each of which starts again when its connection ends."""

    async def attacker(number):
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection(HOST, port, limit=65536)
                try:
                    await one(number, reader, writer)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.01)

    await asyncio.gather(*(attacker(number) for number in range(count)))


async def read_body(reader):
    text = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in text.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return int(text.split()[1]), await reader.readexactly(length)


async def read_answer(reader):
    return (await read_body(reader))[0]


def costly(experiment, body, renewed=False):
    """Sends what `body` makes of a `duel_id`, with new lists each time if `renewed`."""
    path = f"/v1/experiments/{experiment}/"

    async def one(_, reader, writer):
        writer.write(head("POST", path + "next-duel", key=OTHER_KEY))
        duel = json.loads((await read_body(reader))[1])["duel_id"]
        request = None
        while True:
            if request is None or renewed:
                action, value = body(duel)
                request = head("POST", path + action, json.dumps(value).encode(), key=OTHER_KEY)
            writer.write(request)
            await read_answer(reader)

    return one


def pages(documents, length):
    """A page of two lists in a random order."""

    def body(duel):
        left, right = ([str(number) for number in random.sample(range(2 * documents), documents)] for _ in range(2))
        return "interleave", {"duel_id": duel, "left": left, "right": right, "length": length}

    return body


def slow_bodies(path, key, length):
    async def one(_, reader, writer):
        writer.write(head("POST", path, b"x", key=key, length=length))
        while await reader.read(4096):
            pass

    return one


def repeated(request):
    async def one(number, reader, writer):
        while True:
            writer.write(request(number))
            await read_answer(reader)

    return one


async def wait_for_close(_, reader, writer):
    while await reader.read(4096):
        pass


def idle_after(request):
    """Hold the connection after one request."""

    async def one(_, reader, writer):
        writer.write(request)
        while await reader.read(4096):
            pass
        await asyncio.sleep(2)

    return one


def unread(request, times=1):
    async def one(_, reader, writer):
        writer.transport.pause_reading()
        writer.write(request * times)
        await asyncio.sleep(3600)

    return one


def unknown_key(number):
    return head("GET", "/v1/experiments", key=f"unknown-{number}-{time.monotonic_ns():x}")


def wrong_login(number):
    body = urllib.parse.urlencode({"key": f"wrong-{number}-{time.monotonic_ns():x}"}).encode()
    return head("POST", "/login", body, key=None)


def report(number):
    paths = ["standings", "statistics", "regret", "winners", "verdict", "traffic"]
    path = paths[number % len(paths)]
    return head("GET", f"/v1/experiments/target/{path}", more="accept-encoding: gzip\r\n")


def page(number):
    return head("GET", "/experiments/target" if number % 2 else "/", more="accept-encoding: gzip\r\n")


@functools.cache
def large_body(number):
    """Two megabytes of feedback, each item with a hundred clicks."""
    clicks = [{"position": position} for position in range(100)]
    item = {"duel_id": f"none-{number}", "clicks": clicks, "final": False}
    return head("POST", FEEDBACK, json.dumps({"feedback": [item] * 900}).encode())


STANDINGS = head("GET", "/v1/experiments/target/standings")
FEEDBACK = "/v1/experiments/target/feedback"

# name: rankers, connections, what each does, whether the database hangs
ATTACKS = {
    "none": (10, 0, wait_for_close, False),
    "none-256": (256, 0, wait_for_close, False),
    "slow-logins": (10, 1024, slow_bodies("/login", None, 100), False),
    "wrong-logins": (10, 256, repeated(wrong_login), False),
    "unknown-keys": (10, 256, repeated(unknown_key), False),
    "unknown-keys-database-hangs": (10, 1024, repeated(unknown_key), True),
    "wrong-logins-database-hangs": (10, 1024, repeated(wrong_login), True),
    "idle": (10, 6000, wait_for_close, False),
    "idle-with-key": (10, 6000, idle_after(head("GET", "/v1/experiments", key=OTHER_KEY)), False),
    "pipelined-docs": (10, 3000, unread(head("GET", "/docs", key=None), 400), False),
    "slow-bodies-with-key": (10, 1024, slow_bodies(FEEDBACK, KEY, 100_000), False),
    "large-bodies-with-key": (10, 16, repeated(large_body), False),
    "slow-readers-with-key": (256, 120, unread(STANDINGS), False),
    "reports-with-key": (256, 16, repeated(report), False),
    "pages-with-key": (256, 4, repeated(page), False),
    "costly-lists": (10, 32, costly("team-draft", pages(1000, 1000)), False),
    "costly-long-lists": (10, 32, costly("team-draft", pages(2700, 10)), False),
    "costly-patterns": (10, 32, costly("optimized", pages(10, 10), True), False),
    "costly-counts": (10, 32, costly("team-draft", lambda _: ("next-duel", {"count": 500})), False),
}
# Settings of the server for an attack.
SETTINGS = {"idle": ["--max-connections", "100000"]}


def attack(port, name, count):
    asyncio.run(forever(port, count, ATTACKS[name][2]))
