"""A queue of feedback in memory, and a thread that sends it until the server has it."""

from __future__ import annotations

import collections
import dataclasses
import logging
import os
import random
import threading
import time
from typing import Any, Mapping

from .errors import RankduelError
from .transport import Transport, encode

log = logging.getLogger("rankduel")

BATCH = 100
SEND_SECONDS = 10.0
FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
ABOUT_AN_ITEM = (400, 413, 422)
"""Statuses with which a server or a proxy refuses a whole request, perhaps for one of its items."""
LATE = "; if clicks come one by one, pass final=False"


@dataclasses.dataclass(frozen=True)
class Counts:
    """Number of feedback items since the client was created, by result."""

    recorded: int = 0
    """Stored by the server; they count."""
    duplicate: int = 0
    """Already stored: an earlier attempt had arrived, but its answer was lost."""
    refused: int = 0
    """Refused by the server: late, different from an earlier answer, or invalid. The log has the
    reason."""
    dropped: int = 0
    """Discarded by this client: the duel expired while the server could not be reached, the queue was
    full, or the client was closed."""
    waiting: int = 0
    """Not sent yet, or not answered yet."""


class FeedbackQueue:
    """Accepts feedback without waiting, and sends it in the background. The server counts each item
    once, even if it arrives several times."""

    def __init__(self, transport: Transport, path: str, most: int):
        self._transport = transport
        self._path = path
        self._most = most
        self._items: collections.deque[tuple[float, bytes]] = collections.deque()
        self._together = BATCH
        self._changed = threading.Condition()
        self._sending = 0
        self._closing = False
        self._thread: threading.Thread | None = None
        self._process = 0
        self._counts: collections.Counter[str] = collections.Counter()

    def put(self, item: Mapping[str, Any], expires_at: float) -> None:
        """Queue an item. It is sent repeatedly until the server has it, at most until `expires_at`
        (Unix seconds). An item that has no form in JSON is refused at once."""
        try:
            content = encode(item)
        except RankduelError as failed:
            log.warning("feedback is refused: %s", failed)
            with self._changed:
                self._counts["refused"] += 1
            return
        with self._changed:
            if self._closing:
                self._counts["dropped"] += 1
                return
            if len(self._items) >= self._most:
                # drop the oldest item: newer ones have more time left to arrive
                self._items.popleft()
                self._counts["dropped"] += 1
            self._items.append((expires_at, content))
            # a forked process has a copy of the queue, but not the thread
            if self._thread is None or self._process != os.getpid():
                self._process = os.getpid()
                self._thread = threading.Thread(target=self._run, name="rankduel-feedback", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def counts(self) -> Counts:
        """The counts so far."""
        with self._changed:
            return Counts(**self._counts, waiting=len(self._items) + self._sending)

    def flush(self, seconds: float) -> bool:
        """Wait at most this many seconds until the queue is empty. Returns whether it is."""
        with self._changed:
            seconds = min(seconds, threading.TIMEOUT_MAX)
            return self._changed.wait_for(lambda: not self._items and not self._sending, seconds)

    def close(self, seconds: float) -> bool:
        """`flush`, then accept no more items."""
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
                    self._changed.notify_all()  # a caller of `flush` may wait for this
                    return
                batch = self._take()
            if not batch:
                continue
            failures = 0 if wait == 0 else failures + 1
            wait = self._send(batch, failures)

    def _take(self) -> list[tuple[float, bytes]]:
        now = time.time()
        batch: list[tuple[float, bytes]] = []
        while self._items and len(batch) < self._together:
            item = self._items.popleft()
            if item[0] <= now:
                self._counts["dropped"] += 1
            else:
                batch.append(item)
        self._sending = len(batch)
        self._changed.notify_all()
        return batch

    def _send(self, batch: list[tuple[float, bytes]], failures: int) -> float:
        """Send a batch. Returns the seconds to wait before the next one."""
        statuses: list[str] = []
        wait = 0.0
        again = False
        try:
            content = b'{"feedback":[' + b",".join(item for _, item in batch) + b"]}"
            answer = self._transport.post(self._path, content, SEND_SECONDS)
            results = answer.get("results")
            if not isinstance(results, list) or len(results) != len(batch):
                raise RankduelError("not-rankduel", "the answer has no result for each item", 200)
            self._together = min(2 * self._together, BATCH)
            for result in results:
                members = result if isinstance(result, dict) else {}
                status = members.get("status")
                statuses.append(status if status in ("recorded", "duplicate") else "refused")
                if statuses[-1] == "refused":
                    hint = LATE if status == "late" else ""
                    log.warning("feedback is refused (%s): %s%s", status, members.get("detail", ""), hint)
        except RankduelError as failed:
            if failed.status in ABOUT_AN_ITEM and len(batch) > 1:
                # send fewer together, until the item that is refused is alone
                self._together = len(batch) // 2
                self._put_back(batch)
                return 0.0
            again = failed.retryable
            wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0**failures) * random.uniform(0.5, 1.0)
            if failed.retry_after is not None:
                wait = max(wait, min(failed.retry_after, LONGEST_WAIT))
            if failures == 0 or not again:
                log.warning("feedback %s: %s", "is sent again later" if again else "is discarded", failed)
            if not again:
                statuses = ["refused"] * len(batch)
        if again:
            self._put_back(batch)
            return wait
        with self._changed:
            self._counts.update(statuses)
            self._sending = 0
            self._changed.notify_all()
        return wait

    def _put_back(self, batch: list[tuple[float, bytes]]) -> None:
        with self._changed:
            self._items.extendleft(reversed(batch))
            self._sending = 0
