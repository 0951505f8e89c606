"""The search backend: rankings, pages and clicks. It knows nothing of HTTP towards the visitor.

Whatever rankduel or a ranker does, `search` returns a page:

- rankduel does not answer in time, or is down: the client returns the control's ranking.
- A ranker fails or takes too long: the control's ranking, without feedback.
- The page is empty although the control finds something: the control's ranking.
"""

from __future__ import annotations

import functools
import logging
import secrets
import threading
import time
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from typing import Any, Mapping, Sequence

from rankduel import Rankduel, RankduelError

from .rankers import Ranker

log = logging.getLogger("search-site")

LENGTH = 10
PRICE = 4.90
"""Of a printed page."""
SHORT_WORDS = 3
THREADS_PER_RANKER = 4
VISITS = 10_000
"""Visits that are remembered, the latest ones."""


class RankerFailed(Exception):
    """A ranker raised an exception or took too long."""


class SearchFailed(Exception):
    """Not even the control has a ranking."""


@dataclass(frozen=True)
class Results:
    """One page of results."""

    query: str
    documents: tuple[str, ...]
    duel_id: str | None
    """The visitor's browser sends it back with the clicks. None for a page without feedback."""
    fallback: str | None = None
    """Why the page has the control's ranking; None if rankduel selected the rankers."""


@dataclass
class _Visit:
    results: Results
    at: float = field(default_factory=time.monotonic)


class _Bounded:
    """Runs a ranker with a time limit. A ranker that hangs blocks only its own few threads."""

    def __init__(self, name: str, ranker: Ranker, seconds: float):
        self._name = name
        self._seconds = seconds
        self._free = threading.Semaphore(THREADS_PER_RANKER)
        self._threads = ThreadPoolExecutor(THREADS_PER_RANKER, thread_name_prefix=name)
        self._ranking = functools.lru_cache(maxsize=10_000)(lambda query: tuple(ranker(query)))

    def __call__(self, query: str) -> Sequence[str]:
        if not self._free.acquire(timeout=self._seconds):
            raise RankerFailed(f"{self._name}: all {THREADS_PER_RANKER} threads are busy")
        future = self._threads.submit(self._ranking, query)
        future.add_done_callback(lambda _: self._free.release())
        try:
            return future.result(self._seconds)
        except FutureTimeout:
            raise RankerFailed(f"{self._name}: no ranking within {self._seconds} s") from None
        except Exception as error:
            raise RankerFailed(f"{self._name}: {error!r}") from error

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


class Site:
    """One experiment's search backend. Threads can share it."""

    def __init__(
        self,
        rankers: Mapping[str, Ranker],
        control: str,
        rankduel: Rankduel,
        *,
        ranker_seconds: float = 0.5,
        settle_seconds: float = 30.0,
        sells: bool = False,
    ):
        self.sells = sells
        self._rankers = {name: _Bounded(name, ranker, ranker_seconds) for name, ranker in rankers.items()}
        self._control = control
        self._rankduel = rankduel
        self._settle_seconds = settle_seconds
        self._lock = threading.Lock()
        self._visits: OrderedDict[str, _Visit] = OrderedDict()
        self._fallbacks: Counter[str] = Counter()
        self._closing = threading.Event()
        self._settling = threading.Thread(target=self._settle_old_pages, daemon=True)
        self._settling.start()

    def search(self, query: str, session: str) -> Results:
        """The first page for a query. Raises `SearchFailed` only if the control fails as well."""
        with self._lock:
            visit = self._visits.get(session)
            if visit is not None and visit.results.query == query:
                return visit.results  # a reload, or the way back from a result
        self.leave(session)
        results = self._new_page(query, session)
        if results.fallback is not None:
            self._fallbacks[results.fallback] += 1
        with self._lock:
            self._visits[session] = _Visit(results)
            oldest = self._visits.popitem(last=False)[1] if len(self._visits) > VISITS else None
        self._settle(oldest)
        return results

    def _new_page(self, query: str, session: str) -> Results:
        try:
            # the verdict counts one answer of each session
            page = self._rankduel.page(
                lambda rankers: {ranker: self._ranking(ranker, query) for ranker in rankers},
                length=LENGTH,
                unit=session,
                segment=segment_of(query),
            )
        except RankerFailed as error:
            log.warning("the control is shown: %s", error)
            return self._control_page(query, "ranker-failed")
        if page.slots or page.fallback is not None:
            return Results(query, tuple(page.documents), page.duel_id, page.fallback)
        self._rankduel.clicked(page, [])  # an empty page satisfies nobody
        return self._control_page(query, "empty-page")

    def _ranking(self, ranker: str, query: str) -> Sequence[str]:
        if ranker not in self._rankers:
            raise RankerFailed(f"{ranker}: the experiment has this ranker, but the site does not")
        return self._rankers[ranker](query)

    def _control_page(self, query: str, reason: str) -> Results:
        try:
            return Results(query, tuple(self._ranking(self._control, query)[:LENGTH]), None, reason)
        except RankerFailed as error:
            raise SearchFailed(str(error)) from error

    def clicked(self, duel_id: str, clicks: Sequence[int], *, final: bool, session: str | None = None) -> None:
        """Pass on clicks on positions (from 0). The `duel_id` is all that rankduel needs, so any
        process of the site can receive them. rankduel refuses an id that it did not issue."""
        if final and session is not None:
            with self._lock:
                visit = self._visits.get(session)
                if visit is not None and visit.results.duel_id == duel_id:
                    del self._visits[session]
        self._rankduel.clicked(duel_id, list(clicks), final=final)

    def ordered(self, document: str, session: str) -> str:
        """A visitor has ordered a print of a page. rankduel joins it with the page of results on
        which the session clicked it. A shop keeps its orders, so it can send them again, or all of
        them at night: `rankduel orders`."""
        at = datetime.now(timezone.utc).isoformat()
        order = {"order_id": secrets.token_urlsafe(12), "unit": session, "at": at, "lines": [{"document": document, "value": PRICE}]}
        try:
            return str(self._rankduel.report_orders([order])[0]["status"])
        except RankduelError as error:
            log.warning("an order is not reported: %s", error)
            return "not-reported"

    def leave(self, session: str) -> None:
        """The visitor has left the page: its clicks so far are all there are."""
        with self._lock:
            visit = self._visits.pop(session, None)
        self._settle(visit)

    def _settle(self, visit: _Visit | None) -> None:
        if visit is not None and visit.results.duel_id is not None:
            self.clicked(visit.results.duel_id, [], final=True)

    def _settle_old_pages(self) -> None:
        while not self._closing.wait(min(1.0, self._settle_seconds)):
            limit = time.monotonic() - self._settle_seconds
            with self._lock:
                left = [session for session, visit in self._visits.items() if visit.at < limit]
            for session in left:
                self.leave(session)

    def counts(self) -> dict[str, Any]:
        """Fallbacks by reason, and feedback by result."""
        return {"fallbacks": dict(self._fallbacks), "feedback": asdict(self._rankduel.counts())}

    def close(self) -> None:
        """Settle all pages and send what is left to send."""
        self._closing.set()
        self._settling.join()
        for session in list(self._visits):
            self.leave(session)
        self._rankduel.close(seconds=3.0)
        for ranker in self._rankers.values():
            ranker.close()


def segment_of(query: str) -> str:
    """The segment of a page: whether its query has a few words or more. `server.py` declares both."""
    return "short query" if len(query.split()) <= SHORT_WORDS else "long query"


def new_session() -> str:
    """An id for a visitor. It says nothing about the person."""
    return secrets.token_urlsafe(12)
