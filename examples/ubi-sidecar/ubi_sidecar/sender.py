"""From UBI to rankduel: sends events until rankduel has them."""

from __future__ import annotations

import logging
import random
import threading
from typing import Any

from rankduel import RankduelError
from rankduel.transport import Transport

from .counts import Counts
from .events import Refused, parsed, reduced
from .lines import Lines
from .searches import Searches

log = logging.getLogger("ubi-sidecar")

BATCH = 500
"""Events of one request; rankduel takes 1000."""
SEND_SECONDS = 10.0
FIRST_WAIT = 0.1
LONGEST_WAIT = 30.0
LOOK_SECONDS = 0.2
"""How often a source without new lines is looked at."""
NOT_AN_EVENT = (400, 413, 422)
"""rankduel refuses the whole request because of something in it."""


class _Stopped(Exception):
    pass


class Sender:
    """A thread that reads events from a file and sends them. A line is passed once rankduel has
    answered for it, so whatever happens, it is sent again; rankduel counts it once."""

    def __init__(self, source: Lines, rankduel: Transport, experiment_path: str, searches: Searches, counts: Counts):
        self._source = source
        self._rankduel = rankduel
        self._path = experiment_path + "/feedback/ubi"
        self._searches = searches
        self._counts = counts
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What is not sent stays in the file."""
        self._stopping.set()
        self._thread.join(SEND_SECONDS + 1)

    def waiting(self) -> int:
        """Bytes that rankduel has not answered for."""
        return self._source.waiting()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                lines = self._source.read(BATCH)
                if not lines:
                    self._stopping.wait(LOOK_SECONDS)
                    continue
                events = [event for event in map(self._event, lines) if event is not None]
                if events:
                    self._send(events)
                self._source.advance()
            except _Stopped:
                return
            except Exception:
                # whatever it is, the events stay in the file, and this thread must go on
                log.exception("events cannot be sent now")
                self._stopping.wait(LONGEST_WAIT)

    def _event(self, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            event = reduced(parsed(line))
        except Refused as refused:
            self._counts.add("events", "refused")
            self._counts.warn("an event is refused", str(refused))
            return None
        duel_id = self._searches.duel_of(event)
        if duel_id is None:
            self._counts.add("events", "of no duel")
            return None
        event["event_attributes"]["duel_id"] = duel_id
        return event

    def _send(self, events: list[dict[str, Any]]) -> None:
        """Send the events, again after each failure that may pass."""
        failures = 0
        while True:
            try:
                answer = self._rankduel.post(self._path, {"events": events}, SEND_SECONDS)
                results = answer.get("results")
                if not isinstance(results, list) or len(results) != len(events):
                    raise RankduelError("not-rankduel", "the answer has no result for each event", 200)
                for result in results:
                    self._count(result)
                if failures > 0:
                    log.info("rankduel takes events again")
                return
            except RankduelError as failed:
                # an experiment may be created, and a key corrected, while the events wait
                if not (failed.retryable or failed.status == 404):
                    self._refused(events, failed)
                    return
                self._counts.add("sending", "failed")
                self._counts.warn("rankduel does not take events, they wait", str(failed))
                wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures, 20)) * random.uniform(0.5, 1.0)
                wait = max(wait, min(failed.retry_after or 0.0, LONGEST_WAIT))
                failures += 1
            if self._stopping.wait(wait):
                raise _Stopped

    def _refused(self, events: list[dict[str, Any]], failed: RankduelError) -> None:
        if failed.status in NOT_AN_EVENT and len(events) > 1:
            # one event must not take the others with it
            middle = len(events) // 2
            self._send(events[:middle])
            self._send(events[middle:])
            return
        self._counts.add("rankduel", "refused", len(events))
        self._counts.warn("rankduel refuses events", str(failed))

    def _count(self, result: Any) -> None:
        members = result if isinstance(result, dict) else {}
        status = str(members.get("status"))
        self._counts.add("rankduel", status)
        if status not in ("recorded", "duplicate", "ignored"):
            self._counts.warn(f"an event does not count ({status})", str(members.get("detail", "")))
