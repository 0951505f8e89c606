"""The types of the client's arguments and results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Union


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
    """Sent back with feedback. None for a fallback to the control."""
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


@dataclass(frozen=True)
class Page:
    """One page of results."""

    slots: tuple[Slot, ...]
    duel_id: str | None
    """Sent back with feedback. None for a fallback to the control."""
    expires_at: float
    """Unix seconds. Feedback after this time does not count."""
    total: int
    """Number of slots of all pages of the list."""
    informative: bool = False
    """Whether clicks on this page can favour one side."""
    fallback: str | None = None
    """The same as `Duel.fallback`."""

    @property
    def documents(self) -> list[str]:
        """The ids to show, best first."""
        return [slot.document for slot in self.slots]


class _Click(TypedDict, total=False):
    position: int
    document: str
    slot: str
    event: str


Click = Union[int, str, _Click]
"""A position, a document's id, or an object with one of `position`, `document` and `slot`, and
optionally an `event` such as `purchase`."""
