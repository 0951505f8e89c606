"""Simulated users: they search and click through the endpoints of the site, as browsers do."""

from __future__ import annotations

import http.client
import json
import random
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any, Callable, Sequence
from urllib.parse import quote, urlsplit

from .corpus import Query

THREADS = 4
# The navigational user (Hofmann et al., 2013): the probability of a click, and of stopping after
# it, by grade.
CLICK = (0.05, 0.5, 0.95)
STOP = (0.2, 0.5, 0.9)
ORDER = (0.0, 0.05, 0.3)
"""The probability of an order after a click, by grade."""


def clicks(documents: Sequence[str], query: Query, coin: random.Random) -> list[int]:
    """The positions that a user clicks, who reads from the top."""
    clicked = []
    for position, document in enumerate(documents):
        grade = query.grades.get(document, 0)
        if coin.random() < CLICK[grade]:
            clicked.append(position)
            if coin.random() < STOP[grade]:
                break
    return clicked


@dataclass(frozen=True)
class Simulated:
    """The actions of the simulated users."""

    searches: int
    clicks: int
    fallbacks: dict[str, int]
    """Pages with the control's ranking, by reason."""


class Users:
    """Up to `users` users, each of whom makes one search; a few at the same time."""

    def __init__(self, site: str, queries: Sequence[Query], users: int, seed: int = 1, buy: bool = False):
        self._buy = buy
        self._site = urlsplit(site)
        self._queries = queries
        self._left = users
        self._searches = 0
        self._clicks = 0
        self._fallbacks: Counter[str] = Counter()
        self._failed: Exception | None = None
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(random.Random(f"{seed} {number}"),), daemon=True)
            for number in range(THREADS)
        ]

    def run(self, stop: Callable[[Simulated], bool], every_seconds: float = 1.0) -> Simulated:
        """Run until no user is left or `stop` says so; it is called every so often."""
        for thread in self._threads:
            thread.start()
        while any(thread.is_alive() for thread in self._threads):
            self._threads[0].join(every_seconds)
            if stop(self.so_far()):
                break
        with self._lock:
            self._left = 0
        for thread in self._threads:
            thread.join()
        if self._failed is not None:
            raise self._failed
        return self.so_far()

    def so_far(self) -> Simulated:
        with self._lock:
            return Simulated(self._searches, self._clicks, dict(self._fallbacks))

    def _run(self, coin: random.Random) -> None:
        connection = http.client.HTTPConnection(self._site.hostname or "", self._site.port, timeout=30)
        try:
            while self._take():
                self._visit(connection, coin)
        except Exception as error:  # reported by `run`
            with self._lock:
                self._failed, self._left = error, 0
        finally:
            connection.close()

    def _take(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0

    def _visit(self, connection: http.client.HTTPConnection, coin: random.Random) -> None:
        query = coin.choice(self._queries)
        found, cookie = _request(connection, "GET", f"/api/search?q={quote(query.text)}")
        clicked = clicks([result["id"] for result in found["results"]], query, coin)
        if found["duel_id"] is not None:
            body = {"duel_id": found["duel_id"], "clicks": clicked, "final": True}
            _request(connection, "POST", "/feedback", body, cookie)
        for document in [found["results"][position]["id"] for position in clicked if self._buy]:
            if coin.random() < ORDER[query.grades.get(document, 0)]:
                _request(connection, "POST", "/order", {"document": document}, cookie)
        with self._lock:
            self._searches += 1
            self._clicks += len(clicked)
            if found["fallback"] is not None:
                self._fallbacks[found["fallback"]] += 1


def _request(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, cookie: str = ""
) -> tuple[Any, str]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"cookie": cookie} if cookie else {})
    response = connection.getresponse()
    answer = response.read()
    if response.status not in (200, 202):
        raise RuntimeError(f"{method} {path}: {response.status} {answer.decode(errors='replace')}")
    return json.loads(answer), (response.getheader("set-cookie") or "").partition(";")[0]
