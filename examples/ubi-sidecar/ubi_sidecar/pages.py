"""From rankduel to UBI: the page of a search, and the record of what was shown."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from rankduel import Duel, Page, Rankduel

from .counts import Counts
from .events import ID_LIMIT, Refused, line
from .searches import MEMBER, Searches, Shown, timestamp
from .sinks import Sink

LENGTH_LIMIT = 1000
MEMBERS = frozenset(
    "rankings length offset pinned query_id client_id user_query application object_id_field query_attributes".split()
)


@dataclass(frozen=True)
class Search:
    """A request for a page."""

    rankings: dict[str, list[str]]
    """The document ids of every ranker of the experiment, best first."""
    length: int = 10
    offset: int = 0
    pinned: list[tuple[int, str]] = field(default_factory=list)
    query_id: str | None = None
    client_id: str | None = None
    ubi: dict[str, Any] = field(default_factory=dict)
    """What goes into the record as it came."""

    @staticmethod
    def of(content: Any) -> Search:
        """Raises `Refused`: the application must correct its request."""
        if not isinstance(content, dict):
            raise Refused("the body must be an object")
        unknown = sorted(set(content) - MEMBERS)
        if unknown:
            raise Refused(f"`{unknown[0]}` is unknown; the members are {', '.join(sorted(MEMBERS))}")
        rankings = content.get("rankings")
        if not isinstance(rankings, dict) or not all(map(_is_ranking, rankings.values())):
            raise Refused("`rankings` must have a list of document ids for each ranker")
        texts: dict[str, Any] = {}
        for name in ("query_id", "client_id", "application", "object_id_field", "user_query"):
            text = content.get(name)
            if text is not None and not isinstance(text, str):
                raise Refused(f"`{name}` must be a text")
            if text is not None and name != "user_query" and not 1 <= len(text) <= ID_LIMIT:
                raise Refused(f"`{name}` must have 1 to {ID_LIMIT} characters; it has {len(text)}")
            texts[name] = text
        attributes = content.get("query_attributes", {})
        if not isinstance(attributes, dict) or MEMBER in attributes:
            raise Refused(f"`query_attributes` must be an object without the member `{MEMBER}`")
        line(content)
        ubi = {name: texts[name] for name in ("application", "object_id_field") if texts[name] is not None}
        ubi["user_query"] = texts["user_query"] or ""
        ubi["query_attributes"] = attributes
        return Search(
            rankings,
            _number(content, "length", 10, 1),
            _number(content, "offset", 0, 0),
            _pinned(content.get("pinned", [])),
            texts["query_id"],
            texts["client_id"],
            ubi,
        )


def _is_ranking(ranking: Any) -> bool:
    return isinstance(ranking, list) and all(isinstance(document, str) for document in ranking)


def _number(content: dict[str, Any], name: str, default: int, least: int) -> int:
    number = content.get(name, default)
    if type(number) is not int or not least <= number <= LENGTH_LIMIT:
        raise Refused(f"`{name}` must be a whole number from {least} to {LENGTH_LIMIT}")
    return number


def _pinned(pins: Any) -> list[tuple[int, str]]:
    try:
        pairs = [(pin["position"], pin["document"]) for pin in pins]
    except (TypeError, KeyError):
        pairs = [(None, None)]
    if not all(type(position) is int and position >= 0 and isinstance(document, str) for position, document in pairs):
        raise Refused('`pinned` must be a list such as [{"position": 0, "document": "d7"}]')
    return pairs


class Pages:
    """Makes the pages of one experiment. Threads can share it."""

    def __init__(
        self, rankduel: Rankduel, experiment: str, control: str, searches: Searches, sink: Sink, counts: Counts
    ):
        self._rankduel = rankduel
        # what follows a page that nobody here knows: a new duel would be another list
        self._unknown = Duel(control, control, None, 0.0, "search-unknown")
        self._experiment = experiment
        self._searches = searches
        self._sink = sink
        self._counts = counts

    def page(self, search: Search) -> dict[str, Any]:
        """The page, always: if rankduel does not answer in time, it is the control's. Raises
        `Refused` if the rankings lack the control."""
        query_id = search.query_id or str(uuid.uuid4())
        known = self._searches.get(query_id)
        try:
            page = self._page(search, known)
        except ValueError as error:
            raise Refused(str(error)) from error
        if page.duel_id is not None or known is None:
            duel = Duel(page.left, page.right, page.duel_id, page.expires_at, page.fallback)
            self._searches.put(query_id, Shown(duel, search.offset + len(page.slots)))
        self._counts.add("pages", page.fallback or "of a duel")
        record = self._record(search, query_id, page)
        self._sink.put(line(record))
        named = ("query_id", "query_response_id", "query_response_hit_ids")
        ubi = {name: record[name] for name in named}
        ubi["event_attributes"] = {} if page.duel_id is None else {"duel_id": page.duel_id}
        return {"documents": page.documents, "total": page.total, "fallback": page.fallback, "ubi": ubi}

    def _page(self, search: Search, known: Duel | None) -> Page:
        window: dict[str, Any] = {"length": search.length, "offset": search.offset, "pinned": search.pinned}
        if known is None and search.offset == 0:
            return self._rankduel.page(search.rankings, unit=search.client_id, **window)
        return self._rankduel.more(known or self._unknown, search.rankings, unit=search.client_id, **window)

    def _record(self, search: Search, query_id: str, page: Page) -> dict[str, Any]:
        """The record of the query with the page that was shown, by UBI's schema."""
        shown = {
            "experiment": self._experiment,
            "duel_id": page.duel_id,
            "left": page.left,
            "right": page.right,
            "fallback": page.fallback,
            "offset": search.offset,
            "expires_at": timestamp(page.expires_at),
        }
        return {
            **search.ubi,
            **({} if search.client_id is None else {"client_id": search.client_id}),
            "query_id": query_id,
            "query_response_id": str(uuid.uuid4()),
            "query_response_hit_ids": page.documents,
            "timestamp": timestamp(time.time()),
            "query_attributes": {**search.ubi["query_attributes"], MEMBER: shown},
        }
