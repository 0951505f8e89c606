"""HTTP with a deadline: a request ends at its deadline, even if the answer arrives slowly."""

from __future__ import annotations

import decimal
import email.utils
import http.client
import io
import json
import os
import queue
import re
import socket
import ssl
import time
import uuid
from typing import Any, Mapping, Protocol
from urllib.parse import SplitResult, urlsplit

from .errors import RankduelError
from .version import __version__, check_server

MAX_ANSWER_BYTES = 64 * 1024 * 1024


class _Socket(Protocol):
    def settimeout(self, seconds: float | None) -> None: ...
    def sendall(self, data: Any) -> None: ...
    def recv_into(self, buffer: Any) -> int: ...
    def close(self) -> None: ...


class _Deadline:
    """The time at which a request must end."""

    def __init__(self, seconds: float):
        self._at = time.monotonic() + seconds

    def left(self) -> float:
        left = self._at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        return left


class _TimedReader(io.RawIOBase):
    def __init__(self, timed: _TimedSocket):
        self._timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._timed.socket.settimeout(self._timed.deadline.left())
        return self._timed.socket.recv_into(buffer)

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._timed.reader_closed()


class _TimedSocket:
    """A socket for `http.client`. Each of its operations ends at the deadline of the request."""

    def __init__(self, socket: _Socket, deadline: _Deadline):
        self.socket = socket
        self.deadline = deadline
        self._readers = 0
        self._closing = False

    def sendall(self, data: Any) -> None:
        self.socket.settimeout(self.deadline.left())
        self.socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        self._readers += 1
        return io.BufferedReader(_TimedReader(self))

    def reader_closed(self) -> None:
        self._readers -= 1
        if self._closing and self._readers == 0:
            self.socket.close()

    def close(self) -> None:
        # `http.client` closes the socket before it reads an answer that ends with the connection
        self._closing = True
        if self._readers == 0:
            self.socket.close()


class Transport:
    """Requests to one server over persistent connections. Threads can share it."""

    def __init__(self, url: str, key: str | None, connections: int):
        parts = _address(url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        self._headers = {"content-type": "application/json", "accept": "application/json", "rankduel-version": __version__}
        if key:
            if not isinstance(key, str) or not re.fullmatch("[!-~]+", key):
                # the message must not show the key
                raise ValueError("key has a character that no key has, such as a space, a line break or a typographic quote")
            self._headers["authorization"] = f"Bearer {key}"
        self._connections = connections
        self._new_process()

    def _new_process(self) -> None:
        # a forked process would read the answers to its parent
        self._process = os.getpid()
        self._idle: queue.LifoQueue[http.client.HTTPConnection] = queue.LifoQueue(self._connections)

    def post(self, path: str, body: Mapping[str, Any] | bytes | None, seconds: float) -> Any:
        """The content of an answer with status 200. Raises `RankduelError` for any other answer, if
        there is none within this many seconds, and if the body has no form in JSON."""
        content = body if body is None or isinstance(body, bytes) else encode(body)
        return self._request("POST", path, content, seconds)

    def get(self, path: str, seconds: float) -> Any:
        """The same for a GET request, which is never part of a search. Raises `RankduelError` also if
        the server is older than this client."""
        return self._request("GET", path, None, seconds)

    def _request(self, method: str, path: str, content: bytes | None, seconds: float) -> Any:
        deadline = _Deadline(seconds)
        try:
            return self._send(method, path, content, deadline)
        except RankduelError:
            raise
        except TimeoutError as error:
            raise RankduelError("timeout", f"no answer within {seconds:.3f} s") from error
        except Exception as error:  # whatever it is, the search must get a page
            raise RankduelError("unreachable", f"{type(error).__name__}: {error}") from error

    def _send(self, method: str, path: str, content: bytes | None, deadline: _Deadline) -> Any:
        while True:
            connection, fresh = self._connection(deadline)
            try:
                connection.request(method, self._path + path, content, self._headers)
                response = connection.getresponse()
                answer = response.read(MAX_ANSWER_BYTES)
                if response.length:
                    raise http.client.IncompleteRead(answer, response.length)
            except TimeoutError:
                connection.close()
                raise
            except (OSError, http.client.HTTPException):
                connection.close()
                if fresh:
                    raise
                # the server has closed the idle connection, so the request did not fail: repeat it
                continue
            if response.will_close or not response.isclosed():
                connection.close()
            else:
                try:
                    self._idle.put_nowait(connection)
                except queue.Full:
                    connection.close()
            content = _content(response, answer)
            if method == "GET":
                check_server(response.getheader("rankduel-version"))
            return content

    def _connection(self, deadline: _Deadline) -> tuple[http.client.HTTPConnection, bool]:
        if self._process != os.getpid():
            self._new_process()
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = http.client.HTTPConnection(self._host, self._port)
            raw = socket.create_connection((self._host, self._port), timeout=deadline.left())
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls:
                raw.settimeout(deadline.left())
                raw = self._tls.wrap_socket(raw, server_hostname=self._host)
            connection.sock = _TimedSocket(raw, deadline)
            return connection, True
        connection.sock.deadline = deadline  # type: ignore[union-attr]
        return connection, False

    def close(self) -> None:
        """Close the idle connections."""
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return


def _address(url: str) -> SplitResult:
    # the message must not show a password
    shown = "url" if "@" in str(url) else repr(url)
    wrong = f"{shown} is not the address of a server; it must look like http://rankduel.internal:7171"
    try:
        parts = urlsplit(url)
        is_wrong = parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0
        # a name that IDNA refuses would fail in every search
        (parts.hostname or "").encode("idna")
    except ValueError:
        raise ValueError(wrong) from None
    if is_wrong or parts.query or parts.fragment or "@" in parts.netloc or not re.fullmatch("[!-~]+", url):
        raise ValueError(wrong)
    return parts


def encode(body: Mapping[str, Any]) -> bytes:
    """A body as JSON. Raises `RankduelError` if it has no form in JSON, as NaN and bytes have none."""
    try:
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise RankduelError("invalid-request", str(error)) from None


def _plain(value: object) -> str | float:
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def _content(response: http.client.HTTPResponse, answer: bytes) -> Any:
    kind = (response.getheader("content-type") or "none").partition(";")[0].strip().lower()
    content = None
    if kind == "application/json" or kind.endswith("+json"):
        try:
            content = json.loads(answer)
        except (ValueError, RecursionError):
            pass
    if response.status == 200:
        if isinstance(content, dict):
            return content
        detail = f"the answer is not from rankduel: its content is not a JSON object, its type is {kind}"
        raise RankduelError("not-rankduel", detail, 200)
    problem = content if isinstance(content, dict) else {}
    slug = str(problem.get("type", "")).rpartition("/")[2]
    errors = problem.get("errors")
    listed = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    where = "".join(f"; {error.get('pointer')}: {error.get('detail')}" for error in listed)
    raise RankduelError(
        slug or f"status-{response.status}",
        str(problem.get("detail") or problem.get("title") or f"status {response.status}") + where,
        response.status,
        _seconds(response),
    )


def _seconds(response: http.client.HTTPResponse) -> float | None:
    """The time that `Retry-After` names: seconds, or a date. By the clock of the server, if it says what that is."""
    text = response.getheader("retry-after", "")
    if text.isascii() and text.isdigit():
        return float(text)
    until, now = _time(text), _time(response.getheader("date", ""))
    return None if until is None else max(0.0, until - (time.time() if now is None else now))


def _time(text: str) -> float | None:
    try:
        parsed = email.utils.parsedate_tz(text)
        return None if parsed is None else float(email.utils.mktime_tz(parsed))
    except (ValueError, OverflowError):
        return None
