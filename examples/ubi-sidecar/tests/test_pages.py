"""From rankduel to UBI: pages, their records, and the control when rankduel does not answer."""

from __future__ import annotations

import json
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from running import NUMBERS, RANKINGS, Case, click, duel_of, one_of, until


class Pages(Case):
    def test_the_records_are_the_pages_that_were_shown(self) -> None:
        sidecar = self.sidecar()
        pages = []
        for number in range(20):
            asked: dict[str, Any] = {"user_query": f"query {number}", "client_id": f"c-{number}", "application": "shop"}
            if number % 2:
                asked |= {"query_id": f"q-{number}", "query_attributes": {"filter": "red"}, "length": 4}
            page = sidecar.page(**asked)
            pages.append((asked, page))
        records = self.records()
        self.assertEqual(len(records), len(pages))
        for record, (asked, page) in zip(records, pages):
            ubi = page["ubi"]
            self.assertEqual(record["query_response_hit_ids"], page["documents"])
            self.assertEqual(ubi["query_response_hit_ids"], page["documents"])
            self.assertEqual(len(page["documents"]), asked.get("length", 10))
            self.assertEqual(record["query_id"], asked.get("query_id", ubi["query_id"]))
            self.assertEqual(record["query_response_id"], ubi["query_response_id"])
            for member in ("user_query", "client_id", "application"):
                self.assertEqual(record[member], asked[member])
            shown = record["query_attributes"].pop("rankduel")
            self.assertEqual(record["query_attributes"], asked.get("query_attributes", {}))
            self.assertEqual((shown["duel_id"], shown["fallback"]), (duel_of(page), None))
            both = {ranker for ranker in RANKINGS if set(RANKINGS[ranker]) & set(page["documents"])}
            self.assertEqual({shown["left"], shown["right"]}, both)
            # the browser must not learn which ranker is on which side
            self.assertFalse([ranker for ranker in RANKINGS if ranker in json.dumps(page)])
        self.assertEqual(len({record["query_id"] for record in records}), len(pages))
        self.assertEqual(sidecar.status()["pages"], {"of a duel": 20})
        self.assertEqual(sidecar.status()["queries"], {"written": 20})

    def test_later_pages_continue_the_list_and_a_reload_repeats_it(self) -> None:
        sidecar = self.sidecar()
        pinned = [{"position": 1, "document": "an ad"}]
        first = sidecar.duel(length=6, pinned=pinned)
        query_id = first["ubi"]["query_id"]
        self.assertEqual(first["documents"][1], "an ad")
        self.assertEqual(sidecar.page(query_id=query_id, length=6, pinned=pinned)["documents"], first["documents"])
        # the duel is known after a restart
        sidecar.stop()
        sidecar = self.sidecar()
        second = sidecar.page(query_id=query_id, length=6, offset=6, pinned=pinned)
        third = sidecar.page(query_id=query_id, length=20, offset=12, pinned=pinned)
        documents = first["documents"] + second["documents"] + third["documents"]
        self.assertEqual(sorted(documents), sorted([*NUMBERS, "an ad"]))
        sidecar.stop()
        sidecar = self.sidecar()
        self.assertEqual(sidecar.page(query_id=query_id, length=6, pinned=pinned)["documents"], first["documents"])
        # clicks on any page are of one duel, in whatever order they come
        sidecar.post(click(first, one_of(first, "forward")))
        sidecar.until("rankduel", recorded=1)
        sidecar.post(click(third, one_of(third, "backward")), click(second, one_of(second, "backward")))
        sidecar.until("rankduel", recorded=3)
        self.settle(third)
        self.assertEqual(self.wins(1), {"forward": 0, "backward": 1})

    def test_requests_that_are_wrong_are_refused_with_a_reason(self) -> None:
        sidecar = self.sidecar()
        for wrong, reason in (
            ({"rankings": {"backward": ["d1"]}}, "lack the control"),
            ({"rankings": ["d1"]}, "`rankings`"),
            ({"rankings": {"forward": [1], "backward": []}}, "`rankings`"),
            ({"query_id": ""}, "1 to 100"),
            ({"client_id": 7}, "`client_id` must be a text"),
            ({"length": 0}, "`length`"),
            ({"offset": -1}, "`offset`"),
            ({"pinned": [{"position": "1", "document": "d1"}]}, "`pinned`"),
            ({"query_attributes": {"rankduel": 1}}, "query_attributes"),
            ({"query": "red"}, "`query` is unknown"),
            ({"user_query": "\ud800"}, "surrogate"),
        ):
            with self.subTest(str(wrong)):
                body = json.dumps({"rankings": RANKINGS, **wrong}).encode()
                status, answer = sidecar.send("POST", "/page", body)
                self.assertEqual(status, 400)
                self.assertIn(reason, answer["detail"])
        self.assertFalse(self.queries.exists())

    def test_unknown_paths_are_not_found(self) -> None:
        sidecar = self.sidecar()
        self.assertEqual(sidecar.send("GET", "/page")[0], 404)
        self.assertEqual(sidecar.send("POST", "/status", b"{}")[0], 404)


class Fallbacks(Case):
    def assert_control(self, page: Any, reason: str) -> None:
        self.assertEqual((page["documents"], page["fallback"]), (RANKINGS["forward"], reason))
        self.assertEqual(page["ubi"]["event_attributes"], {})
        record = self.records()[-1]
        self.assertEqual(record["query_response_hit_ids"], page["documents"])
        shown = record["query_attributes"]["rankduel"]
        self.assertEqual((shown["duel_id"], shown["fallback"]), (None, reason))

    def test_the_control_is_shown_while_rankduel_is_down_and_a_duel_afterwards(self) -> None:
        sidecar = self.sidecar()
        self.stop_rankduel()
        page = sidecar.page(query_id="during")
        self.assert_control(page, "unreachable")
        # a click on it says nothing about two rankers
        self.assertEqual(sidecar.post(click(page, "d0"))["of_no_duel"], 1)
        self.assertEqual(sidecar.status()["pages"], {"unreachable": 1})
        self.start_rankduel()
        until(lambda: sidecar.page()["fallback"] is None, "a duel again", sidecar.status)
        # the search that began with the control goes on with it
        page = sidecar.page(query_id="during", length=5, offset=5)
        self.assertEqual((page["documents"], page["fallback"]), (RANKINGS["forward"][5:], "unreachable"))

    def test_the_control_is_shown_when_rankduel_is_slow(self) -> None:
        sidecar = self.sidecar(deadline=0.3)
        self.freeze_rankduel()
        self.addCleanup(self.continue_rankduel)
        self.assert_control(sidecar.page(), "timeout")

    def test_the_sidecar_starts_without_rankduel(self) -> None:
        self.stop_rankduel()
        self.assert_control(self.sidecar().page(), "unreachable")

    def test_page_2_of_an_unknown_search_is_the_control_s(self) -> None:
        page = self.sidecar().page(query_id="unknown", length=5, offset=5)
        self.assertEqual((page["documents"], page["fallback"]), (RANKINGS["forward"][5:], "search-unknown"))

    def test_settings_that_are_wrong_are_refused_at_the_start(self) -> None:
        for option in (["--control", "nobody"], ["--experiment", "none"]):
            with self.assertRaisesRegex(AssertionError, "ended with code 1"):
                self.sidecar(*option)


class Collector(ThreadingHTTPServer):
    """A collector of queries, which fails until it is told not to."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _CollectorHandler)
        self.works = threading.Event()
        self.failed = threading.Event()
        self.records: list[Any] = []


class _CollectorHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        works = self.server.works.is_set()
        if works:
            self.server.records += json.loads(body)
        else:
            self.server.failed.set()
        self.send_response(201 if works else 503)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Collected(Case):
    def test_a_collector_of_queries_gets_the_records_after_an_outage(self) -> None:
        collector = Collector()
        self.addCleanup(collector.server_close)
        threading.Thread(target=collector.serve_forever, args=(0.05,), daemon=True).start()
        self.addCleanup(collector.shutdown)
        sidecar = self.sidecar("--queries", f"http://127.0.0.1:{collector.server_address[1]}/ubi_queries")
        pages = [sidecar.page() for _ in range(5)]
        self.assertTrue(collector.failed.wait(60))
        self.assertEqual(sidecar.status()["queries"], {})
        collector.works.set()
        sidecar.until("queries", written=5)
        shown = [record["query_response_hit_ids"] for record in collector.records]
        self.assertEqual(shown, [page["documents"] for page in pages])


if __name__ == "__main__":
    unittest.main()
