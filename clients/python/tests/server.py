"""A real server that tests start, stop, freeze and start again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

PROGRAM = os.environ.get("RANKDUEL_PROGRAM", str(Path(__file__).parents[3] / "target" / "debug" / "rankduel"))


NOBODY = "http://127.0.0.1:1"
"""A port that the system gives to no server."""


def _state(task: Path) -> str:
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


class Server:
    """`rankduel serve` with its own port and database, which it keeps when it is started again."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.url = "http://127.0.0.1:0"  # any port, until the first start
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        database = f"sqlite://{self._folder.name}/rankduel.db"
        listen = self.url.removeprefix("http://")
        command = [PROGRAM, "serve", "--listen", listen, "--database-url", database, "--log", "error"]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"the server ended with {self._process.wait()}")
        self.url = line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def freeze(self) -> None:
        """Suspend all threads of the server."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        # the threads do not stop at the same moment
        while not all(_state(task) == "T" for task in tasks.iterdir()):
            time.sleep(0.01)

    def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        self.kill()
        self._folder.cleanup()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(self.url + path, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            text = response.read()
        return json.loads(text) if text.startswith(b"{") else text

    def create(self, name: str, **more: Any) -> None:
        rankers = ["bm25", "neural"]
        # pcomp compares all pairs in turn, so no page has a single ranker
        policy = {"kind": "pcomp", "horizon": 1_000_000, "batches": 1}
        self.call("POST", "/v1/experiments", {"name": name, "rankers": rankers, "policy": policy, **more})

    def standings(self, name: str) -> Any:
        return self.call("GET", f"/v1/experiments/{name}/standings")
