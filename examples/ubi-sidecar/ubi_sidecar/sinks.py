"""Where the records for `ubi_queries` go: a file of JSON lines, or another collector."""

from __future__ import annotations

import http.client
import threading
import urllib.error
import urllib.request
from collections import deque
from pathlib import Path
from typing import Protocol

from .counts import Counts

BATCH = 100
SEND_SECONDS = 10.0
FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0


class Sink(Protocol):
    def put(self, record: bytes) -> None:
        """Take a record, a line of JSON. A page does not wait for it, and never fails by it."""

    def close(self) -> None: ...


class FileSink:
    """Appends to a file. It is opened for each record, so that it can be rotated."""

    def __init__(self, path: Path, counts: Counts):
        self._path = path
        self._counts = counts
        self._lock = threading.Lock()

    def put(self, record: bytes) -> None:
        try:
            with self._lock, self._path.open("ab") as file:
                file.write(record)
            self._counts.add("queries", "written")
        except OSError as error:
            self._counts.add("queries", "dropped")
            self._counts.warn("a record of a query is dropped", str(error))

    def close(self) -> None:
        pass


class HttpSink:
    """Posts arrays of records to a collector, in the background. The queue is in memory; if it is
    full, the oldest record is dropped."""

    def __init__(self, url: str, counts: Counts, most: int):
        self._url = url
        self._counts = counts
        self._most = most
        self._records: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def put(self, record: bytes) -> None:
        with self._changed:
            if len(self._records) >= self._most:
                self._records.popleft()
                self._counts.add("queries", "dropped")
                self._counts.warn("a record of a query is dropped", f"{self._most} wait for {self._url}")
            self._records.append(record)
            self._changed.notify_all()

    def close(self) -> None:
        """Wait a moment until the collector has the records."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(SEND_SECONDS + 1)
        if self._records:
            self._counts.add("queries", "dropped", len(self._records))
            self._counts.warn("records of queries are dropped", f"{len(self._records)} waited at the end")

    def _run(self) -> None:
        failures = 0
        while True:
            with self._changed:
                if failures > 0:
                    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures, 20))
                    self._changed.wait_for(lambda: self._closing, wait)
                self._changed.wait_for(lambda: self._closing or self._records)
                batch = [self._records.popleft() for _ in range(min(BATCH, len(self._records)))]
                is_last = self._closing
            if not batch:
                return
            if self._post(batch):
                failures = 0
                continue
            failures += 1
            with self._changed:
                space = max(0, self._most - len(self._records))
                self._records.extendleft(reversed(batch[-space:] if space else []))
                self._counts.add("queries", "dropped", len(batch) - space)
            if is_last:
                return

    def _post(self, batch: list[bytes]) -> bool:
        """Whether the records are settled: taken, or refused for good."""
        body = b"[" + b",".join(record.strip() for record in batch) + b"]"
        request = urllib.request.Request(self._url, body, {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=SEND_SECONDS):
                self._counts.add("queries", "written", len(batch))
                return True
        except urllib.error.HTTPError as error:
            error.close()
            self._counts.warn("the collector of queries answers", str(error))
            if error.code >= 500 or error.code in (401, 403, 404, 408, 429):
                return False
            self._counts.add("queries", "dropped", len(batch))
            return True
        except (OSError, http.client.HTTPException) as error:
            self._counts.warn("the collector of queries does not answer", str(error))
            return False
