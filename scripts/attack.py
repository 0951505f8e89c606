"""Attacks on a server, and what a caller with a key notices meanwhile. Run by scripts/attack.

Each attack has a server of its own on a new database. The attacker is a process of its own. One
caller with a key requests duels all the time, some of them on new connections; the report has the
statuses and latencies that it sees, and the largest memory of the server.

The exit code is 1 if one of its requests was refused, or if the server had more memory or more open
files than its limits allow.
"""

import argparse
import asyncio
import contextlib
import functools
import json
import multiprocessing
import os
import pathlib
import resource
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

KEY = "attack-attack-attack-attack"
# What a server may have more than before the attack, in megabytes: 256 of large answers, 64 of
# bodies, 64 for 4096 connections, and the reports and bodies that are being processed.
MEMORY_MAX = 512
# The limit of connections, and what else a server has open.
FILES_MAX = 4096 + 100
HOST = "127.0.0.1"
PROGRAM = os.environ["RANKDUEL_PROGRAM"]


# ---- databases


class Database:
    """A new database of one kind, and a way to make it hang."""

    def __init__(self, kind, folder, number):
        self.kind = kind
        if kind == "sqlite":
            self.path = pathlib.Path(folder) / f"{number}.db"
            self.url = f"sqlite://{self.path}"
        else:
            server = os.environ["RANKDUEL_TEST_POSTGRES_URL"]
            name = f"attack_{os.getpid()}_{number}"
            self.psql(server, f"create database {name}")
            self.url = server.replace("/postgres?", f"/{name}?")

    @staticmethod
    def psql(url, statement):
        subprocess.run(["psql", "--quiet", url, "--command", statement], check=True, stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def hanging(self):
        """Meanwhile, nothing can be written in SQLite, nor can keys be read in PostgreSQL."""
        if self.kind == "sqlite":
            connection = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            connection.execute("begin exclusive")
            try:
                yield
            finally:
                connection.execute("rollback")
                connection.close()
            return
        statements = (
            "begin; lock table api_key, experiment, signing_key in access exclusive mode;"
            " select 'locked'; select pg_sleep(600);"
        )
        arguments = ["psql", "--quiet", "--tuples-only", "--set", "ON_ERROR_STOP=1", self.url]
        locker = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        locker.stdin.write(statements.replace(";", ";\n"))
        locker.stdin.flush()
        while "locked" not in (line := locker.stdout.readline()):
            if not line:
                raise RuntimeError("the tables cannot be locked")
        try:
            yield
        finally:
            locker.kill()
            locker.wait()
            ending = "select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep%'" \
                " and pid <> pg_backend_pid()"
            self.psql(self.url, ending)


# ---- the server


class Server:
    def __init__(self, database, arguments=()):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("RANKDUEL_")}
        environment |= {"RANKDUEL_API_KEYS": KEY, "RANKDUEL_DATABASE_URL": database.url}
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--listen", f"{HOST}:0", "--log", "error", *arguments],
            env=environment, stdout=subprocess.PIPE, text=True,
        )
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"the server did not start: {line!r}")
        self.port = int(line.strip().rsplit(":", 1)[1])

    def memory(self):
        """Megabytes of its own memory."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        self.process.kill()
        self.process.wait()


def head(method, path, body=b"", key=KEY, length=None, more=""):
    authorization = f"authorization: Bearer {key}\r\n" if key else ""
    length = len(body) if length is None else length
    content = f"content-type: application/json\r\ncontent-length: {length}\r\n" if method != "GET" else ""
    return f"{method} {path} HTTP/1.1\r\nhost: x\r\n{authorization}{content}{more}\r\n".encode() + body


def answer(stream):
    """Status and body of the next answer on a blocking socket file."""
    line = stream.readline()
    if not line:
        raise ConnectionError("closed")
    status, length = int(line.split()[1]), 0
    while (field := stream.readline()) not in (b"\r\n", b""):
        name, _, value = field.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, stream.read(length)


def ask(port, method, path, value=None):
    body = b"" if value is None else json.dumps(value).encode()
    with socket.create_connection((HOST, port), timeout=60) as connection:
        connection.sendall(head(method, path, body, more="connection: close\r\n"))
        return answer(connection.makefile("rb"))


def prepare(port, rankers, duels):
    """An experiment with some feedback."""
    spec = {"name": "target", "rankers": [f"ranker-{number}" for number in range(rankers)]}
    status, text = ask(port, "POST", "/v1/experiments", spec)
    if status != 201:
        raise RuntimeError(f"the experiment was not created: {text}")
    connection = socket.create_connection((HOST, port))
    stream = connection.makefile("rb")
    items = []
    for _ in range(duels):
        connection.sendall(head("POST", "/v1/experiments/target/next-duel"))
        duel = json.loads(answer(stream)[1])
        if not duel["self_duel"]:
            items.append({"duel_id": duel["duel_id"], "outcome": "left"})
    ask(port, "POST", "/v1/experiments/target/feedback", {"feedback": items})


# ---- what a caller with a key sees


class Caller(threading.Thread):
    """Requests duels: 19 on one connection, then one on a new connection."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.going = server, True
        self.statuses, self.latencies, self.memory, self.files = {}, [], 0.0, 0

    def run(self):
        request = head("POST", "/v1/experiments/target/next-duel")
        connection = stream = None
        number = 0
        while self.going:
            number += 1
            started = time.perf_counter()
            try:
                if connection is None or number % 20 == 0:
                    if connection is not None:
                        connection.close()
                    connection = socket.create_connection((HOST, self.server.port), timeout=15)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    stream = connection.makefile("rb")
                connection.sendall(request)
                status = answer(stream)[0]
            except OSError as error:
                status, connection = type(error).__name__, None
            self.latencies.append((time.perf_counter() - started) * 1000)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if number % 20 == 0:
                self.look()
            time.sleep(0.002)

    def look(self):
        """Note what the server has."""
        self.memory = max(self.memory, self.server.memory())
        self.files = max(self.files, self.server.files())

    def stop(self):
        self.going = False
        self.join()
        self.look()
        self.latencies.sort()
        return self

    def quantile(self, share):
        return self.latencies[min(len(self.latencies) - 1, int(share * len(self.latencies)))]


# ---- attacks: each runs in its own process until it is terminated


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


async def read_answer(reader):
    text = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in text.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    await reader.readexactly(length)
    return int(text.split()[1])


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

# name: whether attackers have a key, rankers, connections, what each does, whether the database
# hangs
ATTACKS = {
    "none": (False, 10, 0, wait_for_close, False),
    "none-1024": (False, 1024, 0, wait_for_close, False),
    "slow-logins": (False, 10, 1024, slow_bodies("/login", None, 100), False),
    "wrong-logins": (False, 10, 256, repeated(wrong_login), False),
    "unknown-keys": (False, 10, 256, repeated(unknown_key), False),
    "unknown-keys-database-hangs": (False, 10, 1024, repeated(unknown_key), True),
    "wrong-logins-database-hangs": (False, 10, 1024, repeated(wrong_login), True),
    "idle": (False, 10, 6000, wait_for_close, False),
    "pipelined-docs": (False, 10, 3000, unread(head("GET", "/docs", key=None), 400), False),
    "slow-bodies-with-key": (True, 10, 1024, slow_bodies(FEEDBACK, KEY, 100_000), False),
    "large-bodies-with-key": (True, 10, 16, repeated(large_body), False),
    "slow-readers-with-key": (True, 1024, 120, unread(STANDINGS), False),
    "reports-with-key": (True, 1024, 16, repeated(report), False),
    "pages-with-key": (True, 1024, 4, repeated(page), False),
}
# Settings of the server for an attack.
SETTINGS = {"idle": ["--max-connections", "100000"]}


def attack(port, name):
    _, _, count, one, _ = ATTACKS[name]
    asyncio.run(forever(port, count, one))


def run(name, kind, folder, number, seconds, duels):
    has_key, rankers, count, _, hangs = ATTACKS[name]
    database = Database(kind, folder, number)
    settings = SETTINGS.get(name, [])
    server = Server(database, settings if "--max-connections" in HELP else [])
    attacker = None
    try:
        prepare(server.port, rankers, duels)
        before = server.memory()
        with database.hanging() if hangs else contextlib.nullcontext():
            if count:
                attacker = multiprocessing.Process(target=attack, args=(server.port, name))
                attacker.start()
                time.sleep(1.0)
            caller = Caller(server)
            caller.start()
            time.sleep(seconds)
            caller.stop()
    finally:
        if attacker:
            attacker.terminate()
            attacker.join()
        server.stop()
    refused = sum(count for status, count in caller.statuses.items() if status != 200)
    return {
        "attack": name,
        "database": kind,
        "with_key": has_key,
        "requests": len(caller.latencies),
        "refused": refused,
        "statuses": {str(status): count for status, count in caller.statuses.items()},
        "p50_ms": caller.quantile(0.5),
        "p99_ms": caller.quantile(0.99),
        "max_ms": caller.latencies[-1],
        "memory_mb": [before, caller.memory],
        "files": caller.files,
        "unbounded": unbounded(before, caller, refused, bool(settings)),
    }


def unbounded(before, caller, refused, more_connections):
    """Why this attack is a failure of the server; an empty list if it is none."""
    found = []
    if refused:
        found.append(f"{refused} requests refused")
    if caller.memory - before > MEMORY_MAX:
        found.append(f"{caller.memory - before:.0f} MB more memory, and {MEMORY_MAX} are allowed")
    if caller.files > FILES_MAX and not more_connections:
        found.append(f"{caller.files} files open, and {FILES_MAX} are allowed")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=f"some of: {', '.join(ATTACKS)}")
    parser.add_argument("--database", choices=["sqlite", "postgres"], help="only this database")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of an attack (default: 10)")
    parser.add_argument("--short", action="store_true", help="one second for each attack, without `none`: for CI")
    parser.add_argument("--json", action="store_true", help="one JSON object for each attack")
    options = parser.parse_args()
    unknown = set(options.attacks) - set(ATTACKS)
    if unknown:
        parser.error(f"no such attack: {', '.join(sorted(unknown))}")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    seconds, duels = (1.0, 50) if options.short else (options.seconds, 500)
    attacks = options.attacks or [name for name in ATTACKS if not (options.short and name.startswith("none"))]
    kinds = [options.database] if options.database else ["sqlite", "postgres"]
    failed = False
    if not options.json:
        print(f"{'attack':30} {'database':9} {'requests':>8} {'refused':>7} {'p50 ms':>8} {'p99 ms':>8} {'max ms':>8} {'memory MB':>14}")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, kind) in enumerate((name, kind) for name in attacks for kind in kinds):
            result = run(name, kind, folder, number, seconds, duels)
            failed |= bool(result["unbounded"])
            if options.json:
                print(json.dumps(result), flush=True)
                continue
            before, most_memory = result["memory_mb"]
            note = "" if result["refused"] == 0 else f"  {result['statuses']}"
            note += "".join(f"  FAILED: {why}" for why in result["unbounded"])
            print(
                f"{name:30} {kind:9} {result['requests']:8} {result['refused']:7} {result['p50_ms']:8.2f}"
                f" {result['p99_ms']:8.2f} {result['max_ms']:8.1f} {before:6.0f} → {most_memory:5.0f}{note}",
                flush=True,
            )
    sys.exit(1 if failed else 0)


HELP = subprocess.run([PROGRAM, "serve", "--help"], capture_output=True, text=True, check=True).stdout

if __name__ == "__main__":
    main()
