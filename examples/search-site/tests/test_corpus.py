"""The corpus, its judgements, the measure and the rankers, on the real manual pages."""

from __future__ import annotations

import math
import random
import unittest

from search_site import corpus, ndcg, rankers, roff, users
from search_site.__main__ import DATA


class Judgements(unittest.TestCase):
    corpus: corpus.Corpus
    rankers: dict[str, rankers.Ranker]

    @classmethod
    def setUpClass(cls) -> None:
        cls.corpus = corpus.load(DATA / "corpus")
        cls.rankers = rankers.all_of(cls.corpus, DATA / "corpus" / "model.json")

    def test_the_summary_is_the_query_and_see_also_its_neighbours(self) -> None:
        [query] = [query for query in self.corpus.training + self.corpus.test if query.text == "delete a directory"]
        self.assertEqual(query.grades["rmdir.2"], corpus.GRADE_OF_TARGET)
        self.assertEqual(query.grades["mkdir.2"], corpus.GRADE_OF_NEIGHBOUR)
        self.assertNotIn("fork.2", query.grades)

    def test_no_query_is_for_training_and_for_the_test(self) -> None:
        training = {query.text for query in self.corpus.training}
        self.assertFalse(training & {query.text for query in self.corpus.test})
        self.assertGreater(len(training), 300)
        self.assertGreater(len(self.corpus.test), 300)

    def test_the_sections_of_the_judgements_are_not_indexed(self) -> None:
        page = self.corpus.documents["rmdir.2"]
        self.assertEqual(page.summary, "delete a directory")
        self.assertNotIn(page.summary, page.lead + page.body)
        self.assertNotIn("rename(2)", page.body)
        self.assertIn("rename.2", page.see_also)

    def test_every_ranker_survives_every_query(self) -> None:
        hostile = ("* ( ) : ^ -", "AND OR NOT NEAR", "names:open", "NEAR(open, 2)", "'; --", '"')
        for query in ("", "  ", "ü 日本語", "a" * 500, *hostile):
            for name, ranker in self.rankers.items():
                found = ranker(query)
                self.assertEqual(len(found), len(set(found)), (name, query))
                self.assertLessEqual(set(found), set(self.corpus.documents))

    def test_the_rankers_differ_and_the_poor_one_is_the_worst(self) -> None:
        sample = self.corpus.test[:100]
        rankings = {name: [ranker(query.text)[:10] for query in sample] for name, ranker in self.rankers.items()}
        self.assertEqual(list(rankings), list(rankers.DESCRIPTIONS))
        self.assertEqual(len({str(ranking) for ranking in rankings.values()}), 6)
        measured = {name: ndcg.mean(ranking, sample) for name, ranking in rankings.items()}
        self.assertEqual(min(measured, key=measured.__getitem__), "newest", measured)


class Measure(unittest.TestCase):
    def test_ndcg_of_a_ranking_that_was_computed_by_hand(self) -> None:
        grades = {"a": 2, "b": 1}
        self.assertEqual(ndcg.of(["a", "b"], grades), 1.0)
        swapped = (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
        self.assertAlmostEqual(ndcg.of(["b", "a"], grades), swapped)
        self.assertEqual(ndcg.of(["x"] * 10 + ["a"], grades), 0.0)

    def test_users_click_relevant_documents(self) -> None:
        coin = random.Random(1)
        query = corpus.Query("q", {"target": 2, "neighbour": 1})
        first = [users.clicks(["x", "target", "neighbour"], query, coin) for _ in range(4000)]
        rate = sum(1 in clicked for clicked in first) / len(first)
        # P(click on x and stop) = 0.05 * 0.2
        self.assertAlmostEqual(rate, 0.99 * 0.95, delta=0.02)


class Roff(unittest.TestCase):
    def test_a_page_as_text(self) -> None:
        head = '.\\" comment\n.TH x 1 2020-01-02 "y z"\n.SH NAME\nx \\- do \\fIit\\fP\n'
        source = head + '.SH "SEE ALSO"\n.BR a (2),\n.BR b (3)\n.PP\nend\n'
        header, sections = roff.sections(source)
        self.assertEqual(header, ["x", "1", "2020-01-02", "y z"])
        self.assertEqual(sections, {"NAME": ["x - do it"], "SEE ALSO": ["a(2), b(3)", "end"]})


if __name__ == "__main__":
    unittest.main()
