"""The web server of the site.

| request | answer |
| --- | --- |
| `GET /?q=QUERY` | a page of results |
| `GET /page/ID` | a manual page |
| `GET /api/search?q=QUERY` | the same results as JSON |
| `POST /feedback` | clicks: `{"duel_id": …, "clicks": [POSITION, …], "final": true}` |
| `POST /order` | an order of a printed page, if the site sells: `{"document": ID}` |
| `GET /api/status` | fallbacks by reason, and feedback by result |
"""

from __future__ import annotations

import json
import logging
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from . import html
from .corpus import Corpus
from .site import LENGTH, SearchFailed, Site, new_session

log = logging.getLogger("search-site")

COOKIE = "session"
BODY_LIMIT = 10_000
QUERY_LIMIT = 200
_HTML = "text/html; charset=utf-8"
_HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    # a page belongs to one visitor: a cached page would mix the clicks of several
    "cache-control": "private, no-store",
}


class WebServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, site: Site, corpus: Corpus):
        super().__init__(("127.0.0.1", port), _Handler)
        self.site = site
        self.corpus = corpus

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: WebServer
    protocol_version = "HTTP/1.1"
    # answers are small: send them at once
    disable_nagle_algorithm = True
    wbufsize = -1
    timeout = 60

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = " ".join(parse_qs(url.query).get("q", [""])[0].split())[:QUERY_LIMIT]
        if url.path == "/" and not query:
            self._answer(html.home())
        elif url.path == "/":
            self._search(query)
        elif url.path == "/api/search":
            self._search_json(query)
        elif url.path == "/api/status":
            self._answer_json(self.server.site.counts())
        elif url.path.startswith("/page/"):
            self._page(unquote(url.path.removeprefix("/page/")))
        elif url.path == "/site.css":
            self._answer(html.STYLE, "text/css")
        elif url.path == "/site.js":
            self._answer(html.SCRIPT, "text/javascript")
        elif url.path == "/favicon.ico":
            self._answer("", "image/x-icon", HTTPStatus.NO_CONTENT)
        else:
            self._problem(HTTPStatus.NOT_FOUND, "there is no such page")

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and int(length) <= BODY_LIMIT):
            self.close_connection = True
            self._problem(HTTPStatus.BAD_REQUEST, f"a body of at most {BODY_LIMIT} bytes is needed, with its length")
            return
        body = self.rfile.read(int(length))
        if urlsplit(self.path).path == "/order" and self.server.site.sells:
            self._order(body)
            return
        if urlsplit(self.path).path != "/feedback":
            self._problem(HTTPStatus.NOT_FOUND, "there is no such page")
            return
        try:
            duel_id, clicks, final = _feedback(body)
        except ValueError as error:
            self._problem(HTTPStatus.BAD_REQUEST, str(error))
            return
        session, _ = self._session()
        self.server.site.clicked(duel_id, clicks, final=final, session=session)
        self._answer_json({"status": "accepted"}, HTTPStatus.ACCEPTED)

    def _search(self, query: str) -> None:
        session, headers = self._session()
        try:
            found = self.server.site.search(query, session)
        except SearchFailed as error:
            log.error("no ranking for a search: %s", error)
            self._answer(html.unavailable(query), status=HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._answer(html.results(found, self.server.corpus), headers=headers)

    def _search_json(self, query: str) -> None:
        session, headers = self._session()
        try:
            found = self.server.site.search(query, session)
        except SearchFailed as error:
            self._problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        titles = [self.server.corpus.documents[id] for id in found.documents]
        results = [{"position": at, "id": page.id, "summary": page.summary} for at, page in enumerate(titles)]
        answer = {"query": query, "duel_id": found.duel_id, "fallback": found.fallback, "results": results}
        self._answer_json(answer, headers=headers)

    def _page(self, id: str) -> None:
        document = self.server.corpus.documents.get(id)
        if document is None:
            self._problem(HTTPStatus.NOT_FOUND, "there is no such manual page")
        else:
            self._answer(html.page(document, self.server.site.sells))

    def _order(self, body: bytes) -> None:
        try:
            document = json.loads(body)["document"]
            known = document in self.server.corpus.documents
        except (ValueError, KeyError, TypeError):
            known = False
        if not known:
            self._problem(HTTPStatus.BAD_REQUEST, "document must be the id of a manual page")
            return
        session, _ = self._session()
        self._answer_json({"status": self.server.site.ordered(document, session)})

    def _session(self) -> tuple[str, dict[str, str]]:
        """The visitor's session, and the header that starts it if it is new."""
        try:
            cookie = SimpleCookie(self.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        if cookie is not None and 0 < len(cookie.value) <= 64:
            return cookie.value, {}
        session = new_session()
        return session, {"set-cookie": f"{COOKIE}={session}; Path=/; HttpOnly; SameSite=Lax"}

    def _problem(self, status: HTTPStatus, detail: str) -> None:
        self._answer_json({"status": int(status), "title": status.phrase, "detail": detail}, status)

    def _answer_json(
        self, content: Any, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
    ) -> None:
        self._answer(json.dumps(content) + "\n", "application/json", status, headers)

    def _answer(
        self,
        content: str,
        kind: str = _HTML,
        status: HTTPStatus = HTTPStatus.OK,
        headers: dict[str, str] | None = None,
    ) -> None:
        body = content.encode()
        self.send_response(status)
        for name, value in {**_HEADERS, **(headers or {}), "content-type": kind}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        log.debug(format, *args)


def _feedback(body: bytes) -> tuple[str, list[int], bool]:
    """The visitor's browser sent this, so it can contain anything."""
    try:
        content = json.loads(body)
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError("the body must be an object")
    duel_id, clicks, final = content.get("duel_id"), content.get("clicks"), content.get("final", True)
    if not isinstance(duel_id, str) or not duel_id:
        raise ValueError("duel_id must be the text that came with the results")
    if not isinstance(clicks, list) or not all(type(click) is int and 0 <= click < LENGTH for click in clicks):
        raise ValueError(f"clicks must be a list of positions from 0 to {LENGTH - 1}")
    if not isinstance(final, bool):
        raise ValueError("final must be true or false")
    return duel_id, clicks[:100], final
