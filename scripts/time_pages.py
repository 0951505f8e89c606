"""Time the pages and endpoints of one experiment by the server's own clock:

    time_pages.py URL EXPERIMENT PID

PID is that of the server. Prints a table: milliseconds of the first call after new feedback, and
the time of the processor that the server took for it, both the median of five; and the mean of
twenty calls that find nothing new. Also the mean of a duel and of its answer, which both are new
each time.
"""

import contextlib
import json
import pathlib
import re
import statistics
import sys
import urllib.error
import urllib.request

PAGES = [
    ("/", "/"),
    ("/experiments/{name}", "/experiments/{name}"),
    ("/v1/experiments/{name}/standings", "/v1/experiments/{name}/standings"),
    ("/v1/experiments/{name}/verdict", "/v1/experiments/{name}/verdict"),
    ("/v1/experiments/{name}/regret", "/v1/experiments/{name}/regret"),
    ("/v1/experiments/{name}/statistics", "/v1/experiments/{name}/statistics"),
    ("/v1/experiments/{name}/winners", "/v1/experiments/{name}/winners"),
    ("/v1/experiments/{name}/traffic", "/v1/experiments/{name}/traffic"),
    ("/metrics", "/metrics"),
]
ROUNDS = 5
REPEATS = 20
DUELS = 100


def main() -> None:
    url, name, threads = sys.argv[1], sys.argv[2], pathlib.Path("/proc", sys.argv[3], "task")

    def call(path: str, body: object = None) -> bytes:
        request = urllib.request.Request(url + path, method="POST" if body is not None else "GET")
        if body is not None and body != "":
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()

    def spent(route: str, method: str = "GET") -> float:
        text = call("/metrics").decode()
        labels = f'method="{method}",route="{re.escape(route)}"'
        pattern = r"^rankduel_http_request_duration_seconds_sum\{" + labels + r"\} (\S+)$"
        found = re.search(pattern, text, re.MULTILINE)
        return float(found.group(1)) if found else 0.0

    def processor() -> float:
        """Seconds of the processor that the server's threads have taken. The time of one that has
        ended is missing; the median of several differences bears that."""
        seconds = 0.0
        for file in threads.glob("*/schedstat"):
            with contextlib.suppress(OSError):
                seconds += int(file.read_text().split()[0]) / 1e9
        return seconds

    def new_feedback() -> bool:
        duel = json.loads(call(f"/v1/experiments/{name}/next-duel", ""))
        if not duel["self_duel"]:
            call(f"/v1/experiments/{name}/feedback", {"duel_id": duel["duel_id"], "outcome": "left"})
        return not duel["self_duel"]

    duel, answer = "/v1/experiments/{name}/next-duel", "/v1/experiments/{name}/feedback"
    before = [spent(duel, "POST"), spent(answer, "POST")]
    answered = 0
    for _ in range(DUELS):
        answered += new_feedback()
    after = [spent(duel, "POST"), spent(answer, "POST")]
    print(f"{duel:40} {1000 * (after[0] - before[0]) / DUELS:10.2f} ms")
    if answered > 0:
        print(f"{answer:40} {1000 * (after[1] - before[1]) / answered:10.2f} ms, with its commit")

    columns = ["anew, ms", "processor", "again, ms", "bytes"]
    print(" ".join([" " * 40, *(f"{column:>10}" for column in columns)]))
    for route, path in PAGES:
        path = path.replace("{name}", name)
        call(path)
        # a request for the metrics is counted after it has ended
        looks = 1 if route == "/metrics" else 0
        times, processor_times = [], []
        for _ in range(ROUNDS):
            new_feedback()
            before, processor_before = spent(route), processor()
            size = len(call(path))
            processor_times.append(1000 * (processor() - processor_before))
            times.append(1000 * (spent(route) - before) / (1 + looks))
        before = spent(route)
        for _ in range(REPEATS):
            call(path)
        again = 1000 * (spent(route) - before) / (REPEATS + looks)
        anew, busy = statistics.median(times), statistics.median(processor_times)
        print(f"{route:40} {anew:10.1f} {busy:10.1f} {again:10.1f} {size:10}")


main()
