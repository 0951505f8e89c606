"""The backend against a real rankduel: clicks, fallbacks and hostile input, without a browser."""

from __future__ import annotations

import http.client
import json
import logging
import tempfile
import threading
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import Any, Mapping
from urllib.parse import quote, urlsplit

from rankduel import Rankduel
from running import until

from search_site import server
from search_site.corpus import Corpus, Document
from search_site.rankers import Ranker
from search_site.site import THREADS_PER_RANKER, SearchFailed, Site
from search_site.web import WebServer

NUMBERS = [f"d{number}.3" for number in range(20)]
SECONDS = 60.0
"""Long limits, because a test machine may be busy."""
DOCUMENTS = {id: Document(id, [id], f"summary of {id}", "", "", "2022-01-01") for id in NUMBERS}

logging.disable(logging.WARNING)  # the fallbacks that these tests cause


def forward(query: str) -> list[str]:
    return [] if query == "nothing" else NUMBERS


def backward(query: str) -> list[str]:
    return [] if query in ("nothing", "only forward") else NUMBERS[::-1]


class Case(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.database = Path(folder.name) / "rankduel.db"
        self.rankduel = server.RankduelServer(self.database)
        self.addCleanup(lambda: self.rankduel.stop())

    def site(self, rankers: Mapping[str, Ranker], **options: Any) -> Site:
        """A site whose control is `forward`."""
        sells = options.get("sells", False)
        server.create_experiment(self.rankduel.url, dict.fromkeys(rankers, ""), 30.0, sells)
        client = Rankduel(self.rankduel.url, experiment=server.EXPERIMENT, control="forward", deadline=SECONDS)
        site = Site(rankers, "forward", client, **{"ranker_seconds": SECONDS, **options})
        self.addCleanup(site.close)
        return site

    def standings(self) -> Any:
        return server.call(f"{self.rankduel.url}/v1/experiments/{server.EXPERIMENT}/standings")

    def until_duels(self, duels: int) -> Any:
        until(lambda: bool(self.standings()["duels"] == duels), f"{duels} duels")
        return self.standings()["outcomes"]


class Fallbacks(Case):
    def test_without_rankduel_the_control_is_shown_and_afterwards_duels_again(self) -> None:
        site = self.site({"forward": forward, "backward": backward})
        self.assertIsNone(site.search("before", "s").fallback)
        port = urlsplit(self.rankduel.url).port or 0
        self.rankduel.stop()
        during = site.search("during", "s")
        self.assertEqual(during.fallback, "unreachable")
        self.assertEqual(list(during.documents), NUMBERS[:10])
        self.assertIsNone(during.duel_id)
        self.rankduel = server.RankduelServer(self.database, port)
        until(lambda: site.search(f"after {time.monotonic()}", "t").fallback is None, "a duel again")

    def test_a_failing_ranker_is_replaced_by_the_control(self) -> None:
        def failing(query: str) -> list[str]:
            raise OSError("the index is gone")

        self.assert_control_instead_of(failing)

    def test_a_slow_ranker_is_replaced_by_the_control(self) -> None:
        waiting = threading.Event()
        self.addCleanup(waiting.set)

        def slow(query: str) -> list[str]:
            waiting.wait()
            return NUMBERS

        # the other ranker has the same limit, and must keep it on a busy machine
        self.assert_control_instead_of(slow, ranker_seconds=1.0)

    def assert_control_instead_of(self, ranker: Ranker, **options: Any) -> None:
        site = self.site({"forward": forward, "backward": ranker}, **options)
        # more searches than the ranker has threads: each must end
        for number in range(THREADS_PER_RANKER + 2):
            found = site.search(f"query {number}", f"visitor {number}")
            self.assertEqual(found.fallback, "ranker-failed")
            self.assertEqual(list(found.documents), NUMBERS[:10])
            self.assertIsNone(found.duel_id)
        self.assertEqual(site.counts()["fallbacks"], {"ranker-failed": THREADS_PER_RANKER + 2})
        self.assertEqual(self.standings()["duels"], 0)

    def test_if_the_control_fails_as_well_the_search_fails(self) -> None:
        def failing(query: str) -> list[str]:
            raise OSError("the index is gone")

        site = self.site({"forward": failing, "backward": failing})
        with self.assertRaises(SearchFailed):
            site.search("anything", "s")

    def test_a_page_without_results_gives_no_signal(self) -> None:
        site = self.site({"forward": forward, "backward": backward})
        self.assertEqual(site.search("nothing", "s").documents, ())
        self.assertEqual(self.until_duels(1), {"left": 0, "right": 0, "tie": 0, "none": 1})

    def test_one_ranker_without_results_does_not_empty_the_page(self) -> None:
        site = self.site({"forward": forward, "backward": backward})
        self.assertEqual(sorted(site.search("only forward", "s").documents), sorted(NUMBERS[:10]))


class Visits(Case):
    def test_a_reload_shows_the_same_page_and_the_next_search_settles_it(self) -> None:
        site = self.site({"forward": forward, "backward": backward})
        first = site.search("first", "s")
        self.assertEqual(site.search("first", "s"), first)
        assert first.duel_id is not None
        site.clicked(first.duel_id, [0], final=False)
        site.clicked(first.duel_id, [0, 1], final=False)
        self.assertTrue(site._rankduel.flush(SECONDS))
        self.assertEqual(self.standings()["duels"], 0)
        second = site.search("second", "s")
        self.assertNotEqual(second.duel_id, first.duel_id)
        self.until_duels(1)

    def test_a_visitor_who_does_not_come_back_gives_no_signal(self) -> None:
        site = self.site({"forward": forward, "backward": backward}, settle_seconds=0.2)
        site.search("first", "s")
        self.assertEqual(self.until_duels(1), {"left": 0, "right": 0, "tie": 0, "none": 1})

    def test_clicks_decide_for_the_ranker_whose_documents_they_are(self) -> None:
        site = self.site({"forward": forward, "backward": backward})
        for number in range(5):
            found = site.search("the same", f"visitor {number}")
            assert found.duel_id is not None
            wanted = [at for at, id in enumerate(found.documents) if id in NUMBERS[10:]]
            site.clicked(found.duel_id, wanted, final=True, session=f"visitor {number}")
        self.assertTrue(site._rankduel.flush(SECONDS))
        standings = self.standings()
        rankers = {row["id"]: row for row in standings["rankers"]}
        # the policy may have shown one ranker alone
        self.assertGreater(standings["duels"], 0)
        won_and_lost = (rankers["backward"]["wins"], rankers["backward"]["losses"])
        self.assertEqual(won_and_lost, (standings["duels"], 0))


class OverHttp(Case):
    sells = False

    def setUp(self) -> None:
        super().setUp()
        site = self.site({"forward": forward, "backward": backward}, sells=self.sells)
        self.web = WebServer(0, site, Corpus(DOCUMENTS, [], []))
        self.addCleanup(self.web.server_close)
        threading.Thread(target=self.web.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(self.web.shutdown)

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.web.server_address[1], timeout=SECONDS)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def test_the_duel_id_is_all_that_a_browser_needs_to_report_clicks(self) -> None:
        status, answer = self.send("GET", "/api/search?q=something")
        found = json.loads(answer)
        self.assertEqual((status, found["fallback"], len(found["results"])), (200, None, 10))
        for ranker in ("forward", "backward"):
            self.assertNotIn(ranker, answer)
        body = json.dumps({"duel_id": found["duel_id"], "clicks": [0]}).encode()
        self.assertEqual(self.send("POST", "/feedback", body)[0], 202)
        outcomes = Counter(self.until_duels(1))
        self.assertEqual(outcomes["left"] + outcomes["right"], 1)

    def test_the_page_shows_hostile_queries_as_text(self) -> None:
        query = "\"><script>alert(1)</script>"
        status, answer = self.send("GET", "/?q=" + quote(query))
        self.assertEqual(status, 200)
        self.assertNotIn("<script>alert", answer)
        self.assertIn("&lt;script&gt;alert", answer)

    def test_invalid_feedback_is_refused(self) -> None:
        for body in (
            b"",
            b"{",
            b"[]",
            b'{"duel_id": 1, "clicks": []}',
            b'{"duel_id": "x", "clicks": [-1]}',
            b'{"duel_id": "x", "clicks": [true]}',
            b'{"duel_id": "x", "clicks": ["d1"]}',
            b'{"duel_id": "x", "clicks": [], "final": 1}',
            b" " * 20_000,
        ):
            with self.subTest(body[:40]):
                status, answer = self.send("POST", "/feedback", body)
                self.assertEqual(status, 400)
                self.assertTrue(json.loads(answer)["detail"])

    def test_unknown_paths_are_not_found(self) -> None:
        for path in ("/page/unknown.1", "/page/../../etc/passwd", "/x"):
            self.assertEqual(self.send("GET", path)[0], 404, path)

    def test_nothing_is_sold(self) -> None:
        self.assertNotIn("Order a print", self.send("GET", "/page/d7.3")[1])
        self.assertEqual(self.send("POST", "/order", b'{"document": "d7.3"}')[0], 404)


class Shop(OverHttp):
    """The same where orders decide."""

    sells = True

    def test_nothing_is_sold(self) -> None:
        self.assertIn("Order a print", self.send("GET", "/page/d7.3")[1])
        status, answer = self.send("POST", "/order", b'{"document": "d7.3"}')
        self.assertEqual((status, json.loads(answer)), (200, {"status": "recorded"}))
        for body in (b"", b"[]", b"{}", b'{"document": "x"}', b'{"document": []}'):
            with self.subTest(body):
                self.assertEqual(self.send("POST", "/order", body)[0], 400)

    def test_the_duel_id_is_all_that_a_browser_needs_to_report_clicks(self) -> None:
        """Clicks alone have no outcome."""


if __name__ == "__main__":
    unittest.main()
