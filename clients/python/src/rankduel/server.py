"""Requests about one experiment: the pause after failures, and the attempts to send feedback."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Mapping, Sequence, TypeVar
from urllib.parse import quote

from .errors import RankduelError
from .transport import Transport, encode

FAILURES_TO_REST = 5
"""After this many consecutive requests without an answer, the client pauses for `REST_SECONDS`."""
REST_SECONDS = 1.0
LONGEST_REST = 5.0
"""Longest pause that a `Retry-After` of the server causes."""
ATTEMPTS = 5
"""A report has this share of its time for one attempt."""
FIRST_WAIT = 0.1

T = TypeVar("T")


class Server:
    """One experiment of a server."""

    def __init__(self, transport: Transport, experiment: str):
        self._transport = transport
        self.path = f"/v1/experiments/{quote(experiment, safe='')}"
        self._lock = threading.Lock()
        self._closed = False
        self._failures = 0
        self._rest_until = 0.0

    def ask(self, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        """Request a duel or a page, in one attempt: a search waits for the answer."""
        if self._closed:
            raise RankduelError("closed", "the client was closed")
        with self._lock:
            now = time.monotonic()
            if now < self._rest_until:
                raise RankduelError("resting", "the last requests failed, so the client sends none for a moment")
            if self._failures >= FAILURES_TO_REST:
                # this request probes the server; the others fall back until it has a result
                self._rest_until = now + REST_SECONDS
        try:
            answer = self._transport.post(self.path + path, body, seconds)
        except RankduelError as failed:
            with self._lock:
                self._failures = self._failures + 1 if failed.is_transient else 0
                rest = REST_SECONDS if self._failures >= FAILURES_TO_REST else 0.0
                if failed.is_transient and failed.retry_after is not None:
                    rest = max(rest, min(failed.retry_after, LONGEST_REST))
                self._rest_until = time.monotonic() + rest
            raise
        with self._lock:
            self._failures = 0
            self._rest_until = 0.0
        return answer

    def report(self, item: Mapping[str, Any], seconds: float) -> str:
        """Send one item of feedback. Transient errors are followed by another attempt while there
        is time for a whole one; the server counts the item once."""
        return self._repeated("/feedback", item, _status, seconds)

    def orders(self, orders: Sequence[Mapping[str, Any]], seconds: float) -> list[dict[str, Any]]:
        """Send orders, like `report`. Returns a result for each."""
        return self._repeated("/orders", {"orders": orders}, lambda answer: _results(answer, len(orders)), seconds)

    def _repeated(self, path: str, body: Mapping[str, Any], read: Callable[[Any], T], seconds: float) -> T:
        content = encode(body)
        limit = seconds / ATTEMPTS
        last = time.monotonic() + seconds - limit
        for attempt in range(1000):
            try:
                return read(self._transport.post(self.path + path, content, limit))
            except RankduelError as failed:
                wait = FIRST_WAIT * 2.0 ** min(attempt, 10) * random.uniform(0.5, 1.0)
                wait = max(wait, failed.retry_after or 0.0)
                if not failed.is_transient or time.monotonic() + wait > last:
                    raise
            time.sleep(wait)
        raise AssertionError("the waits double, so the time ends first")

    def rankers(self, seconds: float) -> list[str]:
        """The rankers of the experiment."""
        try:
            answer = self._transport.get(self.path, seconds)
            return [str(ranker["id"]) for ranker in answer["rankers"]]
        except (KeyError, TypeError) as error:
            raise RankduelError("not-rankduel", f"the answer is not from rankduel: {error!r}", 200) from error

    def close(self) -> None:
        """Answer all later requests with the error `closed`."""
        self._closed = True


def _status(answer: Any) -> str:
    status = answer.get("status")
    if not isinstance(status, str):
        raise RankduelError("not-rankduel", "the answer is not from rankduel: it has no status", 200)
    return status


def _results(answer: Any, number: int) -> list[dict[str, Any]]:
    results = answer.get("results")
    if not isinstance(results, list) or len(results) != number or not all(isinstance(one, dict) for one in results):
        raise RankduelError("not-rankduel", "the answer is not from rankduel: it has no result for each order", 200)
    return results
