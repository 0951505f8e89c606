"""The web server of the side-car.

| request | from | answer |
| --- | --- | --- |
| `POST /page` | the application | the page of a search, with its `ubi` block |
| `POST /ubi_events` | browsers, or a collector | what was accepted |
| `GET /status` | monitoring | counts |
"""

from __future__ import annotations

import json
import logging
import threading
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable
from urllib.parse import urlsplit

from .counts import Counts
from .events import Refused, events_of, line, parsed, reduced
from .lines import Full, Spool
from .pages import Pages, Search
from .searches import Searches

log = logging.getLogger("ubi-sidecar")

BODY_LIMIT = 4 * 1024 * 1024
EVENTS_LIMIT = 1000
RETRY_SECONDS = 10


@dataclass(frozen=True)
class Application:
    """What the requests are answered with."""

    pages: Pages
    searches: Searches
    spool: Spool
    counts: Counts
    waiting: Callable[[], int]


class WebServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], application: Application):
        super().__init__(address, _Handler)
        self.application = application
        # a request ends when the server does, but not in the middle of a write to the spool
        self.busy = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}"


class _Problem(Exception):
    def __init__(self, status: HTTPStatus, detail: str):
        super().__init__(detail)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"
    # answers are small: send them at once
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 30

    def do_GET(self) -> None:
        if urlsplit(self.path).path == "/status":
            self._answer(self._status())
        else:
            self._refuse(_Problem(HTTPStatus.NOT_FOUND, "there is POST /page, POST /ubi_events and GET /status"))

    def do_POST(self) -> None:
        answers = {"/page": self._page, "/ubi_events": self._events}
        try:
            body = self._body()
            answer = answers.get(urlsplit(self.path).path)
            if answer is None:
                raise _Problem(HTTPStatus.NOT_FOUND, "there is POST /page, POST /ubi_events and GET /status")
            answer(body)
        except Refused as refused:
            self._refuse(_Problem(HTTPStatus.BAD_REQUEST, str(refused)))
        except _Problem as problem:
            self._refuse(problem)

    def _body(self) -> bytes:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= BODY_LIMIT):
            self.close_connection = True
            detail = f"a body of at most {BODY_LIMIT} bytes is needed, with its length"
            raise _Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)
        return self.rfile.read(int(length))

    def _page(self, body: bytes) -> None:
        self._answer(self.server.application.pages.page(Search.of(parsed(body))))

    def _events(self, body: bytes) -> None:
        """Keep the events that belong to a duel; the others are UBI's, but not rankduel's."""
        application = self.server.application
        events = events_of(body)
        if len(events) > EVENTS_LIMIT:
            raise Refused(f"a request has at most {EVENTS_LIMIT} events; this one has {len(events)}")
        kept: list[bytes] = []
        refused: list[dict[str, Any]] = []
        without = 0
        for index, event in enumerate(events):
            try:
                own = reduced(event)
                duel_id = application.searches.duel_of(own)
                if duel_id is None:
                    without += 1
                else:
                    own["event_attributes"]["duel_id"] = duel_id
                    kept.append(line(own))
            except Refused as reason:
                refused.append({"index": index, "detail": str(reason)})
        self._keep(kept)
        for name, number in (("accepted", len(kept)), ("of no duel", without), ("refused", len(refused))):
            application.counts.add("events", name, number)
        answer = {"accepted": len(kept), "of_no_duel": without, "refused": refused}
        is_wrong = refused and not kept and not without
        self._answer(answer, HTTPStatus.BAD_REQUEST if is_wrong else HTTPStatus.ACCEPTED)

    def _keep(self, lines: list[bytes]) -> None:
        if not lines:
            return
        counts = self.server.application.counts
        try:
            with self.server.busy:
                self.server.application.spool.append(lines)
        except Full:
            counts.add("events", "dropped", len(lines))
            counts.warn("events are dropped", "the queue is full, because rankduel does not take events")
            raise _Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the queue is full: send the events again later") from None
        except OSError as error:
            counts.add("events", "dropped", len(lines))
            counts.warn("events are dropped", str(error))
            raise _Problem(HTTPStatus.SERVICE_UNAVAILABLE, "the queue cannot be written") from None

    def _status(self) -> dict[str, Any]:
        application = self.server.application
        groups = ("pages", "queries", "events", "rankduel", "sending")
        return {
            **{group: application.counts.of(group) for group in groups},
            "waiting_bytes": application.waiting(),
        }

    def _refuse(self, problem: _Problem) -> None:
        detail = {"status": int(problem.status), "title": problem.status.phrase, "detail": str(problem)}
        self._answer(detail, problem.status)

    def _answer(self, content: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        body = json.dumps(content).encode() + b"\n"
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        # a page belongs to one searcher: a cached page would mix the clicks of several
        self.send_header("cache-control", "private, no-store")
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            self.send_header("retry-after", str(RETRY_SECONDS))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)
