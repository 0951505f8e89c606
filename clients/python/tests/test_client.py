"""Tests of the client with a real server, which may be slow, stopped or started again."""

from __future__ import annotations

import asyncio
import decimal
import http.server
import json
import logging
import os
import socket
import threading
import time
import unittest
import uuid
from typing import Any, Sequence

from rankduel import AsyncRankduel, Duel, Page, Rankduel, RankduelError
from rankduel.transport import encode
from server import NOBODY, Server

SECONDS = 60.0
"""Long limits, because a test machine may be busy."""
RANKINGS = {"bm25": ["a", "b", "c", "d"], "neural": ["d", "c", "x", "y"]}


def connect(url: str, experiment: str = "search", **more: Any) -> Rankduel:
    return Rankduel(url, experiment=experiment, control="bm25", **{"deadline": SECONDS, **more})


def waits_until(what: str, holds: object) -> None:
    for _ in range(600):
        if callable(holds) and holds():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen in time")


class WithServer(unittest.TestCase):
    server: Server

    @classmethod
    def setUpClass(cls) -> None:
        logging.getLogger("rankduel").setLevel(logging.CRITICAL)
        cls.server = Server()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.server.stop()

    def setUp(self) -> None:
        self.experiment = self.id().rpartition(".")[2].replace("_", "-")[:64]
        self.server.create(self.experiment)

    def client(self, **more: Any) -> Rankduel:
        client = connect(self.server.url, self.experiment, **more)
        self.addCleanup(client.close, 0)
        return client

    def duels(self) -> int:
        return int(self.server.standings(self.experiment)["duels"])


class Pages(WithServer):
    def test_page_and_clicks(self) -> None:
        client = self.client()
        page = client.page(RANKINGS, length=3)
        self.assertIsNone(page.fallback)
        self.assertTrue(page.informative)
        self.assertEqual([slot.position for slot in page.slots], [0, 1, 2])
        self.assertTrue(set(page.documents) <= set("abcdxy"))
        client.clicked(page, [0, {"document": page.documents[0]}, {"slot": str(page.slots[0].token)}])
        self.assertTrue(client.flush(SECONDS))
        self.assertEqual(client.counts().recorded, 1)
        standings = self.server.standings(self.experiment)
        outcomes = standings["outcomes"]
        self.assertEqual((standings["duels"], outcomes["left"] + outcomes["right"]), (1, 1))

    def test_pair_first(self) -> None:
        asked = []

        def search(rankers: Sequence[str]) -> dict[str, list[str]]:
            asked.append(sorted(rankers))
            return {ranker: RANKINGS[ranker] for ranker in rankers}

        page = self.client().page(search, length=3)
        self.assertIsNone(page.fallback)
        self.assertEqual(asked, [["bm25", "neural"]])
        self.assertEqual(len(page.slots), 3)

    def test_pages_of_one_list(self) -> None:
        client = self.client()
        duel = client.next_duel()
        first = client.more(duel, RANKINGS, length=2)
        second = client.more(Page.from_json(first.to_json()), RANKINGS, length=2, offset=2)
        whole = client.more(Duel.from_json(duel.to_json()), RANKINGS, length=4)
        self.assertEqual(first.documents + second.documents, whole.documents)
        self.assertEqual([slot.position for slot in second.slots], [2, 3])

    def test_clicks_of_another_request(self) -> None:
        page = self.client().page(RANKINGS)
        other = self.client()
        other.clicked(page.duel_id, [0])
        other.clicked(None, [0])
        self.assertTrue(other.flush(SECONDS))
        self.assertEqual((other.counts().recorded, self.duels()), (1, 1))

    def test_pieces_make_one_outcome(self) -> None:
        client = self.client()
        page = client.page(RANKINGS)
        client.clicked(page, [1], final=False)
        client.clicked(page, [0], final=False)
        client.clicked(page, [0], final=False)
        client.clicked(page, [])
        self.assertTrue(client.flush(SECONDS))
        self.assertEqual(self.duels(), 1)

    def test_outcome(self) -> None:
        client = self.client()
        for outcome in ("left", "right", "tie", "none"):
            client.outcome(client.next_duel(), outcome)
        self.assertTrue(client.flush(SECONDS))
        self.assertEqual(client.counts().recorded, 4)
        outcomes = self.server.standings(self.experiment)["outcomes"]
        self.assertEqual([outcomes[key] for key in ("left", "right", "tie", "none")], [1, 1, 1, 1])

    def test_pinned(self) -> None:
        page = self.client().page(RANKINGS, length=3, pinned=[(0, "ad")])
        self.assertEqual(page.documents[0], "ad")

    def test_what_the_server_refuses_is_the_control(self) -> None:
        reasons: list[str] = []
        page = connect(self.server.url, "nobody-made-this", on_fallback=reasons.append).page(RANKINGS)
        self.assertEqual((page.fallback, page.documents), ("experiment-not-found", RANKINGS["bm25"]))
        self.assertEqual(reasons, ["experiment-not-found"])

    def test_refused_feedback_is_not_sent_again(self) -> None:
        client = self.client()
        page = client.page(RANKINGS)
        client.clicked(page, [999])
        self.assertTrue(client.flush(SECONDS))
        self.assertEqual((client.counts().refused, self.duels()), (1, 0))

    def test_one_bad_item_spoils_no_other(self) -> None:
        client = self.client()
        pages = [client.page(RANKINGS) for _ in range(20)]
        unsendable: list[Any] = [b"a", float("nan"), "x\ud83d"]
        refused: list[Any] = [*unsendable, uuid.uuid4(), {"position": -1}]
        with self.assertLogs("rankduel") as logs:
            for number, page in enumerate(pages):
                client.clicked(page, refused[number : number + 1] or [0])
            self.assertTrue(client.flush(SECONDS))
        self.assertEqual((client.counts().recorded, client.counts().refused, self.duels()), (15, 5, 15))
        self.assertEqual(sum("refused: invalid-request" in line for line in logs.output), len(unsendable))
        with self.assertRaisesRegex(RankduelError, "bytes has no form in JSON"):
            client.report_clicks(client.page(RANKINGS), unsendable[:1])
        self.assertEqual(encode({"value": decimal.Decimal("49.90")}), b'{"value":49.9}')

    def test_late_clicks_name_the_remedy(self) -> None:
        client = self.client()
        page = client.page(RANKINGS)
        with self.assertLogs("rankduel") as logs:
            client.clicked(page, [0])
            client.clicked(page, [1])
            self.assertTrue(client.flush(SECONDS))
        self.assertEqual((client.counts().recorded, client.counts().refused), (1, 1))
        self.assertIn("final=False", "".join(logs.output))

    def test_ids_that_are_uuids(self) -> None:
        one, two = uuid.uuid4(), uuid.uuid4()
        rankings: Any = {"bm25": [one, two], "neural": [two, one]}
        page = self.client().page(rankings, unit=one)  # type: ignore[arg-type]
        self.assertEqual((page.fallback, set(page.documents)), (None, {str(one), str(two)}))
        pinned: Any = [(0, two)]
        page = connect(NOBODY).page(rankings, pinned=pinned)
        self.assertEqual((page.fallback, page.documents), ("unreachable", [str(two), str(one)]))

    def test_a_page_whatever_the_rankings_have(self) -> None:
        client = self.client()
        odd: Any = {"id": "a"}
        for ranking in ([odd, odd], ["a", None], [b"a"], [float("nan")], ["x\ud83d"], (odd for _ in range(2))):
            given: Any = list(ranking)
            of_all: Any = lambda rankers, given=given: dict.fromkeys(rankers, given)  # noqa: E731
            for rankings in ({"bm25": given, "neural": ["a"]}, of_all):
                page = client.page(rankings)
                self.assertEqual((page.fallback, page.documents), ("invalid-request", given))

    def test_a_ranking_that_is_one_text(self) -> None:
        client = self.client()
        rankings: Any = {"bm25": ["a", "b"], "neural": "neural-1"}
        for form in (rankings, lambda rankers: rankings):
            page = client.page(form)
            self.assertEqual((page.fallback, page.documents), ("ranker-failed", ["a", "b"]))
            self.assertEqual(client.more(client.next_duel(), form).fallback, "ranker-failed")
        rankings = {"bm25": "bm25-1", "neural": ["a"]}
        for form in (rankings, lambda rankers: rankings):
            with self.assertRaisesRegex(ValueError, "ranking of 'bm25' is str"):
                client.page(form)
        with self.assertRaisesRegex(ValueError, "rankings is list"):
            client.page(lambda rankers: ["a"])  # type: ignore[arg-type, return-value]

    def test_many_threads(self) -> None:
        client = self.client(connections=2)

        def search() -> None:
            for _ in range(25):
                client.clicked(client.page(RANKINGS), [0])

        threads = [threading.Thread(target=search) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertTrue(client.flush(SECONDS))
        self.assertEqual((client.counts().recorded, self.duels()), (100, 100))


class Forks(unittest.TestCase):
    def test_a_forked_process_has_connections_of_its_own(self) -> None:
        class Port(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"] or 0))
                port = str(self.client_address[1])
                duel = {"duel_id": port, "left": "bm25", "right": "neural", "self_duel": False}
                duel["expires_at"] = "2026-11-21T11:00:00.000Z"
                content = json.dumps(duel).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Port) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            client = connect(f"http://127.0.0.1:{server.server_port}")
            port = client.next_duel().duel_id
            self.assertIsNotNone(port)
            self.assertEqual(client.next_duel().duel_id, port)
            child = os.fork()
            if child == 0:
                other = client.next_duel().duel_id
                os._exit(int(other is None or other == port))
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            self.assertEqual(client.next_duel().duel_id, port)
            client.close(0)
            server.shutdown()


class Asyncio(WithServer):
    def test_many_searches(self) -> None:
        active = 0
        most = 0

        async def search(rankers: Sequence[str]) -> dict[str, list[str]]:
            nonlocal active, most
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.01)
            active -= 1
            return {ranker: RANKINGS[ranker] for ranker in rankers}

        async def searches() -> list[Page]:
            options: dict[str, Any] = {"experiment": self.experiment, "control": "bm25", "deadline": SECONDS}
            async with AsyncRankduel(self.server.url, **options) as client:
                await client.check()
                pages = await asyncio.gather(*(client.page(search, length=3) for _ in range(100)))
                for page in pages:
                    client.clicked(page.duel_id, [0])
                await client.flush(SECONDS)
                return pages

        pages = asyncio.run(searches())
        self.assertEqual({page.fallback for page in pages}, {None})
        self.assertEqual(self.duels(), 100)
        # both rankings of a page are made at the same time
        self.assertGreaterEqual(most, 2)

    def test_a_page_after_close(self) -> None:
        async def search() -> Page:
            client = AsyncRankduel(self.server.url, experiment=self.experiment, control="bm25")
            await client.close()
            return await client.page(RANKINGS)

        self.assertEqual(asyncio.run(search()).fallback, "closed")


class Faults(WithServer):
    def test_frozen_server(self) -> None:
        client = self.client()
        hasty = self.client(deadline=0.3)
        before = client.page(RANKINGS)
        self.server.freeze()
        try:
            page = hasty.page(RANKINGS)
            self.assertEqual((page.fallback, page.documents), ("timeout", RANKINGS["bm25"]))
            client.clicked(page, [0])
            client.clicked(before, [0])
        finally:
            self.server.thaw()
        self.assertTrue(client.flush(SECONDS))
        self.assertIsNone(client.page(RANKINGS).fallback)
        # clicks on a fallback page teach nothing about the rankers
        self.assertEqual((client.counts().recorded, self.duels()), (1, 1))

    def test_server_down_and_back(self) -> None:
        client = self.client()
        pages = [client.page(RANKINGS) for _ in range(150)]
        for page in pages[:10]:
            client.clicked(page, [0])
        self.assertTrue(client.flush(SECONDS))
        self.server.kill()
        for page in pages[10:]:
            client.clicked(page, [0])
        client.clicked(pages[0], [0])
        fallbacks = {client.page(RANKINGS).fallback for _ in range(20)}
        self.assertEqual(fallbacks, {"unreachable", "resting"})
        self.assertFalse(client.flush(0.3))
        self.server.start()
        self.assertTrue(client.flush(SECONDS))
        counts = client.counts()
        self.assertEqual((counts.recorded + counts.duplicate, counts.refused, counts.dropped), (151, 0, 0))
        self.assertEqual(self.duels(), 150)
        waits_until("a page that is not the control's", lambda: client.page(RANKINGS).fallback is None)

    def test_answer_that_is_lost(self) -> None:
        """The server stores feedback, but its answer is lost. The client repeats it; it counts once."""
        with CutOnce(self.server.port) as proxy:
            client = connect(f"http://127.0.0.1:{proxy.port}", self.experiment)
            page = client.page(RANKINGS)
            proxy.cut_next_answer.set()
            client.clicked(page, [0])
            self.assertTrue(client.flush(SECONDS))
            self.assertEqual((client.counts().duplicate, client.counts().recorded), (1, 0))
            client.close(0)
        self.assertEqual(self.duels(), 1)

    def test_closed(self) -> None:
        client = self.client()
        page = client.page(RANKINGS)
        self.assertTrue(client.close(SECONDS))
        client.clicked(page, [0])
        self.assertEqual((client.page(RANKINGS).fallback, client.counts().dropped), ("closed", 1))


class CutOnce:
    """A proxy to a server. It discards one answer and closes its connection."""

    def __init__(self, to: int):
        self._to = to
        self.cut_next_answer = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> CutOnce:
        threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _run(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(65536):
                if is_answer and self.cut_next_answer.is_set():
                    self.cut_next_answer.clear()
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class WithoutServer(unittest.TestCase):
    def setUp(self) -> None:
        logging.getLogger("rankduel").setLevel(logging.CRITICAL)

    def test_nobody_there(self) -> None:
        client = connect(NOBODY)
        self.assertEqual(client.next_duel(), Duel("bm25", "bm25", None, 4102444800.0, "unreachable"))
        page = client.page(RANKINGS, length=2, offset=1, pinned=[(2, "ad"), (9, "b")])
        self.assertEqual([(slot.position, slot.document) for slot in page.slots], [(1, "c"), (2, "ad")])
        self.assertEqual(page.total, 5)
        client.clicked(page, [0])
        self.assertEqual(client.counts().waiting, 0)
        for length, shown in (("2", 2), (None, 4), ("x", 4), (float("inf"), 4), (-1, 0)):
            page = client.page(RANKINGS, length=length, offset="0")  # type: ignore[arg-type]
            self.assertEqual(page.documents, RANKINGS["bm25"][:shown], length)

    def test_an_answer_that_drips_ends_with_the_deadline(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def drip() -> None:
            connection, _ = listener.accept()
            try:
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.02)
            except OSError:
                pass

        threading.Thread(target=drip, daemon=True).start()
        client = connect(f"http://127.0.0.1:{listener.getsockname()[1]}", deadline=0.3)
        # each byte arrives before a timeout per read would end; the whole answer would take 20 s
        self.assertEqual(client.next_duel().fallback, "timeout")

    def test_an_answer_of_something_else(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def answer() -> None:
            connection, _ = listener.accept()
            connection.sendall(b'HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{"hello": "world"}')
            connection.shutdown(socket.SHUT_WR)
            # closing a socket with unread data would discard the answer
            while connection.recv(65536):
                pass
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        page = connect(f"http://127.0.0.1:{listener.getsockname()[1]}").page(RANKINGS)
        self.assertEqual((page.fallback, page.documents), ("not-rankduel", RANKINGS["bm25"]))

    def test_tls_is_spoken(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        heard: list[bytes] = []

        def listen() -> None:
            connection, _ = listener.accept()
            heard.append(connection.recv(3))
            connection.close()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        self.assertEqual(connect(f"https://127.0.0.1:{listener.getsockname()[1]}").next_duel().fallback, "unreachable")
        thread.join()
        handshake = 22
        self.assertEqual(heard[0][0], handshake)

    def test_misuse(self) -> None:
        for url in ("rankduel:7171", "ftp://rankduel", "http://", "http://host/?a=b"):
            with self.assertRaises(ValueError):
                connect(url)
        client = connect(NOBODY)
        with self.assertRaisesRegex(ValueError, "control"):
            client.page({"neural": ["a"]})
        with self.assertRaisesRegex(ValueError, "left, right, tie or none"):
            client.outcome("x", "up")
        for clicks in ("d7", b"d7", {"position": 0}):
            with self.assertRaisesRegex(ValueError, "must be a list"):
                client.clicked("x", clicks)  # type: ignore[arg-type]
        for seconds in (0, float("inf")):
            with self.assertRaises(ValueError):
                client.report_outcome("x", "left", seconds=seconds)
        self.assertTrue(client.flush(float("inf")))
        limits = [0, -1, float("nan"), float("inf"), 1e10, "0.05", None]
        wrong: list[dict[str, Any]] = [{name: limit} for name in ("deadline", "stock_seconds") for limit in limits]
        wrong += [{"queue": 0}, {"queue": 1.5}, {"connections": 0}, {"stock": -1}, {"stock": 1001}, {"key": b"k"}]
        for options in wrong:
            with self.subTest(options), self.assertRaises(ValueError):
                connect("http://127.0.0.1", **options)
        with self.assertRaisesRegex(ValueError, "address"):
            connect(f"http://{'a' * 64}.internal")

    def test_a_callback_that_fails(self) -> None:
        def fails(_reason: str) -> None:
            raise RuntimeError

        self.assertEqual(connect(NOBODY, on_fallback=fails).page(RANKINGS).total, 4)


if __name__ == "__main__":
    unittest.main()
