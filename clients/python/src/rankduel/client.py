"""The client: it always returns a page, and sends feedback until the server has it."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any, Callable, Dict, Mapping, Sequence, TypeVar, Union

from .errors import RankduelError
from .feedback import Counts, FeedbackQueue
from .pages import UNLIMITED, Click, Duel, Lists, Page, Rankings, Window, control_page, duel_of, ids, page_of, visit
from .server import Server
from .stock import Stock
from .transport import Transport

log = logging.getLogger("rankduel")

T = TypeVar("T")

LOG_EVERY_SECONDS = 60.0
KEPT_SECONDS = 24 * 3600.0
"""Feedback for which only the `duel_id` is known is repeated at most this long."""

LONGEST_LIMIT = 86_400.0
"""Above any useful time limit, and below what a socket accepts."""
MOST_DUELS = 1000
"""The server issues no more at once."""

Made = Dict[str, Union[Sequence[str], Exception]]
"""The ranking of each ranker, or the exception that it raised."""

Metrics = Mapping[str, Mapping[str, float]]
"""Values by ranker and metric."""

Order = Mapping[str, Any]
"""An order or its cancellation, as `Rankduel.report_orders` describes it."""


class Rankduel:
    """One experiment of a rankduel server. Threads can share a client. Create one for each process,
    after the process has forked.

    If rankduel does not answer within `deadline` seconds, the client falls back to the ranker
    `control`. The deadline includes connecting, but not the lookup of the server's name. A fallback
    is logged at most once a minute for each reason. `on_fallback` is called with the reason each
    time. Feedback about such a page is ignored.

    With `stock`, the client requests that many duels at once and uses each for at most
    `stock_seconds`: pages of expensive rankings then need one request instead of two. A duel from
    the stock may be that much older than the latest feedback.
    """

    def __init__(
        self,
        url: str,
        *,
        experiment: str,
        control: str,
        key: str | None = None,
        deadline: float = 0.05,
        connections: int = 32,
        queue: int = 10_000,
        stock: int = 0,
        stock_seconds: float = 5.0,
        on_fallback: Callable[[str], None] | None = None,
    ):
        for name, seconds in (("deadline", deadline), ("stock_seconds", stock_seconds)):
            _check_limit(name, seconds)
        for name, number, least in (("queue", queue, 1), ("connections", connections, 1), ("stock", stock, 0)):
            if not isinstance(number, int) or number < least:
                raise ValueError(f"{name} is {number!r}; it must be a whole number of at least {least}")
        if stock > MOST_DUELS:
            raise ValueError(f"stock is {stock}; it must be at most {MOST_DUELS}")
        for name, text in (("experiment", experiment), ("control", control)):
            if not isinstance(text, str) or not text:
                raise ValueError(f"{name} is {text!r}; it must be a name")
        self._experiment = experiment
        self._control = control
        self._deadline = deadline
        self._on_fallback = on_fallback
        self._transport = Transport(url, key, connections)
        self._server = Server(self._transport, experiment)
        self._feedback = FeedbackQueue(self._transport, self._server.path + "/feedback", queue)
        ask = lambda body, seconds: self._server.ask("/next-duel", body, seconds)  # noqa: E731
        self._stock = Stock(ask, stock, stock_seconds) if stock > 0 else None
        self._lock = threading.Lock()
        self._logged_at: dict[str, float] = {}

    def check(self, seconds: float = 5.0) -> list[str]:
        """The rankers of the experiment. Call it when your service starts: it raises `RankduelError`
        if the server, the experiment or the key is wrong, or if the control is not one of the
        rankers, which otherwise shows only in an outage. A key needs the scope `read` for it."""
        _check_limit("seconds", seconds)
        rankers = self._server.rankers(seconds)
        if self._control not in rankers:
            listed = ", ".join(rankers)
            detail = f"control is {self._control!r}, but the rankers of {self._experiment!r} are {listed}"
            raise RankduelError("control-unknown", detail)
        return rankers

    def next_duel(self, *, unit: str | None = None, segment: str | None = None) -> Duel:
        """The two rankers to interleave. If rankduel does not answer in time, both are the control.

        `unit` is an opaque id of the user or the session, of which the server stores a hash.
        `segment` is a label of 1 to 32 bytes for the part of the traffic that the page belongs to,
        such as `mobile`. A duel with a unit or a segment is requested by itself, not taken from the
        stock."""
        try:
            body = visit(unit, segment)
            if self._stock is not None and not body:
                return self._stock.take(self._deadline)
            return duel_of(self._server.ask("/next-duel", body or None, self._deadline))
        except RankduelError as failed:
            self._fell_back(failed)
            return Duel(self._control, self._control, None, UNLIMITED, failed.reason)

    def page(
        self,
        rankings: Rankings,
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
        unit: str | None = None,
        segment: str | None = None,
    ) -> Page:
        """A page of two interleaved rankings. If rankduel does not answer in time, it has the
        control's ranking only.

        `rankings` has the document ids of every ranker, best first. Alternatively it is a function
        that is called once, with the one or two rankers that rankduel selects, and returns a
        dictionary of their ids. If it raises an exception, or one of these is missing or not a
        list, the page has the control's ranking. For that, the function is called again with the
        control, unless the control's ids were in the dictionary, which may have those of others.
        There is no page, but an exception, only if there is nothing to show: the control's ranking
        is missing (`ValueError`), is not a list (`ValueError`), or raises its own exception.
        `pinned` has pairs of a position (from 0) and the document to show there, independent of the
        rankings. For later pages of the same list, use `more`.
        """
        window = Window(length, offset, pinned, unit, segment)
        if not callable(rankings):
            lists = made_of(rankings)
            control = shown(self._control, lists)
            body = window.body()
            try:
                body["rankings"] = {ranker: _sent(ranker, lists) for ranker in lists}
                answer = self._server.ask("/next-duel", body, self._deadline)
                duel = duel_of(answer)
                return page_of(answer, duel.left, duel.right)
            except RankduelError as failed:
                self._fell_back(failed)
                return control_page(self._control, control, failed.reason, window)
        return self._page_of_pair(self._duel_for(window), rankings, window)

    def more(
        self,
        of: Page | Duel,
        rankings: Rankings,
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
        unit: str | None = None,
        segment: str | None = None,
    ) -> Page:
        """A page of an earlier duel: the first page of a duel from `next_duel`, or a later page of
        the same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
        answer in time, or did not answer for the duel, the page has the control's ranking."""
        window = Window(length, offset, pinned, unit, segment)
        if not callable(rankings):
            given = rankings
            check_control(self._control, given)
            return self._page_of_pair(of, lambda rankers: given, window)
        return self._page_of_pair(of, rankings, window)

    def _duel_for(self, window: Window) -> Duel:
        # with a stock, the unit and the segment go with the rankings alone
        if self._stock is not None:
            return self.next_duel()
        return self.next_duel(unit=window.unit, segment=window.segment)

    def _page_of_pair(self, of: Page | Duel, make: Callable[[Sequence[str]], Lists], window: Window) -> Page:
        rankers = rankers_of(of)
        made: Made = {}
        if rankers:
            try:
                made = made_of(make(rankers))
            except Exception as error:
                made = dict.fromkeys(rankers, error)
        page = self._interleaved(of, made, window)
        if isinstance(page, Page):
            return page
        if not isinstance(made.get(self._control), list):
            made = made_of(make([self._control]))
        return control_page(self._control, shown(self._control, made), page, window)

    def _interleaved(self, of: Page | Duel, made: Made, window: Window) -> Page | str | None:
        """The page, or the reason for a fallback."""
        if of.duel_id is None:
            return of.fallback
        body = window.body()
        body["duel_id"] = of.duel_id
        try:
            for side, ranker in (("left", of.left), ("right", of.right)):
                body[side] = _sent(ranker, made)
            return page_of(self._server.ask("/interleave", body, self._deadline), of.left, of.right)
        except RankduelError as failed:
            self._fell_back(failed)
            return failed.reason

    def clicked(self, of: Page | str | None, clicks: Sequence[Click], *, final: bool = True) -> None:
        """Report the clicks on a page, or on the page of a `duel_id`; `[]` if there were none.
        Returns at once. The clicks are sent in the background until the server has them.

        A call is final unless it says otherwise: clicks that come after it are late and do not
        count. If you call it once for each click, pass `final=False`: more clicks can then follow,
        in any order, and all clicks of a duel together count as one outcome."""
        self._put(of, {"clicks": _listed("clicks", clicks), "final": final})

    def outcome(self, of: Duel | Page | str | None, outcome: str) -> None:
        """Report the outcome, if your own code merges the pages and credits the clicks: `left`,
        `right`, `tie` or `none`."""
        self._put(of, {"outcome": _outcome(outcome)})

    def measured(self, of: Duel | Page | str | None, metrics: Metrics) -> None:
        """Report values of the experiment's metrics, by ranker and metric, such as
        `{"bm25": {"latency_ms": 12}, "neural": {"latency_ms": 41}}`. Call it for every page, whether
        it is clicked or not: a value that does not come counts as the worst. Returns at once."""
        self._put(of, {"metrics": _copied(metrics)})

    def report_clicks(
        self, of: Page | str | None, clicks: Sequence[Click], *, final: bool = True, seconds: float = 10.0
    ) -> str:
        """The same as `clicked`, but waits for the result: `recorded`, `duplicate`, `late` (after a
        final call), or `ignored` for a fallback page. Transient failures are repeated for at most this time. Raises
        `RankduelError`; if its `retryable` is true, the same feedback may be accepted later."""
        return self._report(of, {"clicks": _listed("clicks", clicks), "final": final}, seconds)

    def report_outcome(self, of: Duel | Page | str | None, outcome: str, *, seconds: float = 10.0) -> str:
        """The same as `outcome`, but waits for the result like `report_clicks`."""
        return self._report(of, {"outcome": _outcome(outcome)}, seconds)

    def report_metrics(self, of: Duel | Page | str | None, metrics: Metrics, *, seconds: float = 10.0) -> str:
        """The same as `measured`, but waits for the result like `report_clicks`."""
        return self._report(of, {"metrics": _copied(metrics)}, seconds)

    def report_orders(self, orders: Sequence[Order], *, seconds: float = 10.0) -> list[dict[str, Any]]:
        """Send orders, at most 1,000, to an experiment that orders decide, and wait for the result
        of each, a dictionary with the `status` `recorded`, `duplicate`, `late`, `conflict` or
        `invalid`, and the `detail` of one that the server refuses. Transient failures are repeated
        like those of `report_clicks`; a repeat never counts twice.

        An order is `{"order_id": "A-1009", "unit": "c-17", "at": "2026-11-21T18:03:11Z", "lines":
        [{"document": "d3", "value": 49.9, "quantity": 2}]}`, or `{"order_id": "A-1009",
        "cancelled": True}`. `unit` is that of the pages, and `at` the time of the order."""
        _check_limit("seconds", seconds)
        return self._server.orders(_listed("orders", orders), seconds)

    def _report(self, of: Duel | Page | str | None, item: dict[str, Any], seconds: float) -> str:
        _check_limit("seconds", seconds)
        duel_id = getattr(of, "duel_id", of)
        return self._server.report({"duel_id": duel_id, **item}, seconds) if duel_id else "ignored"

    def _put(self, of: Duel | Page | str | None, item: dict[str, Any]) -> None:
        duel_id = getattr(of, "duel_id", of)
        if duel_id:
            self._feedback.put({"duel_id": duel_id, **item}, getattr(of, "expires_at", time.time() + KEPT_SECONDS))

    def counts(self) -> Counts:
        """Number of feedback items so far, by result."""
        return self._feedback.counts()

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait at most this many seconds until the server has all feedback. Returns whether it has."""
        return self._feedback.flush(seconds)

    def close(self, seconds: float = 10.0) -> bool:
        """`flush`, and close the client. All later pages are fallbacks to the control."""
        self._server.close()
        flushed = self._feedback.close(seconds)
        self._transport.close()
        return flushed

    def __enter__(self) -> Rankduel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fell_back(self, failed: RankduelError) -> None:
        now = time.monotonic()
        with self._lock:
            due = now - self._logged_at.get(failed.reason, -LOG_EVERY_SECONDS) >= LOG_EVERY_SECONDS
            if due:
                self._logged_at[failed.reason] = now
        if due:
            log.warning("the control is shown: %s", failed)
        if self._on_fallback is not None:
            try:
                self._on_fallback(failed.reason)
            except Exception:
                log.exception("on_fallback failed")


def rankers_of(of: Page | Duel) -> list[str]:
    """The rankers that compete: none without a duel."""
    return [] if of.duel_id is None else list(dict.fromkeys((of.left, of.right)))


def made_of(rankings: Lists) -> Made:
    if not isinstance(rankings, Mapping):
        raise ValueError(f"rankings is {type(rankings).__name__}; it must have the document ids of each ranker")
    made: Made = {}
    for ranker, ranking in rankings.items():
        try:
            made[ranker] = ids(ranker, ranking)
        except Exception as error:
            made[ranker] = error
    return made


def _sent(ranker: str, made: Made) -> Sequence[str]:
    ranking = made.get(ranker)
    if ranking is None:
        raise RankduelError("ranker-failed", f"rankings lack {ranker!r}")
    if isinstance(ranking, Exception):
        raise RankduelError("ranker-failed", f"{ranker}: {ranking!r}") from ranking
    return ranking


def check_control(control: str, rankings: Mapping[str, object]) -> None:
    if control not in rankings:
        raise ValueError(f"rankings lack the control, {control!r}, which is shown if rankduel does not answer")


def shown(control: str, made: Made) -> Sequence[str]:
    """The control's ranking. Raises its exception: there is nothing else to show."""
    check_control(control, made)
    ranking = made[control]
    if isinstance(ranking, Exception):
        raise ranking
    return ranking


def _check_limit(name: str, seconds: float) -> None:
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= LONGEST_LIMIT:
        raise ValueError(f"{name} is {seconds!r}; it must be a number of seconds above 0 and at most a day")


def _listed(name: str, items: Sequence[T]) -> list[T]:
    if isinstance(items, (str, bytes, Mapping)):
        raise ValueError(f"{name} is {items!r}; it must be a list")
    return list(items)


def _copied(metrics: Metrics) -> dict[str, dict[str, float]]:
    return {ranker: dict(values) for ranker, values in metrics.items()}


def _outcome(outcome: str) -> str:
    if outcome not in ("left", "right", "tie", "none"):
        raise ValueError(f"outcome is {outcome!r}; it must be left, right, tie or none")
    return outcome
