"""The command line of the site; `run` installs what it needs and calls it."""

from __future__ import annotations

import argparse
import logging
import signal
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rankduel import Rankduel

from . import corpus as corpora
from . import learn, report, server
from .rankers import CONTROL, DESCRIPTIONS, Ranker, all_of
from .site import Site
from .users import Simulated, Users
from .web import WebServer

DATA = server.ROOT / "target" / "search-site"
COUNTING_SECONDS = 10
"""rankduel counts the last answers of a window some seconds after its end."""
PROGRESS_SECONDS = 10


def main() -> None:
    arguments = _arguments()
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    if arguments.at is None:
        server.program()  # before anything that takes a while
    corpus = corpora.load(DATA / "corpus")
    sizes = len(corpus.documents), len(corpus.training), len(corpus.test)
    print("{} manual pages, {} training and {} test queries".format(*sizes), flush=True)
    rankers = all_of(corpus, DATA / "corpus" / "model.json")
    if arguments.orders:
        rankers = {id: rankers[id] for id in (CONTROL, "learned")}
    with ExitStack() as stack:
        stack.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _stop))
        try:
            if arguments.at is None:
                url, rankduel_url = _start(stack, arguments, corpus, rankers)
            else:
                url, rankduel_url = arguments.at.rstrip("/"), arguments.rankduel
            if arguments.simulate is not None:
                _simulate(arguments, url, rankduel_url, corpus, rankers)
            else:
                threading.Event().wait()
        except KeyboardInterrupt:
            print("stopping")


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _start(
    stack: ExitStack, arguments: argparse.Namespace, corpus: corpora.Corpus, rankers: dict[str, Ranker]
) -> tuple[str, str]:
    """Start rankduel and the site. Returns their addresses."""
    database = arguments.database
    if database is None:
        database = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "rankduel.db"
    rankduel = server.RankduelServer(database.absolute(), arguments.rankduel_port)
    stack.callback(rankduel.stop)
    try:
        descriptions = {id: DESCRIPTIONS[id] for id in rankers}
        server.create_experiment(rankduel.url, descriptions, arguments.settle_seconds, arguments.orders)
    except server.Refused as refused:
        raise SystemExit(f"rankduel does not create the experiment: {refused}") from None
    client = Rankduel(rankduel.url, experiment=server.EXPERIMENT, control=CONTROL, deadline=arguments.deadline)
    site = Site(
        rankers,
        CONTROL,
        client,
        ranker_seconds=arguments.ranker_seconds,
        settle_seconds=arguments.settle_seconds,
        sells=arguments.orders,
    )
    stack.callback(site.close)
    try:
        web = WebServer(arguments.port, site, corpus)
    except OSError as error:
        raise SystemExit(f"port {arguments.port}: {error.strerror}; choose another one with --port") from None
    stack.callback(web.server_close)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    stack.callback(web.shutdown)
    print(f"rankduel   process {rankduel.process.pid}")
    print(f"site       {web.url}/")
    print(f"dashboard  {rankduel.url}/experiments/{server.EXPERIMENT}", flush=True)
    return web.url, rankduel.url


def _simulate(
    arguments: argparse.Namespace, url: str, rankduel_url: str, corpus: corpora.Corpus, rankers: dict[str, Ranker]
) -> None:
    """Search as simulated users until the verdict, and compare it with nDCG."""
    results = f"{rankduel_url}/v1/experiments/{server.EXPERIMENT}"
    printed = time.monotonic()

    def found(so_far: Simulated) -> Any:
        nonlocal printed
        verdict = server.call(f"{results}/verdict")
        if time.monotonic() >= printed + PROGRESS_SECONDS:
            printed = time.monotonic()
            print(f"{so_far.searches:>7} searches: {verdict['sentence']}", flush=True)
        return verdict

    def enough(so_far: Simulated) -> bool:
        """Whether the answers so far suffice, also those that wait for one that may still come."""
        verdict = found(so_far)
        to_go = verdict["duels_to_go"]
        return verdict["state"] == "decided" or (to_go is not None and to_go["estimate"] == 0)

    done = Users(url, corpus.test, arguments.simulate, buy=arguments.orders).run(enough)
    # the verdict counts an answer once its window is over
    window = server.call(f"{rankduel_url}/v1/experiments/{server.EXPERIMENT}")["answer_window_seconds"]
    end = time.monotonic() + window + COUNTING_SECONDS
    while found(done)["state"] != "decided" and time.monotonic() < end:
        time.sleep(1.0)
    print(f"{done.searches} searches, {done.clicks} clicks, ", end="")
    print(f"pages with the control instead: {done.fallbacks or 'none'}\n")
    verdict, standings = server.call(f"{results}/verdict"), server.call(f"{results}/standings")
    print(report.table(report.offline(rankers, corpus.test), verdict, standings), flush=True)


def _arguments() -> argparse.Namespace:
    about = "A search site for the Linux manual pages, beside rankduel."
    parser = argparse.ArgumentParser(prog="run", description=about)
    parser.add_argument("--port", type=int, default=8080, help="port of the site (default 8080; 0 takes a free one)")
    parser.add_argument(
        "--rankduel-port", type=int, default=7171, help="port of rankduel (default 7171; 0 takes a free one)"
    )
    parser.add_argument("--database", type=Path, help="SQLite file of rankduel (default: a temporary one)")
    parser.add_argument(
        "--deadline", type=float, default=0.1, help="seconds that a search waits for rankduel (default %(default)s)"
    )
    parser.add_argument(
        "--ranker-seconds", type=float, default=0.5, help="seconds that a search waits for a ranker (default %(default)s)"
    )
    parser.add_argument(
        "--settle-seconds", type=float, default=30.0, help="seconds until a visitor has left (default %(default)s)"
    )
    parser.add_argument(
        "--simulate", type=int, metavar="N", help="let at most N simulated users search, until the verdict"
    )
    parser.add_argument(
        "--orders", action="store_true", help="sell printed pages: orders decide between two of the rankings"
    )
    parser.add_argument("--at", metavar="URL", help="with --simulate: the address of a site that runs already")
    parser.add_argument(
        "--rankduel",
        metavar="URL",
        default="http://127.0.0.1:7171",
        help="with --at: the address of its rankduel (default %(default)s)",
    )
    arguments = parser.parse_args()
    if arguments.at is not None and arguments.simulate is None:
        parser.error("--at needs --simulate")
    return arguments


if __name__ == "__main__":
    main()
