"""Feedback on its way: a queue in memory, and a thread that sends it until the server has it."""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import random
import threading
import time
from typing import Any, Mapping

from .transport import Failed, Transport

log = logging.getLogger("rankduel")

BATCH = 100
SEND_SECONDS = 10.0
FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0


@dataclasses.dataclass(frozen=True)
class Counts:
    """What became of feedback since the client was made."""

    recorded: int = 0
    """Durable in the server, and counts."""
    duplicate: int = 0
    """The server had it already: an earlier attempt had arrived, though its answer was lost."""
    refused: int = 0
    """The server does not take it: it came late, contradicts an earlier answer, or is not valid. The log says more."""
    dropped: int = 0
    """Given up here: its duel expired while the server could not be reached, or the queue was full."""
    waiting: int = 0
    """Still to be sent."""


def _retried(failed: Failed) -> bool:
    """Whether another attempt may succeed: always, unless the server has understood and refused."""
    return failed.status is None or failed.status >= 500 or failed.status in (401, 403, 408, 429)


class FeedbackQueue:
    """Takes feedback without waiting, and sends it in the background. The server counts each once however often it comes."""

    def __init__(self, transport: Transport, path: str, most: int):
        self._transport = transport
        self._path = path
        self._most = most
        self._items: collections.deque[tuple[float, Mapping[str, Any]]] = collections.deque()
        self._changed = threading.Condition()
        self._sending = 0
        self._closing = False
        self._thread: threading.Thread | None = None
        self._process = 0
        self._counts: collections.Counter[str] = collections.Counter()

    def put(self, item: Mapping[str, Any], expires_at: float) -> None:
        """Send this; until `expires_at`, in Unix seconds, it is tried again."""
        with self._changed:
            if self._closing:
                self._counts["dropped"] += 1
                return
            if len(self._items) >= self._most:
                # what is newest still has the longest time to arrive
                self._items.popleft()
                self._counts["dropped"] += 1
            self._items.append((expires_at, item))
            # a process that was forked has the queue of its parent and not its thread
            if self._thread is None or self._process != os.getpid():
                self._process = os.getpid()
                self._thread = threading.Thread(target=self._run, name="rankduel-feedback", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def counts(self) -> Counts:
        """So far."""
        with self._changed:
            return Counts(**self._counts, waiting=len(self._items) + self._sending)

    def flush(self, seconds: float) -> bool:
        """Wait until everything is sent; whether it was within so many seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._items and not self._sending, seconds)

    def close(self, seconds: float) -> bool:
        """`flush`, then take nothing more."""
        flushed = self.flush(seconds)
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        return flushed

    def _run(self) -> None:
        wait, failures = 0.0, 0
        while True:
            with self._changed:
                if wait > 0:
                    self._changed.wait_for(lambda: self._closing, wait)
                self._changed.wait_for(lambda: self._closing or self._items)
                if self._closing:
                    self._counts["dropped"] += len(self._items)
                    self._items.clear()
                    return
                batch = self._take()
            if not batch:
                continue
            failures = 0 if wait == 0 else failures + 1
            wait = self._send(batch, failures)

    def _take(self) -> list[tuple[float, Mapping[str, Any]]]:
        now = time.time()
        batch: list[tuple[float, Mapping[str, Any]]] = []
        while self._items and len(batch) < BATCH:
            item = self._items.popleft()
            if item[0] <= now:
                self._counts["dropped"] += 1
            else:
                batch.append(item)
        self._sending = len(batch)
        self._changed.notify_all()
        return batch

    def _send(self, batch: list[tuple[float, Mapping[str, Any]]], failures: int) -> float:
        """Seconds to wait before the next."""
        statuses: list[str] = []
        wait = 0.0
        again = False
        try:
            answer = self._transport.post(self._path, {"feedback": [item for _, item in batch]}, SEND_SECONDS)
            for result in answer["results"]:
                status = str(result["status"])
                statuses.append(status if status in ("recorded", "duplicate") else "refused")
                if statuses[-1] == "refused":
                    log.warning("feedback is not taken (%s): %s", status, result.get("detail", ""))
        except Failed as failed:
            again = _retried(failed)
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0**failures) * random.uniform(0.5, 1.0)
            if failed.retry_after is not None:
                wait = max(wait, min(failed.retry_after, LONGEST_WAIT))
            if failures == 0 or not again:
                log.warning("feedback %s: %s", "waits" if again else "is given up", failed)
            if not again:
                statuses = ["refused"] * len(batch)
        except Exception:
            log.exception("feedback is given up: the answer was not one of rankduel")
            statuses = ["refused"] * len(batch)
        with self._changed:
            if again:
                self._items.extendleft(reversed(batch))
            self._counts.update(statuses)
            self._sending = 0
            self._changed.notify_all()
        return wait
