"""The duel of each search that was shown, by UBI's `query_id`."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rankduel import Duel

from .events import Refused, parsed

RESTORED_BYTES = 64 * 1024 * 1024
"""The end of the file of queries that is read at the start."""
MEMBER = "rankduel"
"""The member of `query_attributes` that says what rankduel did."""


@dataclass(frozen=True)
class Shown:
    """What a searcher has seen of a list."""

    duel: Duel
    """The duel. Its `duel_id` knows the documents of all pages up to the deepest one."""
    depth: int
    """The position after the last document of the deepest page."""


class Searches:
    """The latest searches, at most this many. Threads can share them."""

    def __init__(self, most: int):
        self._most = most
        self._lock = threading.Lock()
        self._shown: OrderedDict[str, Shown] = OrderedDict()

    def put(self, query_id: str, shown: Shown) -> None:
        """Remember a page. After page 2, page 1 may be shown again: the deeper page stands."""
        with self._lock:
            known = self._shown.pop(query_id, None)
            is_same = known is not None and known.duel.expires_at == shown.duel.expires_at
            self._shown[query_id] = known if known is not None and is_same and known.depth > shown.depth else shown
            if len(self._shown) > self._most:
                self._shown.popitem(last=False)

    def get(self, query_id: str) -> Duel | None:
        """The duel of a search; None if it is unknown or its duel has expired."""
        with self._lock:
            shown = self._shown.get(query_id)
        return shown.duel if shown is not None and shown.duel.expires_at > time.time() else None

    def duel_of(self, event: dict[str, Any]) -> str | None:
        """The `duel_id` of an event: its own, or that of its search."""
        duel_id = event["event_attributes"].get("duel_id")
        if isinstance(duel_id, str):
            return duel_id
        duel = self.get(event["query_id"]) if "query_id" in event else None
        return None if duel is None else duel.duel_id

    def restore(self, queries: Path, experiment: str) -> int:
        """Read the searches that were shown before a restart. Returns their number."""
        try:
            with queries.open("rb") as file:
                start = max(0, os.fstat(file.fileno()).st_size - RESTORED_BYTES)
                file.seek(start)
                if start > 0:
                    file.readline()
                for text in file:
                    self._restore(text, experiment)
        except FileNotFoundError:
            pass
        return len(self._shown)

    def _restore(self, text: bytes, experiment: str) -> None:
        try:
            record = parsed(text)
            shown = record["query_attributes"][MEMBER]
            if shown["experiment"] != experiment or not isinstance(record["query_id"], str):
                return
            expires_at = datetime.fromisoformat(shown["expires_at"]).timestamp()
            if shown["duel_id"] is not None and expires_at > time.time():
                duel = Duel(shown["left"], shown["right"], shown["duel_id"], expires_at)
                depth = shown["offset"] + len(record["query_response_hit_ids"])
                self.put(record["query_id"], Shown(duel, depth))
        except (Refused, KeyError, TypeError, ValueError, AttributeError):
            return  # a line of somebody else, or half a line


def timestamp(unix_seconds: float) -> str:
    """A time as UBI and the index of OpenSearch want it: UTC with milliseconds."""
    time_of = datetime.fromtimestamp(unix_seconds, timezone.utc)
    return time_of.isoformat(timespec="milliseconds").replace("+00:00", "Z")
