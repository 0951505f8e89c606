"""The requests of the README, as it shows them."""

from __future__ import annotations

import json
import re
import unittest

from running import EXPERIMENT, RUN, Case
from search_site import server

README = RUN.parent / "README.md"
REQUEST = re.compile(r"localhost:9090(/\S+) -d '(.*?)'", re.DOTALL)


class Readme(Case):
    def setUp(self) -> None:
        super().setUp()
        rankings = json.loads(self.requests()[0][1])["rankings"]
        self.name = f"{EXPERIMENT}-readme"
        experiment = {"name": self.name, "rankers": list(rankings), "policy": {"kind": "uniform"}}
        server.call(f"{self.rankduel.url}/v1/experiments", experiment)
        self.control = next(iter(rankings))

    def requests(self) -> list[tuple[str, str]]:
        return REQUEST.findall(README.read_text())

    def test_the_requests_work(self) -> None:
        sidecar = self.sidecar("--experiment", self.name, "--control", self.control)
        (page, search), (events, click) = self.requests()
        self.assertEqual((page, events), ("/page", "/ubi_events"))
        status, answer = sidecar.send("POST", page, search.encode())
        self.assertEqual((status, answer["fallback"]), (200, None))
        shown = re.search(r"^\{\"documents\".*?\}\}\}$", README.read_text(), re.MULTILINE | re.DOTALL)
        assert shown is not None
        self.assertEqual(set(json.loads(shown[0])), set(answer))
        self.assertEqual(set(json.loads(shown[0])["ubi"]), set(answer["ubi"]))
        # d3 is in both rankings, so it is on each page
        self.assertEqual(sidecar.send("POST", events, click.encode())[0], 202)
        sidecar.until("rankduel", recorded=1)
        record = self.records()[-1]
        text = re.search(r"^\{\"application\".*?\}\}\}$", README.read_text(), re.MULTILINE | re.DOTALL)
        assert text is not None
        stated = json.loads(text[0])
        self.assertEqual(set(stated), set(record))
        self.assertEqual(set(stated["query_attributes"]["rankduel"]), set(record["query_attributes"]["rankduel"]))

    def test_the_options_are_those_of_the_program(self) -> None:
        stated = set(re.findall(r"--[a-z-]+", "".join(re.findall(r"^\| `--.*?\|.*?\|", README.read_text(), re.MULTILINE))))
        source = (RUN.parent / "ubi_sidecar" / "__main__.py").read_text()
        self.assertEqual(stated, set(re.findall(r"add_argument\(\s*\"(--[a-z-]+)\"", source)))


if __name__ == "__main__":
    unittest.main()
