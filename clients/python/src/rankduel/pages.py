"""What the client gives and takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, Union


@dataclass(frozen=True)
class Slot:
    """One result of a page."""

    position: int
    """In the whole list, from 0; page 2 goes on counting."""
    document: str
    """Its id, as it was given."""
    token: str | None = None
    """Names the slot in feedback, and does not tell whose it is. None on a page of the control."""


@dataclass(frozen=True)
class Duel:
    """Which two rankers to interleave."""

    left: str
    right: str
    duel_id: str | None
    """To be sent back with feedback. None where the control is shown without rankduel."""
    expires_at: float
    """Unix seconds, as the clock of this machine has them; feedback after that does not count."""
    fallback: str | None = None
    """Why this is the control and not what rankduel has chosen: `timeout`, `unreachable`, `resting`, `closed`, or the slug of a problem such
    as `paused`. None where rankduel has chosen."""

    @property
    def self_duel(self) -> bool:
        """Whether both are one ranker: show its ranking alone."""
        return self.left == self.right


@dataclass(frozen=True)
class Page:
    """One page of results."""

    slots: tuple[Slot, ...]
    duel_id: str | None
    """To be sent back with feedback. None where the control is shown without rankduel."""
    expires_at: float
    """Unix seconds, as the clock of this machine has them; feedback after that does not count."""
    total: int
    """Slots of all pages together."""
    informative: bool = False
    """Whether clicks on it can say anything."""
    fallback: str | None = None
    """As `Duel.fallback`."""

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
"""A position, a document's id, or an object with one of `position`, `document` and `slot`, and an `event` such as `purchase`."""
