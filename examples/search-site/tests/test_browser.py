"""A person's way through the site, in a real browser, up to the verdict.

With `SEARCH_SITE_PICTURES=FOLDER` the pictures of docs/tutorial.md are written to a folder.
"""

from __future__ import annotations

import os
import re
import unittest
from pathlib import Path

from running import Running, simulate, until
from webdriver import Browser

from search_site import server
from search_site.rankers import CONTROL


# A click on a result that both rankers put first favours neither, so one query may not be enough.
QUERIES = (
    "delete a directory",
    "wait for a signal",
    "open a socket",
    "compare two files",
    "change the owner of a file",
    "sort the lines of a text",
    "time of the last access",
    "read a line of input",
    "limits of a process",
    "list the users",
    "set the clock",
    "search for a pattern",
)


class InTheBrowser(unittest.TestCase):
    def setUp(self) -> None:
        self.running = Running()
        self.addCleanup(self.running.stop)
        self.browser = Browser()
        self.addCleanup(self.browser.close)

    def picture(self, name: str, width: int, height: int) -> None:
        folder = os.environ.get("SEARCH_SITE_PICTURES")
        if folder:
            (Path(folder) / name).write_bytes(self.browser.picture(width, height))

    def search(self, query: str) -> None:
        self.browser.type("input[name=q]", query + "\n")
        self.until_loaded(query)

    def until_loaded(self, title: str) -> None:
        script = "return document.readyState === 'complete' ? document.title : ''"
        until(lambda: self.browser.run(script) == title, f"the page {title}")

    def clicks(self) -> int:
        """Feedback of the site that rankduel has recorded."""
        return int(server.call(f"{self.running.site}/api/status")["feedback"]["recorded"])

    def test_from_the_first_click_to_the_verdict_and_an_outage(self) -> None:
        running, browser = self.running, self.browser
        browser.open(running.site)
        self.search(QUERIES[0])
        self.assertEqual(browser.text("#source"), "This page: chosen by rankduel.")
        self.picture("search-site.png", 760, 640)

        with self.subTest("a visit is one outcome of the experiment, and a click decides it"):
            for visits, query in enumerate(QUERIES):
                if visits > 0:
                    self.search(query)  # the visitor has left the page before
                until(lambda: running.results("standings")["duels"] == visits, "the outcome")
                outcomes = running.results("standings")["outcomes"]
                if outcomes["left"] + outcomes["right"] > 0:
                    break
                before = self.clicks()
                browser.click("a[data-position='0']")
                until(lambda: "/page/" in browser.url, "the manual page")
                until(lambda: self.clicks() == before + 1, "the click")
                # the visitor may come back
                self.assertEqual(running.results("standings")["duels"], visits)
                browser.run("history.back()")
                self.until_loaded(query)
            else:
                self.fail(f"no click favoured a side: {outcomes}")
            self.assertEqual(outcomes["left"] + outcomes["right"], 1, outcomes)

        with self.subTest("simulated users reach the verdict, and beside nDCG"):
            printed = simulate(running.site, running.rankduel, 30_000)
            print(printed)
            verdict = running.results("verdict")
            self.assertEqual(verdict["state"], "decided", printed)
            measured = dict(re.findall(r"^([\w-]+) +(\d\.\d{3}) ", printed, re.MULTILINE))
            self.assertEqual(len(measured), 6, printed)
            winner = verdict["winners"][0]
            # a few verdicts may be wrong, but then for a ranker that is nearly as good
            self.assertGreater(float(measured[winner]), 0.5, printed)
            best = max(measured, key=lambda ranker: float(measured[ranker]))
            self.assertIn(f"rankduel's winner: {winner}. Best by nDCG@10: {best}. They ", printed)
            browser.open(running.dashboard)
            self.assertIn(f"Ship {winner}.", browser.text("body").replace("`", ""))
            self.picture("search-site-verdict.png", 1000, 980)

        with self.subTest("after the verdict, every search gets the winner's ranking"):
            browser.open(running.site)
            self.search("wait for a signal")
            self.assertEqual(browser.text("#source"), "This page: chosen by rankduel.")

        with self.subTest("without rankduel, the site shows the control"):
            running.kill_rankduel()
            self.search("format of the password file")
            self.assertEqual(browser.text("#source"), "This page: the control ranking (unreachable).")
            self.assertFalse(browser.run("return document.querySelector('[data-duel-id]') !== null"))
            shown = browser.run("return [...document.querySelectorAll('li a')].map(a => a.textContent)")
            self.assertEqual(len(shown), 10, CONTROL)
        self.assertEqual(browser.console(), [])


if __name__ == "__main__":
    unittest.main()
