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
    """Up to `size` duels, each used once, and not later than `max_age` seconds after the request.

    A server that does not know `count` refuses it once; from then on the stock makes single
    requests, as many as the deadline allows.
    """

    def __init__(self, ask: Ask, size: int, max_age: float):
        self._ask = ask
        self._size = size
        self._max_age = max_age
        self._knows_count = True
        self._lock = threading.Lock()
        self._duels: collections.deque[tuple[float, Duel]] = collections.deque()

    def take(self, seconds: float) -> Duel:
        """The oldest fresh duel. If there is none, the stock is filled first, within this time."""
        duel = self._fresh()
        if duel is not None:
            return duel
        requested_at = time.monotonic()
        first, *others = self._request(requested_at + seconds)
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

    def _request(self, end: float) -> list[Duel]:
        if self._knows_count:
            try:
                answer = self._ask({"count": self._size}, end - time.monotonic())
            except RankduelError as failed:
                if failed.status != 422:
                    raise
                self._knows_count = False
            else:
                several = answer.get("duels")
                if isinstance(several, list) and several:
                    return [duel_of(duel) for duel in several]
                return self._singles([duel_of(answer)], end)
        return self._singles([], end)

    def _singles(self, duels: list[Duel], end: float) -> list[Duel]:
        while len(duels) < self._size:
            left = end - time.monotonic()
            if duels and left <= 0:
                break
            try:
                duels.append(duel_of(self._ask({}, left)))
            except RankduelError:
                if not duels:
                    raise
                break
        return duels
