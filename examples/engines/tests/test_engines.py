"""The shop on both engines, and every request of docs/integration.md on a real engine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import re
import unittest
import urllib.error

import engines

REQUEST = re.compile(r"^POST (\S+)\n(.*)\Z", re.DOTALL)


def requests(engine: str) -> list[tuple[str, str]]:
    """The path and the body of each request that the page shows under the name of the engine."""
    text = (engines.ROOT / "docs" / "integration.md").read_text()
    text = text.partition("\n## Search engines\n")[2].partition("\n## ")[0]
    part = text.partition(f"\n**{engine}")[2].partition("\n**")[0]
    found = (REQUEST.match(block) for block in re.findall(r"^```\n(.*?)^```$", part, re.DOTALL | re.MULTILINE))
    return [(match[1], match[2]) for match in found if match]


class Engines(unittest.TestCase):
    shops: dict[str, engines.Shop]

    @classmethod
    def setUpClass(cls) -> None:
        engines.build()
        with contextlib.ExitStack() as stack:
            cls.shops = {name: stack.enter_context(engines.shop(name)) for name in engines.ENGINES}
            cls.addClassCleanup(stack.pop_all().close)

    def refused(self, url: str, text: str, content_type: str) -> str:
        with self.assertRaises(urllib.error.HTTPError) as refused:
            engines.post(url, text, content_type)
        with refused.exception as answer:
            self.assertEqual(answer.code, 400)
            return answer.read().decode()

    def test_requests_to_opensearch(self) -> None:
        url = self.shops["opensearch"].engine
        (rankings, lines), (groups, body), (fetch, ids) = requests("Elasticsearch")
        responses = engines.post(url + rankings, lines, "application/x-ndjson")["responses"]
        first, second = (response["hits"]["hits"] for response in responses)
        self.assertTrue(first and second)
        self.assertEqual({hit["_id"] for hit in first}, {hit["_id"] for hit in second})
        self.assertNotEqual([hit["_id"] for hit in first], [hit["_id"] for hit in second])
        order = [(-hit["_score"], hit["_id"]) for hit in first]
        self.assertEqual(order, sorted(order), "ties by the id")

        found = engines.post(url + groups, body, "application/json")["hits"]["hits"]
        styles = [hit["fields"]["style"][0] for hit in found]
        self.assertEqual((len(set(styles)), len(styles)), (100, 100))

        documents = engines.post(url + fetch, ids, "application/json")["docs"]
        self.assertEqual([document["_id"] for document in documents], json.loads(ids)["ids"])
        self.assertEqual([document["found"] for document in documents], [True, True, False])

    def test_what_opensearch_refuses(self) -> None:
        """As the page says."""
        url = self.shops["opensearch"].engine + "/products/"
        (_, lines), *_ = requests("Elasticsearch")
        ndjson = "application/x-ndjson"
        self.assertIn("newline", self.refused(url + "_msearch", lines.rstrip("\n"), ndjson))
        unknown = '{}\n{"query": {"match_all": {}}}\n{}\n{"query": {"sltr": {"model": "neural"}}}\n'
        self.assertIn("unknown query [sltr]", self.refused(url + "_msearch", unknown, ndjson))
        self.assertIn("no documents to get", self.refused(url + "_mget", '{"ids": []}', "application/json"))
        failing = '{}\n{"query": {"match_all": {}}}\n{}\n{"sort": ["missing"]}\n'
        one, other = engines.post(url + "_msearch", failing, ndjson)["responses"]
        self.assertEqual(("hits" in one, "error" in other, other["status"]), (True, True, 400))
        rescored = json.loads(lines.splitlines()[3])
        sorted_too = json.dumps({**rescored, "sort": ["_score", {"style": "asc"}]})
        self.assertIn("[sort] option in conjunction with [rescore]", self.refused(url + "_search", sorted_too, "application/json"))

    def test_requests_to_solr(self) -> None:
        url = self.shops["solr"].engine
        *queries, (fetch, ids) = requests("Solr")
        lists = []
        for path, body in queries:
            documents = engines.post(url + path, body, "application/json")["response"]["docs"]
            lists.append([document["style"] for document in documents])
        first, second = lists
        self.assertTrue(first)
        self.assertEqual((len(set(first)), set(first)), (len(first), set(second)))
        self.assertNotEqual(first, second)
        found = engines.post(url + fetch, ids.strip(), "application/x-www-form-urlencoded")["response"]["docs"]
        self.assertEqual([document["id"] for document in found], ["p7-m", "p3-s"])

    def test_shops(self) -> None:
        with concurrent.futures.ThreadPoolExecutor() as threads:
            list(threads.map(self.story, engines.ENGINES))

    def story(self, name: str) -> None:
        """A search, its filter and its second page; the verdict; and an outage."""
        shop = self.shops[name]
        first = shop.search("a", "red shoes")
        second = shop.search("a", "red shoes", page=1)
        self.assertEqual((first["fallback"], second["fallback"]), (None, None))
        ids = [result["id"] for page in (first, second) for result in page["results"]]
        self.assertEqual((len(ids), len(set(ids))), (20, 20))
        self.assertEqual(second["results"][0]["position"], 10)
        self.assertGreater(first["categories"]["shoes"], 0)
        filtered = shop.search("a", "red shoes", category="hat")
        self.assertEqual({result["category"] for result in filtered["results"]}, {"hat"})
        self.assertEqual(list(filtered["categories"]), ["hat"])
        self.assertEqual(shop.search("a", "nothing-matches-this")["results"], [])

        verdict = engines.until_the_verdict(shop, ubi=name == "opensearch")
        self.assertEqual(verdict["winners"], ["bm25-title"])
        self.assertEqual(verdict["orders"]["joined"]["unit_unknown"], 0)
        self.assertGreater(verdict["orders"]["ordered"], 0)

        shop.server.kill()
        shop.server.wait()
        page = shop.search("b", "red shoes")
        self.assertEqual((page["fallback"], page["duel_id"], len(page["results"])), ("unreachable", None, 10))


if __name__ == "__main__":
    unittest.main()
