"""The command line of the side-car."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

from rankduel import Rankduel, RankduelError
from rankduel.transport import Transport

from .counts import Counts
from .lines import Lines, Spool
from .pages import Pages
from .searches import Searches
from .sender import Sender
from .sinks import FileSink, HttpSink, Sink
from .web import Application, WebServer

log = logging.getLogger("ubi-sidecar")

QUERIES_WAITING = 10_000
"""Records that wait for a collector of queries."""


def main() -> None:
    arguments = _arguments()
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
    with ExitStack() as stack:
        stopping = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        web = _start(stack, arguments)
        print(f"side-car   {web.url}", flush=True)
        stopping.wait()


def _start(stack: ExitStack, arguments: argparse.Namespace) -> WebServer:
    key = os.environ.get("RANKDUEL_KEY") or None
    state: Path = arguments.state
    state.mkdir(parents=True, exist_ok=True)
    counts = Counts()
    client = Rankduel(
        arguments.rankduel,
        experiment=arguments.experiment,
        control=arguments.control,
        key=key,
        deadline=arguments.deadline,
    )
    stack.callback(client.close)
    _check(client)
    searches = Searches(arguments.searches)
    sink: Sink
    if arguments.queries.startswith(("http://", "https://")):
        sink = HttpSink(arguments.queries, counts, QUERIES_WAITING)
    else:
        queries = Path(arguments.queries) if arguments.queries else state / "ubi_queries.jsonl"
        log.info("%d searches are known from %s", searches.restore(queries, arguments.experiment), queries)
        sink = FileSink(queries, counts)
    stack.callback(sink.close)

    transport = Transport(arguments.rankduel, key, 2)
    path = f"/v1/experiments/{quote(arguments.experiment, safe='')}"
    spool = Spool(state / "events.jsonl", state / "events.position", arguments.queue_bytes)
    sources: list[Lines] = [spool]
    if arguments.events is not None:
        sources.append(Lines(arguments.events, state / "followed.position"))
    senders = [Sender(source, transport, path, searches, counts) for source in sources]
    for source, sender in zip(sources, senders):
        stack.callback(source.close)
        stack.callback(sender.stop)
        sender.start()

    pages = Pages(client, arguments.experiment, arguments.control, searches, sink, counts)
    waiting = lambda: sum(sender.waiting() for sender in senders)  # noqa: E731
    try:
        web = WebServer(arguments.listen, Application(pages, searches, spool, counts, waiting))
    except OSError as error:
        raise SystemExit(f"--listen: {error.strerror}; choose another address") from None
    # no request may be in the middle of a write when the spool is closed
    stack.callback(web.busy.acquire)
    stack.callback(web.server_close)
    threading.Thread(target=web.serve_forever, args=(0.1,), daemon=True).start()
    stack.callback(web.shutdown)
    return web


def _check(client: Rankduel) -> None:
    """rankduel may start later, but an error in the settings must not show only in an outage."""
    try:
        client.check()
    except RankduelError as error:
        if error.reason in ("control-unknown", "experiment-not-found"):
            raise SystemExit(f"the side-car does not start: {error}") from None
        log.warning("rankduel cannot be asked for the experiment yet: %s", error)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} must be HOST:PORT, such as 127.0.0.1:9090")
    return host, int(port)


def _arguments() -> argparse.Namespace:
    about = "Connects a search application that speaks UBI with rankduel. RANKDUEL_KEY is the API key, if one is needed."
    parser = argparse.ArgumentParser(prog="run", description=about)
    parser.add_argument("--experiment", required=True, help="name of the experiment")
    parser.add_argument("--control", required=True, help="the ranker to show when rankduel does not answer in time")
    parser.add_argument("--rankduel", default="http://127.0.0.1:7171", help="address of rankduel (default %(default)s)")
    parser.add_argument(
        "--listen", type=_address, default=("127.0.0.1", 9090), help="HOST:PORT (default 127.0.0.1:9090; port 0 takes a free one)"
    )
    parser.add_argument(
        "--state", type=Path, default=Path("ubi-sidecar-state"), help="folder of the queue and of the positions (default %(default)s)"
    )
    parser.add_argument(
        "--queries",
        default="",
        metavar="FILE|URL",
        help="where the records for ubi_queries go: a file of JSON lines, or a collector to post arrays to (default: ubi_queries.jsonl in --state)",
    )
    parser.add_argument("--events", type=Path, metavar="FILE", help="a file of JSON lines with UBI events, which is followed")
    parser.add_argument(
        "--deadline", type=float, default=0.05, help="seconds that a page waits for rankduel (default %(default)s)"
    )
    parser.add_argument(
        "--queue-bytes", type=int, default=64 * 1024 * 1024, help="limit of the queue of events (default 64 MiB)"
    )
    parser.add_argument(
        "--searches", type=int, default=100_000, help="latest searches whose duel is remembered (default 100000)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
