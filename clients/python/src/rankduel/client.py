"""The client: it always returns a page, and sends feedback until the server has it."""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime
from typing import Any, Callable, Mapping, Sequence, Union
from urllib.parse import quote

from .feedback import Counts, FeedbackQueue
from .pages import Click, Duel, Page, Slot
from .transport import Failed, Transport

log = logging.getLogger("rankduel")

Rankings = Union[Mapping[str, Sequence[str]], Callable[[str], Sequence[str]]]

FAILURES_TO_REST = 5
"""After this many consecutive requests without an answer, the client pauses for `REST_SECONDS`."""
REST_SECONDS = 1.0
LOG_EVERY_SECONDS = 60.0
UNLIMITED = 4102444800.0  # the year 2100


class Rankduel:
    """One experiment of a rankduel server. Threads can share a client. Create one for each process,
    after the process has forked.

    If rankduel does not answer within `deadline` seconds, the client falls back to the ranker
    `control`. The deadline includes connecting, but not the lookup of the server's name. A fallback
    is logged at most once a minute for each reason. `on_fallback` is called with the reason each
    time. Feedback about such a page is ignored.
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
        on_fallback: Callable[[str], None] | None = None,
    ):
        if not deadline > 0:
            raise ValueError(f"deadline is {deadline}; it must be a number of seconds above 0")
        if queue < 1 or connections < 1:
            raise ValueError("queue and connections must be at least 1")
        self._control = control
        self._deadline = deadline
        self._on_fallback = on_fallback
        self._path = f"/v1/experiments/{quote(experiment, safe='')}"
        self._transport = Transport(url, key, connections)
        self._feedback = FeedbackQueue(self._transport, self._path + "/feedback", queue)
        self._closed = False
        self._lock = threading.Lock()
        self._failures = 0
        self._rest_until = 0.0
        self._logged_at: dict[str, float] = {}

    def next_duel(self) -> Duel:
        """The two rankers to interleave. If rankduel does not answer in time, both are the control."""
        try:
            return _duel(self._ask("/next-duel", None, self._deadline))
        except Failed as failed:
            self._fell_back(failed)
            return Duel(self._control, self._control, None, UNLIMITED, failed.reason)

    def page(
        self,
        rankings: Rankings,
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
    ) -> Page:
        """A page of two interleaved rankings. If rankduel does not answer in time, it has the
        control's ranking only.

        `rankings` has the document ids of every ranker, best first. Alternatively it is a function
        that returns the ids of one ranker; it is called for the two rankers that rankduel selects.
        `pinned` has pairs of a position (from 0) and the document to show there, independent of the
        rankings. For later pages of the same list, use `more`.
        """
        if not callable(rankings) and self._control not in rankings:
            raise ValueError(f"rankings lack the control, {self._control!r}, which is shown if rankduel does not answer")
        started = time.monotonic()
        body = _window(length, offset, pinned)
        if not callable(rankings):
            body["rankings"] = {ranker: list(ranking) for ranker, ranking in rankings.items()}
            try:
                return _page(self._ask("/next-duel", body, self._deadline))
            except Failed as failed:
                return self._fallback_page(rankings, failed, length, offset, pinned)
        duel = self.next_duel()
        left = self._deadline - (time.monotonic() - started)
        if duel.duel_id is None:
            return _control_page(rankings(self._control), duel.fallback, length, offset, pinned)
        body["duel_id"] = duel.duel_id
        body["left"] = list(rankings(duel.left))
        if not duel.self_duel:
            body["right"] = list(rankings(duel.right))
        return self._interleave(body, rankings, max(left, self._deadline / 2), (length, offset, pinned))

    def more(
        self,
        page: Page | Duel,
        left: Sequence[str],
        right: Sequence[str],
        control: Sequence[str],
        *,
        length: int = 10,
        offset: int = 0,
        pinned: Sequence[tuple[int, str]] = (),
    ) -> Page:
        """A page of an earlier duel: the first page of a duel from `next_duel`, or a later page of
        the same list. Pass the same rankings and pins for every page of a duel. If rankduel does not
        answer in time, or did not answer for the duel, the page has the ranking `control`."""
        if page.duel_id is None:
            return _control_page(control, page.fallback, length, offset, pinned)
        body = _window(length, offset, pinned)
        body.update(duel_id=page.duel_id, left=list(left), right=list(right))
        return self._interleave(body, lambda _: control, self._deadline, (length, offset, pinned))

    def _interleave(
        self,
        body: dict[str, Any],
        rankings: Rankings,
        seconds: float,
        window: tuple[int, int, Sequence[tuple[int, str]]],
    ) -> Page:
        try:
            return _page(self._ask("/interleave", body, seconds))
        except Failed as failed:
            return self._fallback_page(rankings, failed, *window)

    def clicked(self, page: Page, clicks: Sequence[Click], *, final: bool = True) -> None:
        """Report the clicks on a page; `[]` if there were none. Returns at once. The clicks are sent
        in the background until the server has them. With `final=False`, more clicks can follow, in
        any order; all clicks of a duel together count as one outcome."""
        self._put(page, {"clicks": list(clicks), "final": final})

    def outcome(self, duel: Duel | Page, outcome: str) -> None:
        """Report the outcome, if your own code merges the pages and credits the clicks: `left`,
        `right`, `tie` or `none`."""
        if outcome not in ("left", "right", "tie", "none"):
            raise ValueError(f"outcome is {outcome!r}; it must be left, right, tie or none")
        self._put(duel, {"outcome": outcome})

    def _put(self, of: Duel | Page, item: dict[str, Any]) -> None:
        if of.duel_id is not None:
            self._feedback.put({"duel_id": of.duel_id, **item}, of.expires_at)

    def counts(self) -> Counts:
        """Number of feedback items so far, by result."""
        return self._feedback.counts()

    def flush(self, seconds: float = 10.0) -> bool:
        """Wait at most this many seconds until the server has all feedback. Returns whether it has."""
        return self._feedback.flush(seconds)

    def close(self, seconds: float = 10.0) -> bool:
        """`flush`, and close the client. All later pages are fallbacks to the control."""
        self._closed = True
        flushed = self._feedback.close(seconds)
        self._transport.close()
        return flushed

    def __enter__(self) -> Rankduel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self, path: str, body: Mapping[str, Any] | None, seconds: float) -> Any:
        if self._closed:
            raise Failed("closed", "the client was closed")
        with self._lock:
            now = time.monotonic()
            if now < self._rest_until:
                raise Failed("resting", "the last requests had no answer, so the client sends none for a moment")
            if self._failures >= FAILURES_TO_REST:
                # this request probes the server; the others fall back until it has a result
                self._rest_until = now + REST_SECONDS
        try:
            answer = self._transport.post(self._path + path, body, seconds)
        except Failed as failed:
            with self._lock:
                self._failures = 0 if failed.status is not None and failed.status < 500 else self._failures + 1
                self._rest_until = time.monotonic() + REST_SECONDS if self._failures >= FAILURES_TO_REST else 0.0
            raise
        with self._lock:
            self._failures = 0
            self._rest_until = 0.0
        return answer

    def _fallback_page(
        self, rankings: Rankings, failed: Failed, length: int, offset: int, pinned: Sequence[tuple[int, str]]
    ) -> Page:
        self._fell_back(failed)
        control = rankings(self._control) if callable(rankings) else rankings[self._control]
        return _control_page(control, failed.reason, length, offset, pinned)

    def _fell_back(self, failed: Failed) -> None:
        now = time.monotonic()
        with self._lock:
            due = now - self._logged_at.get(failed.reason, -LOG_EVERY_SECONDS) >= LOG_EVERY_SECONDS
            if due:
                self._logged_at[failed.reason] = now
        if due:
            log.warning("the control is shown: %s", failed)
        if self._on_fallback is not None:
            self._on_fallback(failed.reason)


def _window(length: int, offset: int, pinned: Sequence[tuple[int, str]]) -> dict[str, Any]:
    body: dict[str, Any] = {"length": length, "offset": offset}
    if pinned:
        body["pinned"] = [{"document": document, "position": position} for position, document in pinned]
    return body


def _expires_at(answer: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(str(answer["expires_at"]).replace("Z", "+00:00")).timestamp()


def _duel(answer: Any) -> Duel:
    try:
        return Duel(answer["left"], answer["right"], answer["duel_id"], _expires_at(answer))
    except (KeyError, TypeError, ValueError) as error:
        raise Failed("not-rankduel", f"the answer is not from rankduel: {error!r}") from error


def _page(answer: Any) -> Page:
    try:
        slots = tuple(Slot(slot["position"], slot["document"], slot["token"]) for slot in answer["slots"])
        return Page(slots, answer["duel_id"], _expires_at(answer), answer["total"], answer["informative"])
    except (KeyError, TypeError, ValueError) as error:
        raise Failed("not-rankduel", f"the answer is not from rankduel: {error!r}") from error


def _control_page(
    ranking: Sequence[str], reason: str | None, length: int, offset: int, pinned: Sequence[tuple[int, str]]
) -> Page:
    """The control's ranking without repeats, with the pinned documents at their positions."""
    pins = dict(pinned)
    rest = iter([document for document in dict.fromkeys(ranking) if document not in set(pins.values())])
    documents: list[str] = []
    for document in rest:
        while len(documents) in pins:
            documents.append(pins.pop(len(documents)))
        documents.append(document)
    documents += [pins[position] for position in sorted(pins)]
    end = max(offset, 0) + max(length, 0)
    slots = tuple(Slot(position, documents[position]) for position in range(max(offset, 0), min(end, len(documents))))
    return Page(slots, None, UNLIMITED, len(documents), fallback=reason)
