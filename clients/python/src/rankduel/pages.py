"""The types of the client's arguments and results."""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Callable, Iterable, Mapping, Sequence, TypedDict, TypeVar, Union

from .errors import RankduelError

T = TypeVar("T")
UNLIMITED = 4102444800.0  # the year 2100


@dataclass(frozen=True)
class Slot:
    """One result of a page."""

    position: int
    """Position in the whole list, from 0. Positions on page 2 continue those of page 1."""
    document: str
    """The document's id, as in the rankings."""
    token: str | None = None
    """Identifies the slot in feedback, without revealing its ranker. None on a fallback page."""


@dataclass(frozen=True)
class Duel:
    """The two rankers to interleave."""

    left: str
    right: str
    duel_id: str | None
    """Sent back with feedback. None for the control without a duel: a fallback, or no part taken."""
    expires_at: float
    """Unix seconds. Feedback after this time does not count."""
    fallback: str | None = None
    """The reason for a fallback to the control: `timeout`, `unreachable`, `resting`, `closed`,
    `not-rankduel`, or the slug of a problem such as `experiment-paused`. None if rankduel selected
    the rankers."""

    @property
    def self_duel(self) -> bool:
        """Whether both are the same ranker. If so, show its ranking alone."""
        return self.left == self.right

    def to_json(self) -> str:
        """The duel as text, for a session or a cache. Keep it on the server: it names the rankers."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Duel:
        """The duel that `to_json` wrote."""
        return Duel(**json.loads(text))


@dataclass(frozen=True)
class Page:
    """One page of results."""

    slots: tuple[Slot, ...]
    duel_id: str | None
    """Sent back with feedback. None for a fallback to the control."""
    left: str
    """The left ranker of the duel; the control on a fallback page."""
    right: str
    expires_at: float
    """Unix seconds. Feedback after this time does not count."""
    total: int
    """Number of slots of all pages of the list."""
    informative: bool = False
    """Whether clicks on this page can favour one side."""
    fallback: str | None = None
    """The same as `Duel.fallback`; also `ranker-failed`, if a ranker raised an exception."""

    @property
    def documents(self) -> list[str]:
        """The ids to show, best first."""
        return [slot.document for slot in self.slots]

    def to_json(self) -> str:
        """The page as text, for a session or a cache. Keep it on the server: it names the rankers."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def from_json(text: str) -> Page:
        """The page that `to_json` wrote."""
        members = json.loads(text)
        slots = tuple(Slot(**slot) for slot in members.pop("slots"))
        return Page(slots=slots, **members)


class _Click(TypedDict, total=False):
    position: int
    document: str
    slot: str
    event: str


Click = Union[int, str, _Click]
"""A position, a document's id, or an object with one of `position`, `document` and `slot`, and
optionally an `event` such as `purchase`."""

Lists = Mapping[str, Sequence[str]]
"""The document ids of some rankers, best first."""

Rankings = Union[Lists, Callable[[Sequence[str]], Lists]]
"""The document ids of every ranker, best first; or a function that returns those of the rankers that
it is called with."""


def visit(unit: str | None, segment: str | None) -> dict[str, str]:
    """The members of a request that say whose page it is, without those that are None."""
    members = {"unit": unit, "segment": segment}
    return {name: str(value) for name, value in members.items() if value not in (None, "")}


def ids(ranker: str, ranking: Iterable[str]) -> list[str]:
    """A ranking as a list. Raises `ValueError` if it is not one."""
    if isinstance(ranking, (str, bytes)) or not isinstance(ranking, Iterable):
        found = type(ranking).__name__
        raise ValueError(f"the ranking of {ranker!r} is {found}; it must be a list of document ids")
    return [str(document) if isinstance(document, uuid.UUID) else document for document in ranking]


@dataclass(frozen=True)
class Window:
    """The part of the list that a page shows."""

    length: int
    offset: int
    pinned: Sequence[tuple[int, str]]
    unit: str | None = None
    segment: str | None = None

    def body(self) -> dict[str, Any]:
        """The members of a request."""
        body: dict[str, Any] = {"length": self.length, "offset": self.offset}
        if self.pinned:
            pins = [{"document": document, "position": position} for position, document in self.pinned]
            body["pinned"] = pins
        return {**body, **visit(self.unit, self.segment)}


# Python 3.10 reads fractions of three or six digits alone
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-]\d\d:\d\d))", re.ASCII)


def _expires_at(answer: Mapping[str, Any]) -> float:
    found = _TIME.fullmatch(_member(answer, "expires_at", str))
    if found is None:
        raise ValueError("expires_at is not a time")
    day, time, fraction, offset = found.groups()
    return datetime.fromisoformat(f"{day}T{time}{offset or '+00:00'}").timestamp() + float(fraction or 0)


def _member(answer: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = answer[name]
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {type(value).__name__}")
    return value


def duel_of(answer: Any) -> Duel:
    """The duel of an answer."""
    try:
        left, right, duel_id = (_member(answer, name, str) for name in ("left", "right", "duel_id"))
        # a page that takes no part in the experiment has no duel
        return Duel(left, right, duel_id or None, _expires_at(answer))
    except (KeyError, TypeError, ValueError) as error:
        raise RankduelError("not-rankduel", f"the answer is not from rankduel: {error!r}", 200) from error


def page_of(answer: Any, left: str, right: str) -> Page:
    """The page of an answer."""
    try:
        slots = tuple(
            Slot(_member(slot, "position", int), _member(slot, "document", str), _member(slot, "token", str))
            for slot in answer["slots"]
        )
        duel_id, total = _member(answer, "duel_id", str), _member(answer, "total", int)
        return Page(slots, duel_id or None, left, right, _expires_at(answer), total, _member(answer, "informative", bool))
    except (KeyError, TypeError, ValueError) as error:
        raise RankduelError("not-rankduel", f"the answer is not from rankduel: {error!r}", 200) from error


def _number(value: Any, default: int) -> int:
    """The number of an argument that the server refuses, such as a text."""
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return default


def control_page(control: str, ranking: Sequence[str], reason: str | None, window: Window) -> Page:
    """The control's ranking without repeats, with the pinned documents at their positions."""
    pins = dict(zip((position for position, _ in window.pinned), ids("pinned", [pin for _, pin in window.pinned])))
    pinned = list(pins.values())
    documents: list[str] = []
    try:
        unique = list(dict.fromkeys(ranking))
    except TypeError:  # these are not ids: the server cannot know them, but the application can
        unique = list(ranking)
    for document in unique:
        if document in pinned:
            continue
        while len(documents) in pins:
            documents.append(pins.pop(len(documents)))
        documents.append(document)
    documents += [pins[position] for position in sorted(pins)]
    start = _number(window.offset, 0)
    end = min(start + _number(window.length, 10), len(documents))
    slots = tuple(Slot(position, documents[position]) for position in range(start, end))
    return Page(slots, None, control, control, UNLIMITED, len(documents), fallback=reason)
