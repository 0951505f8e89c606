"""rankduel and the side-car as processes, with an experiment of two rankers."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable
from urllib.parse import urlsplit

from search_site import server

RUN = Path(__file__).resolve().parents[1] / "run"
EXPERIMENT = "search"
NUMBERS = [f"d{number}" for number in range(20)]
RANKINGS = {"forward": NUMBERS[:10], "backward": NUMBERS[10:]}
"""Without common documents, so that a click says which ranker won."""
SECONDS = 60.0
"""Long limits, because a test machine may be busy."""


class Sidecar:
    """The side-car, as its users start it, until `stop`."""

    def __init__(self, state: Path, rankduel: str, *options: str, deadline: float = SECONDS):
        command = [str(RUN), "--experiment", EXPERIMENT, "--control", "forward", "--rankduel", rankduel]
        command += ["--listen", "127.0.0.1:0", "--state", str(state), "--deadline", str(deadline), *options]
        self._log = (state.parent / "sidecar.log").open("ab")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("side-car"):
                self._port = urlsplit(line.split()[1]).port
                break
        else:
            raise AssertionError(f"the side-car ended with code {self._process.wait()}")

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def page(self, **request: Any) -> Any:
        status, answer = self.send("POST", "/page", json.dumps({"rankings": RANKINGS, **request}).encode())
        assert status == 200, answer
        return answer

    def duel(self, **request: Any) -> Any:
        """A page of both rankers: sometimes rankduel selects one ranker alone."""
        for _ in range(1000):
            page = self.page(**request)
            if all(set(ranking) & set(page["documents"]) for ranking in RANKINGS.values()):
                return page
        raise AssertionError("no page has documents of both rankers")

    def post(self, *events: Any) -> Any:
        status, answer = self.send("POST", "/ubi_events", json.dumps(events).encode())
        assert status == 202, answer
        return answer

    def status(self) -> Any:
        return self.send("GET", "/status")[1]

    def until(self, group: str, **counts: int) -> None:
        """Wait until a group of counts is exactly this."""
        until(lambda: bool(self.status()[group] == counts), f"{group} {counts}", self.status)

    def stop(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()  # type: ignore[union-attr]
            self._log.close()


def until(condition: Callable[[], bool], what: str, seen: Callable[[], Any]) -> None:
    """Wait for a condition that comes true soon."""
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"not within {SECONDS} s: {what}; instead {seen()}")
        time.sleep(0.05)


class Case(unittest.TestCase):
    """A server, and a folder for the side-car."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.state = self.folder / "state"
        self.queries = self.state / "ubi_queries.jsonl"
        self.rankduel = server.RankduelServer(self.folder / "rankduel.db")
        self.addCleanup(lambda: self.rankduel.stop())
        experiment = {
            "name": EXPERIMENT,
            "rankers": list(RANKINGS),
            "policy": {"kind": "uniform"},
            "conclude_at": None,
        }
        server.call(f"{self.rankduel.url}/v1/experiments", experiment)

    def sidecar(self, *options: str, deadline: float = SECONDS) -> Sidecar:
        sidecar = Sidecar(self.state, self.rankduel.url, *options, deadline=deadline)
        self.addCleanup(sidecar.stop)
        return sidecar

    def stop_rankduel(self) -> None:
        self._port = urlsplit(self.rankduel.url).port or 0
        self.rankduel.stop()

    def start_rankduel(self) -> None:
        self.rankduel = server.RankduelServer(self.folder / "rankduel.db", self._port)

    def freeze_rankduel(self) -> None:
        self.rankduel.process.send_signal(signal.SIGSTOP)

    def continue_rankduel(self) -> None:
        self.rankduel.process.send_signal(signal.SIGCONT)

    def settle(self, *pages: Any) -> None:
        """The searchers have left these pages."""
        items = [{"duel_id": duel_of(page), "clicks": []} for page in pages]
        server.call(f"{self.rankduel.url}/v1/experiments/{EXPERIMENT}/feedback", {"feedback": items})

    def report(self, name: str) -> Any:
        return server.call(f"{self.rankduel.url}/v1/experiments/{EXPERIMENT}/{name}")

    def wins(self, duels: int) -> dict[str, int]:
        """The wins of each ranker, after so many duels."""
        standings = self.report("standings")
        self.assertEqual(standings["duels"], duels)
        return {row["id"]: row["wins"] for row in standings["rankers"]}

    def records(self) -> list[Any]:
        return [json.loads(line) for line in self.queries.read_text().splitlines()]


def duel_of(page: Any) -> str:
    duel_id = page["ubi"]["event_attributes"]["duel_id"]
    assert isinstance(duel_id, str)
    return duel_id


def click(page: Any, document: str | int, action: str = "click", **members: Any) -> dict[str, Any]:
    """An event as an application sends it that knows nothing of rankduel: it has the `query_id`."""
    return {
        "action_name": action,
        "query_id": page["ubi"]["query_id"],
        "client_id": "c-1",
        "user_query": "red shoes",
        "timestamp": "2026-11-21T16:00:00.000Z",
        "event_attributes": {"object": {"object_id": document}, "position": {"ordinal": 1}},
        **members,
    }


def one_of(page: Any, ranker: str) -> str:
    """A document of this ranker on the page."""
    found = [document for document in page["documents"] if document in RANKINGS[ranker]]
    return str(found[0])
