"""A server on a new database, and requests to it."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess

KEY = "attack-attack-attack-attack"
# Another key, of attackers.
OTHER_KEY = "other-other-other-other"
HOST = "127.0.0.1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("RANKDUEL_PROGRAM") or ROOT / "target/release/rankduel"


class Database:
    """A new database of one kind, and ways to disturb it."""

    def __init__(self, kind, folder, number):
        self.kind = kind
        if kind == "sqlite":
            self.path = pathlib.Path(folder) / f"{number}.db"
            self.url = f"sqlite://{self.path}"
        else:
            server = os.environ["RANKDUEL_TEST_POSTGRES_URL"]
            self.name = f"attack_{os.getpid()}_{number}"
            self.psql(server, f"create database {self.name}")
            self.url = server.replace("/postgres?", f"/{self.name}?")

    @staticmethod
    def psql(url, statement):
        subprocess.run(["psql", "--quiet", url, "--command", statement], check=True, stdout=subprocess.DEVNULL)

    def execute(self, statements):
        if self.kind == "postgres":
            self.psql(self.url, statements)
            return
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as connection:
            connection.executescript(statements)

    def lose_last(self):
        """Take the last entry of the log of the experiment that has most."""
        self.execute(
            "delete from log where position = (select max(position) from log);"
            "update experiment set head = head - 1 where head = (select max(head) from experiment);"
        )

    def away(self):
        """The ways to be away, each meanwhile."""
        if self.kind == "sqlite":
            return [self.moved(copied=False), self.moved(copied=True)]
        return [self.refusing()]

    @contextlib.contextmanager
    def moved(self, copied):
        other = self.path.with_suffix(".away")
        self.path.rename(other)
        if copied:
            shutil.copy(other, self.path)
        try:
            yield
        finally:
            other.rename(self.path)

    @contextlib.contextmanager
    def refusing(self):
        server, name = os.environ["RANKDUEL_TEST_POSTGRES_URL"], self.name
        self.psql(server, f"alter database {name} allow_connections false")
        self.psql(server, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
        try:
            yield
        finally:
            self.psql(server, f"alter database {name} allow_connections true")

    @contextlib.contextmanager
    def stalled(self):
        """Meanwhile, the processes of PostgreSQL that serve this database do not run; SQLite is locked."""
        if self.kind == "sqlite":
            with self.hanging():
                yield
            return
        rows = subprocess.run(
            ["psql", "--quiet", "--tuples-only", os.environ["RANKDUEL_TEST_POSTGRES_URL"], "--command",
             f"select pid from pg_stat_activity where datname = '{self.name}'"],
            check=True, stdout=subprocess.PIPE, text=True,
        ).stdout.split()
        for pid in rows:
            os.kill(int(pid), signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in rows:
                os.kill(int(pid), signal.SIGCONT)

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


def environment(database):
    """Of a command that uses this database."""
    rest = {name: value for name, value in os.environ.items() if not name.startswith("RANKDUEL_")}
    return rest | {"RANKDUEL_API_KEYS": f"{KEY},{OTHER_KEY}", "RANKDUEL_DATABASE_URL": database.url}


class Server:
    def __init__(self, database, *arguments, port=0, **variables):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--listen", f"{HOST}:{port}", *arguments],
            env=environment(database) | variables, stdout=subprocess.PIPE, text=True,
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


def ask(port, method, path, value=None, key=KEY, more=""):
    body = b"" if value is None else json.dumps(value).encode()
    with socket.create_connection((HOST, port), timeout=60) as connection:
        connection.sendall(head(method, path, body, key, more=f"connection: close\r\n{more}"))
        return answer(connection.makefile("rb"))


def prepare(port, rankers, duels):
    """An experiment with some feedback."""
    spec = {"name": "target", "rankers": [f"ranker-{number}" for number in range(rankers)]}
    status, text = ask(port, "POST", "/v1/experiments", spec)
    if status != 201:
        raise RuntimeError(f"the experiment was not created: {text}")
    for kind in ("team-draft", "optimized"):
        rest = {"name": kind, "rankers": ["a", "b"], "interleaving": {"kind": kind}}
        status, text = ask(port, "POST", "/v1/experiments", rest)
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
