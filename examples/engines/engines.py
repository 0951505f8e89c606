#!/usr/bin/env python3
"""A shop on a real OpenSearch or Solr, with rankduel, until orders name the best ranking.

    examples/engines/engines.py opensearch          visitors search, click and buy until the verdict
    examples/engines/engines.py solr --stay         the same, and then until Ctrl-C
    examples/engines/engines.py solr --latency      what a second ranking costs

The first run fetches the engines from Maven's packages, some 200 MB.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, Iterator

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILT = ROOT / "target" / "engines"
ENGINES = ("opensearch", "solr")
NODES = {"opensearch": "OpenSearchNode", "solr": "SolrNode"}
READY = {"opensearch": "/", "solr": "/solr/products/query?q=id:0"}
EXPERIMENT = {
    "name": "shop",
    "rankers": ["bm25", "bm25-title"],
    "control": "bm25",
    "decide_by": {"event": "order", "window_seconds": 60, "arrival_seconds": 20},
}
"""A minute for orders, where a shop has a week."""
SEVERAL = 3
"""Attempts to fetch packages."""
START_SECONDS = 120
VERDICT_SECONDS = 400
COLOURS = ("red", "blue", "green", "black", "white", "grey")
KINDS = ("shoes", "jacket", "shirt", "trousers", "hat", "bag", "scarf", "socks")


def build() -> None:
    """Compiles the site and the nodes. Maven fetches what is missing."""
    retries = ["-Dmaven.wagon.http.retryHandler.count=5", "-Daether.connector.http.retryHandler.count=5"]
    command = ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / "pom.xml"), *retries]
    for attempt in range(SEVERAL):
        if subprocess.run([*command, "compile", "dependency:build-classpath"], cwd=HERE).returncode == 0:
            return
        time.sleep(5 * attempt)
    raise SystemExit("Maven failed: see above")


def java(artifact: str, main: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    classpath = f"{BUILT / artifact / 'classes'}:{(BUILT / artifact / 'classpath').read_text().strip()}"
    limits = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR"]
    return ["java", *limits, *options, "-cp", classpath, main, *arguments]


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, text=True, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def engine(name: str) -> Iterator[str]:
    """A node of the engine with an empty index. Yields its address."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        if name == "solr":
            shutil.copytree(HERE / "solr" / "home", folder, dirs_exist_ok=True)
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        command = java(name, NODES[name], str(port), folder, options=(f"-Dsolr.log.dir={folder}",))
        with running(command) as process:
            url = f"http://127.0.0.1:{port}"
            began = time.monotonic()
            while not answers(url + READY[name]):
                if process.poll() is not None or time.monotonic() - began > START_SECONDS:
                    raise SystemExit(f"{name} did not start")
                time.sleep(0.2)
            yield url


@contextlib.contextmanager
def printing(command: list[str], prefix: str, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that prints its address after a prefix. Yields both."""
    with running(command, stdout=subprocess.PIPE, **options) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(prefix):
                break
        else:
            raise SystemExit(f"{command[0]} ended with code {process.wait()}")
        # the pipe must not fill
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield process, line.split()[-1]


def program() -> str:
    """`RANKDUEL_PROGRAM`, or the debug build of this checkout."""
    return os.environ.get("RANKDUEL_PROGRAM") or str(ROOT / "target" / "debug" / "rankduel")


class Shop:
    """The site, its engine and rankduel."""

    def __init__(self, site: str, engine: str, rankduel: str, server: subprocess.Popen[str], orders: Path):
        self.site = site
        self.engine = engine
        self.experiment = rankduel + "/v1/experiments/shop"
        self.rankduel = rankduel
        self.server = server
        self._orders = orders

    def search(self, user: str, text: str, page: int = 0, **others: str) -> Any:
        query = urllib.parse.urlencode({"user": user, "q": text, "page": page, **others})
        return call(f"{self.site}/search?{query}")

    def send_orders(self) -> str:
        """What a nightly job does."""
        command = [program(), "orders", str(self._orders), "--url", self.rankduel]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def has_orders(self) -> bool:
        return self._orders.exists()

    def verdict(self) -> Any:
        return call(self.experiment + "/verdict")


@contextlib.contextmanager
def shop(name: str, products: int = 400) -> Iterator[Shop]:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        node = stack.enter_context(engine(name))
        serve = [program(), "serve", "--listen", "127.0.0.1:0", "--log", "error"]
        serve += ["--database-url", f"sqlite://{folder}/rankduel.db"]
        process, rankduel = stack.enter_context(printing(serve, "listening on "))
        call(rankduel + "/v1/experiments", EXPERIMENT)
        orders = folder / "orders.jsonl"
        # long limits, because this machine may be busy
        options = (f"-Dproducts={products}", "-Ddeadline=5000", "-Dmilliseconds=5000")
        command = java("site", "shop.Main", name, node, rankduel, str(orders), options=options)
        _, site = stack.enter_context(printing(command, "site "))
        yield Shop(site, node, rankduel, process, orders)


def call(url: str, body: Any = None) -> Any:
    return post(url, None if body is None else json.dumps(body), "application/json")


def post(url: str, text: str | None, content_type: str) -> Any:
    content = None if text is None else text.encode()
    request = urllib.request.Request(url, content, {"content-type": content_type})
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def answers(url: str) -> bool:
    try:
        call(url)
    except (OSError, ValueError):
        return False
    return True


def event(user: str, duel_id: str, result: Any) -> dict[str, Any]:
    """A click, with the members that the JavaScript collector of User Behavior Insights writes, and
    the duel."""
    return {
        "application": "shop",
        "action_name": "click",
        "query_id": f"q-{user}",
        "session_id": f"s-{user}",
        "client_id": user,
        "user_id": "",
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime()),
        "message_type": "INFO",
        "message": "",
        "event_attributes": {
            "duel_id": duel_id,
            "object": {"object_id": result["id"], "object_id_field": "style", "description": result["title"]},
            "position": {"ordinal": result["position"] + 1},
        },
    }


def visit(shop: Shop, number: int, ubi: bool) -> float:
    """A person searches, clicks what fits, and may buy it. Returns the seconds of the search."""
    chance = random.Random(number)
    colour, kind, user = chance.choice(COLOURS), chance.choice(KINDS), f"u-{number}"
    began = time.monotonic()
    page = shop.search(user, f"{colour} {kind}")
    seconds = time.monotonic() - began
    for result in page["results"]:
        words = result["title"].split()
        fit = (colour in words) + (kind in words)
        if chance.random() >= (0.02, 0.1, 0.7)[fit]:
            continue
        if ubi and page["duel_id"]:
            call(f"{shop.site}/ubi_events", [event(user, page["duel_id"], result)])
        else:
            call(f"{shop.site}/click", {"duel_id": page["duel_id"], "clicks": [result["position"]]})
        if chance.random() < (0.02, 0.1, 0.6)[fit]:
            call(f"{shop.site}/order", {"user": user, "id": result["id"]})
            break
    return seconds


def visitors(shop: Shop, numbers: range, ubi: bool) -> float:
    """Returns the median milliseconds of a search."""
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        return 1000 * statistics.median(threads.map(lambda number: visit(shop, number, ubi), numbers))


def until_the_verdict(shop: Shop, ubi: bool) -> Any:
    """Rounds of visitors, each with the orders so far: a repeat does no harm."""
    began, number = time.monotonic(), 0
    while time.monotonic() - began < VERDICT_SECONDS:
        median = visitors(shop, range(number, number + 100), ubi)
        number += 100
        sent = shop.send_orders().strip().replace("\n", ", ") if shop.has_orders() else "no orders yet"
        found = shop.verdict()
        print(f"{number:5} visitors, median search {median:.0f} ms; {sent}", flush=True)
        if found["winners"]:
            return found
        time.sleep(10)
    raise SystemExit("there is no verdict yet")


def body(name: str, text: str, field: str) -> dict[str, Any]:
    """A search as the site sends it."""
    if name == "opensearch":
        return {
            "query": {"multi_match": {"query": text, "fields": [field, "description"]}},
            "collapse": {"field": "style"},
            "sort": ["_score", {"style": "asc"}],
            "_source": False,
            "size": 100,
        }
    return {
        "query": "{!edismax v=$text}",
        "params": {"text": text, "qf": f"{field} description"},
        "filter": ["{!collapse field=style}"],
        "sort": "score desc, style asc",
        "fields": "style",
        "limit": 100,
    }


def latency(name: str) -> None:
    """Prints the medians of one ranking and of two, in turn."""
    with shop(name, products=33_000) as running_shop:
        seconds: dict[int, list[float]] = {1: [], 2: []}
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            for number in range(1000):
                colours = random.Random(number).sample(COLOURS, 2)
                # another text for two rankings, so that no cache helps them
                for count, colour in zip((1, 2), colours):
                    text = f"{colour} {random.Random(number).choice(KINDS)} {number}"
                    wanted = [body(name, text, field) for field in ("title", "title^3")[:count]]
                    began = time.monotonic()
                    if name == "opensearch":
                        lines = "".join("{}\n" + json.dumps(one) + "\n" for one in wanted)
                        post(running_shop.engine + "/products/_msearch", lines, "application/x-ndjson")
                    else:
                        url = running_shop.engine + "/solr/products/query"
                        list(threads.map(lambda one: post(url, json.dumps(one), "application/json"), wanted))
                    seconds[count].append(time.monotonic() - began)
        for count, measured in seconds.items():
            warm = sorted(measured[200:])
            median, tail = statistics.median(warm), warm[int(0.95 * len(warm))]
            print(f"{count} rankings: median {1000 * median:.1f} ms, 95 % {1000 * tail:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--latency", action="store_true", help="measure one ranking and two, on 99,000 documents")
    parser.add_argument("--stay", action="store_true", help="go on until Ctrl-C")
    arguments = parser.parse_args()
    build()
    if arguments.latency:
        latency(arguments.engine)
        return
    with shop(arguments.engine) as running_shop:
        print(f"site       {running_shop.site}/search?q=red+shoes\ndashboard  {running_shop.rankduel}/experiments/shop")
        print(until_the_verdict(running_shop, ubi=arguments.engine == "opensearch")["sentence"])
        with contextlib.suppress(KeyboardInterrupt):
            while arguments.stay:
                time.sleep(1)


if __name__ == "__main__":
    main()
