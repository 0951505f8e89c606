"""Time the pages and endpoints of one experiment by the server's own clock:

    time_pages.py URL EXPERIMENT

Prints a table: milliseconds of the first call after new feedback, and the mean of twenty calls that
find nothing new; and the mean of a duel and of its answer, which both are new each time.
"""

import json
import re
import sys
import urllib.error
import urllib.request

PAGES = [
    ("/", "/"),
    ("/experiments/{name}", "/experiments/{name}"),
    ("/v1/experiments/{name}/standings", "/v1/experiments/{name}/standings"),
    ("/v1/experiments/{name}/verdict", "/v1/experiments/{name}/verdict"),
    ("/v1/experiments/{name}/regret", "/v1/experiments/{name}/regret"),
    ("/v1/experiments/{name}/winners", "/v1/experiments/{name}/winners"),
    ("/v1/experiments/{name}/traffic", "/v1/experiments/{name}/traffic"),
    ("/metrics", "/metrics"),
]
REPEATS = 20
DUELS = 100


def main() -> None:
    url, name = sys.argv[1], sys.argv[2]

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

    print(f"{'':40} {'anew, ms':>10} {'again, ms':>10} {'bytes':>10}")
    for route, path in PAGES:
        path = path.replace("{name}", name)
        call(path)
        new_feedback()
        before = spent(route)
        size = len(call(path))
        anew = spent(route)
        for _ in range(REPEATS):
            call(path)
        again = spent(route)
        # a request for the metrics is counted after it has ended
        looks = 1 if route == "/metrics" else 0
        print(f"{route:40} {1000 * (anew - before) / (1 + looks):10.1f} {1000 * (again - anew) / (REPEATS + looks):10.1f} {size:10}")


main()
