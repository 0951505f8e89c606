"""What a few odd requests do, or a database that moves, goes back or goes away. Each incident yields what it did, what
it saw, and what it must see."""

import json
import random
import socket
import subprocess
import tempfile
import time

from attacks.server import HOST, PROGRAM, answer, ask, environment, head

# Seconds until the server must have noticed that its database is away, or back.
NOTICED_WITHIN, BACK_WITHIN = 1.0, 10.0
FEEDBACK = "/v1/experiments/target/feedback"


def status(port, request):
    """Of the answer to a request as it is on the wire."""
    with socket.create_connection((HOST, port), timeout=15) as connection:
        connection.sendall(request)
        return answer(connection.makefile("rb"))[0]


def within(seconds, wanted, look):
    """What `look` sees once it is as wanted, or at the end."""
    end = time.monotonic() + seconds
    while (seen := look()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    return seen


def duel(port):
    """The answer to a new duel of two rankers, as a body of feedback."""
    while True:
        code, text = ask(port, "POST", "/v1/experiments/target/next-duel")
        if code != 200:
            return code, None
        if not (found := json.loads(text))["self_duel"]:
            return code, {"duel_id": found["duel_id"], "outcome": "left"}


def odd_requests(server, _):
    get, end = "GET /livez HTTP/1.1\r\n", "0\r\n\r\n"
    for what, request in {
        "no Host": f"{get}\r\n",
        "two Hosts": f"{get}host: x\r\nhost: y\r\n\r\n",
        "a bare LF": f"{get}host: x\n\r\n",
        "identity, chunked": f"{get}host: x\r\ntransfer-encoding: identity\r\ntransfer-encoding: chunked\r\n\r\n{end}",
        "gzip, chunked": f"{get}host: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n{end}",
    }.items():
        yield what, status(server.port, request.encode()), 400
    close = "connection: close\r\n"
    body, packed = b"\x1f\x8b", f"content-encoding: gzip\r\n{close}"
    yield "Content-Encoding", status(server.port, head("POST", FEEDBACK, body, more=packed)), 415
    standings = "/v1/experiments/target/standings"
    position = json.loads(ask(server.port, "GET", standings)[1])["position"]
    known = f'if-none-match: W/"{position}"\r\n{close}'
    yield "If-None-Match", status(server.port, head("GET", standings, more=known)), 304


def database_away(server, database):
    """The file of SQLite is somewhere else, and then there is a copy in its place; PostgreSQL refuses connections."""
    port, ready = server.port, 503 if database.kind == "sqlite" else 200
    _, waiting = duel(port)
    feedback = lambda: ask(port, "POST", FEEDBACK, waiting)[0]
    for way in database.away():
        with way:
            yield "feedback", feedback(), 503
            yield "/readyz", within(NOTICED_WITHIN, ready, lambda: ask(port, "GET", "/readyz")[0]), ready
            yield "/livez", ask(port, "GET", "/livez")[0], 200
            yield "next-duel", duel(port)[0], 200
    yield "feedback afterwards", within(BACK_WITHIN, 200, feedback), 200


def log_goes_back(server, database):
    """As after a failover that lost the page of a click, and its first click."""
    port = server.port
    _, found = duel(port)
    lists = {"duel_id": found["duel_id"], "left": ["l"], "right": ["r"], "length": 2}
    page = json.loads(ask(port, "POST", "/v1/experiments/target/interleave", lists)[1])["duel_id"]
    click = {"duel_id": page, "clicks": ["l"], "final": False}
    yield "a click", ask(port, "POST", FEEDBACK, click)[0], 200
    duels = lambda: json.loads(ask(port, "GET", "/v1/experiments/target/standings")[1])["duels"]
    before = duels()
    database.lose_last()
    yield "the next click", ask(port, "POST", FEEDBACK, click | {"clicks": ["r"], "final": True})[0], 200
    yield "duels that count", within(BACK_WITHIN, before + 1, duels), before + 1
    server.stop()
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/export"
        for arguments in ["verify"], ["export", "target", "--out", file], ["import", file, "--as", "again"]:
            ended = subprocess.run([PROGRAM, *arguments], env=environment(database), capture_output=True)
            yield arguments[0], ended.returncode, 0


def hang_ups(server, _):
    """Callers close their connections while the server reads and writes for them."""
    port, numbers = server.port, random.Random(1)
    reads = [f"/v1/experiments/target{report}" for report in ("", "/segments", "/verdict", "/statistics", "/regret")]
    reads += ["/v1/experiments", "/v1/audit", "/metrics"]
    for number in range(400):
        with socket.create_connection((HOST, port), timeout=15) as connection:
            if number % 4:
                connection.sendall(head("GET", reads[number % len(reads)]))
            else:
                body = json.dumps({"description": f"number {number}"}).encode()
                connection.sendall(head("PATCH", "/v1/experiments/target", body, more="if-match: *\r\n"))
            time.sleep(numbers.uniform(0, 0.01))
    for method in ("GET", "PATCH"):
        close = "connection: close\r\n"
        request = head(method, "/v1/experiments/target", b"{}" if method == "PATCH" else b"", key=None, more=close)
        yield f"{method} without a key", status(port, request), 401
    code, text = ask(port, "GET", "/v1/experiments")
    yield "the list", (code, sorted(row["name"] for row in json.loads(text)["experiments"])), (
        200, ["optimized", "target", "team-draft"])
    yield "feedback", ask(port, "POST", FEEDBACK, duel(port)[1])[0], 200
    yield from no_foreign_answers(port)


def database_stalls(server, database):
    """The database does not answer for nine seconds, and then it does."""
    port = server.port
    _, waiting = duel(port)
    with database.stalled():
        end = time.monotonic() + 9
        yield "feedback", ask(port, "POST", FEEDBACK, waiting)[0] in (503, 504), True
        while time.monotonic() < end:
            yield "next-duel", duel(port)[0], 200
            time.sleep(3)
    feedback = lambda: ask(port, "POST", FEEDBACK, waiting)[0]
    yield "feedback afterwards", within(BACK_WITHIN, 200, feedback), 200
    yield "the experiment", json.loads(ask(port, "GET", "/v1/experiments/target")[1])["name"], "target"
    yield from no_foreign_answers(port)


def no_foreign_answers(port):
    lines = ask(port, "GET", "/metrics")[1].decode().splitlines()
    counted = [line for line in lines if line.startswith("rankduel_database_foreign_answers_total")]
    yield "foreign answers", counted, ["rankduel_database_foreign_answers_total 0"]


INCIDENTS = {
    "odd-requests": odd_requests,
    "database-away": database_away,
    "log-goes-back": log_goes_back,
    "hang-ups": hang_ups,
    "database-stalls": database_stalls,
}
