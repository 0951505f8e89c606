#!/usr/bin/env python3
"""A server that fails as scripted, for tests of clients. It requires only Python 3.9.

    python3 conformance/failing_server.py --port 7272

The experiments are the exchanges of clients.json whose `server` is `failing`. Each has a list of
answers for each of its paths; the last answer repeats. A path may start with any prefix, such as
`/java/v1/experiments/slow-answer/next-duel`. Each prefix gets the answers from the first one on,
and `requests` counts for each prefix.
"""

import argparse
import collections
import http.server
import json
import socket
import threading
from pathlib import Path

SLOW_SECONDS = 30
"""Longer than a client in a test waits."""


class FailingServer:
    """Answers as the exchanges say, and keeps the bodies of the requests."""

    def __init__(self, exchanges, port=0):
        self._answers = {exchange["id"]: exchange["answers"] for exchange in exchanges if "answers" in exchange}
        self._lock = threading.Lock()
        self._bodies = collections.defaultdict(list)
        self._ended = threading.Event()
        handler = type("Handler", (_Handler,), {"failing": self})
        self._server = _Quiet(("127.0.0.1", port), handler)
        self.port = self._server.server_address[1]

    def start(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def stop(self):
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def wait(self, seconds):
        self._ended.wait(seconds)

    def bodies(self, prefix, exchange):
        """The bodies of the requests so far, by the last part of the path."""
        with self._lock:
            prefixed = [(key, list(found)) for key, found in self._bodies.items() if key[:2] == (prefix, exchange)]
            return {key[2]: found for key, found in prefixed}

    def answer(self, path, body):
        """The scripted answer to a request; None if there is no such exchange."""
        prefix, _, rest = path.partition("/v1/experiments/")
        exchange, _, operation = rest.partition("/")
        operation = operation or "experiment"
        scripted = self._answers.get(exchange, {}).get(operation)
        with self._lock:
            found = self._bodies[prefix.strip("/"), exchange, operation]
            found.append(body)
        answer = None if scripted is None else scripted[min(len(found), len(scripted)) - 1]
        if answer is not None and "refuses" in answer and answer["refuses"] not in body:
            items = json.loads(body)["feedback"]
            return {"json": {"results": [{"status": "recorded", "position": 1} for _ in items]}}
        return answer


class _Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Clients close connections at their deadline; that is no error here."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # an answer is two writes; without this, the second one waits for the client
    disable_nagle_algorithm = True

    def do_GET(self):
        self._answer()

    def do_POST(self):
        self._answer()

    def _answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        answer = self.failing.answer(self.path, body)
        if answer is None:
            answer = {"status": 404, "json": {"type": "/problems/experiment-not-found"}}
        if "rankduel-version" not in self.headers:
            answer = {"status": 400, "text": "a client names its version"}
        kind = "application/json" if answer.get("status", 200) == 200 else "application/problem+json"
        content = (json.dumps(answer["json"]) if "json" in answer else answer.get("text", "")).encode()
        fault = answer.get("fault")
        if fault == "slow":
            self.failing.wait(SLOW_SECONDS)
        headers = {"content-type": kind, "content-length": str(len(content)), **answer.get("headers", {})}
        # of those that a server sends by itself, an answer can have its own date
        (self.send_response_only if "date" in headers else self.send_response)(answer.get("status", 200))
        if headers.get("transfer-encoding") == "chunked":
            del headers["content-length"]
            content = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in content) + b"0\r\n\r\n"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if fault == "cut":
            self.wfile.write(content[: len(content) // 2])
        elif fault == "drip":
            for byte in content:
                self.wfile.write(bytes([byte]))
                self.failing.wait(0.1)
        else:
            self.wfile.write(content)
        if fault in ("cut", "closes"):
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_):
        """The program reports results, not requests."""


def main():
    arguments = argparse.ArgumentParser(description="A server that fails as clients.json says.")
    arguments.add_argument("--port", type=int, default=7272)
    port = arguments.parse_args().port
    exchanges = json.loads((Path(__file__).parent / "clients.json").read_text())["exchanges"]
    server = FailingServer(exchanges, port).start()
    print(f"http://127.0.0.1:{server.port}", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
