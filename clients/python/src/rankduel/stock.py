"""A stock of duels, requested together, so that most searches need no request for their duel."""

from __future__ import annotations

import collections
import threading
import time
from typing import Any, Callable

from .errors import RankduelError
from .pages import Duel, duel_of

Ask = Callable[[dict[str, Any], float], Any]


class Stock:
    """Up to `size` duels, each used once, and not later than `max_age` seconds after the request."""

    def __init__(self, ask: Ask, size: int, max_age: float):
        self._ask = ask
        self._size = size
        self._max_age = max_age
        self._lock = threading.Lock()
        self._duels: collections.deque[tuple[float, Duel]] = collections.deque()

    def take(self, seconds: float) -> Duel:
        """The oldest fresh duel. If there is none, the stock is filled first, within this time."""
        duel = self._fresh()
        if duel is not None:
            return duel
        requested_at = time.monotonic()
        first, *others = self._request(seconds)
        with self._lock:
            self._duels.extend((requested_at, duel) for duel in others)
            while len(self._duels) > 2 * self._size:
                # several threads filled the stock at the same time
                self._duels.popleft()
        return first

    def _fresh(self) -> Duel | None:
        with self._lock:
            while self._duels:
                requested_at, duel = self._duels.popleft()
                is_fresh = time.monotonic() - requested_at <= self._max_age
                if is_fresh and duel.expires_at > time.time():
                    return duel
        return None

    def _request(self, seconds: float) -> list[Duel]:
        several = self._ask({"count": self._size}, seconds).get("duels")
        if not isinstance(several, list) or not several:
            raise RankduelError("not-rankduel", "the answer is not from rankduel: it has no duels", 200)
        return [duel_of(duel) for duel in several]
