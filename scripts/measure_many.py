"""Measure the cost of many experiments for a server that has them all in memory and is idle:

    python3 scripts/measure_many.py [COUNT]                                        a fresh SQLite file
    scripts/with-postgres python3 scripts/measure_many.py [COUNT] --postgres       a fresh PostgreSQL server

Each of COUNT (10,000) experiments has ten rankers and up to ten outcomes in its log. Prints the
memory of the server with none and with all of them loaded, the time to load them, and the processor
time of a minute of replication. The program is target/release/rankduel, or RANKDUEL_BINARY. Linux
only: it reads /proc.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from threading import local
from urllib.parse import urlsplit

OUTCOMES = 10
IDLE_SECONDS = 30
PROGRAM = os.environ.get("RANKDUEL_BINARY", "target/release/rankduel")


class Server:
    def __init__(self, database: str) -> None:
        environment = {**os.environ, "RANKDUEL_DATABASE_URL": database, "RANKDUEL_LAME_DUCK_SECONDS": "0"}
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--log", "error", "--memory-megabytes", "16384"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.address = urlsplit(self.process.stdout.readline().split()[-1]).netloc
        self.kept = local()

    def call(self, method: str, path: str, body: object = None) -> dict:
        if not hasattr(self.kept, "connection"):
            self.kept.connection = HTTPConnection(self.address, timeout=120)
        headers = {} if body is None else {"content-type": "application/json"}
        self.kept.connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = self.kept.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def memory_mb(self) -> float:
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

    def processor_seconds(self) -> float:
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def idle(self) -> float:
        """Processor seconds of a minute without requests."""
        time.sleep(5)
        before = self.processor_seconds()
        time.sleep(IDLE_SECONDS)
        return (self.processor_seconds() - before) * 60 / IDLE_SECONDS

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def main() -> None:
    numbers = [argument for argument in sys.argv[1:] if argument.isdigit()]
    count = int(numbers[0]) if numbers else 10_000
    folder = tempfile.TemporaryDirectory()
    database = os.environ["RANKDUEL_TEST_POSTGRES_URL"] if "--postgres" in sys.argv else f"sqlite://{folder.name}/rankduel.db"

    server = Server(database)

    def fill(number: int) -> None:
        name = f"many-{number}"
        rankers = [f"ranker-{ranker}" for ranker in range(10)]
        server.call("POST", "/v1/experiments", {"name": name, "rankers": rankers, "policy": {"kind": "d-ts"}})
        duels = [server.call("POST", f"/v1/experiments/{name}/next-duel") for _ in range(OUTCOMES)]
        answers = [{"duel_id": duel["duel_id"], "outcome": "left"} for duel in duels if not duel["self_duel"]]
        server.call("POST", f"/v1/experiments/{name}/feedback", {"feedback": answers})

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(fill, range(count)))
    server.stop()

    server = Server(database)
    print(f"{'none loaded':24} {server.memory_mb():8.0f} MB {server.idle():8.2f} s of processor a minute")
    started = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: server.call("POST", f"/v1/experiments/many-{number}/next-duel"), range(count)))
    loaded = time.monotonic() - started
    idle = server.idle()
    print(f"{f'{count} loaded':24} {server.memory_mb():8.0f} MB {idle:8.2f} s of processor a minute; loading took {loaded:.0f} s")
    server.stop()
    folder.cleanup()


if __name__ == "__main__":
    main()
