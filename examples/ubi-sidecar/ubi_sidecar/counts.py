"""What the side-car has done, in numbers; and a log that an outage does not flood."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

log = logging.getLogger("ubi-sidecar")

LOG_EVERY_SECONDS = 60.0
REASONS = 1000
"""Kinds of messages whose last time is remembered."""


class Counts:
    """Counters by group and name. Threads can share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: dict[str, Counter[str]] = {}
        self._logged_at: dict[str, float] = {}

    def add(self, group: str, name: str, number: int = 1) -> None:
        if number > 0:
            with self._lock:
                self._groups.setdefault(group, Counter())[name] += number

    def of(self, group: str) -> dict[str, int]:
        with self._lock:
            return dict(self._groups.get(group, {}))

    def warn(self, kind: str, message: str) -> None:
        """Log a warning, at most once a minute for each kind."""
        now = time.monotonic()
        with self._lock:
            if now - self._logged_at.get(kind, -LOG_EVERY_SECONDS) < LOG_EVERY_SECONDS:
                return
            if len(self._logged_at) >= REASONS:
                self._logged_at.clear()
            self._logged_at[kind] = now
        log.warning("%s: %s", kind, message)
