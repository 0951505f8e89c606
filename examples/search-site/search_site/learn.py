"""The learned ranker: a linear model over features of both engines.

Coordinate ascent (Metzler and Croft, 2007) changes one weight at a time and keeps what raises
nDCG@10 of the training queries.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from . import ndcg
from .corpus import Corpus, Query
from .engines import FIELDS, Fts5, Tantivy

NAMES = (*(f"tantivy {field}" for field in FIELDS), "tantivy", "fts5", "mentions", "age", "section 7")
CANDIDATES = 40
_STEPS = (0.05, 0.2, 0.5, 1.0)

Rows = list[tuple[str, tuple[float, ...]]]
"""The candidates of a query, each with its features."""


class Features:
    def __init__(self, corpus: Corpus, tantivy: Tantivy, fts5: Fts5):
        self._tantivy = tantivy
        self._fts5 = fts5
        newest = max(_day(document.date) for document in corpus.documents.values())
        self._of_document = {
            document.id: (
                math.log1p(document.mentioned_by) / 7,
                (newest - _day(document.date)) / 365,
                float(document.id.endswith(".7")),
            )
            for document in corpus.documents.values()
        }

    def of(self, query: str) -> Rows:
        searches = [self._tantivy.search(query, {field: 1.0}) for field in FIELDS]
        searches += [self._tantivy.search(query, dict.fromkeys(FIELDS, 1.0)), self._fts5.search(query)]
        candidates = dict.fromkeys(id for search in searches[-2:] for id, _ in search[:CANDIDATES])
        # relative to the best of each search, so that queries of all lengths are comparable
        scores = [{id: score / search[0][1] for id, score in search} for search in searches]
        return [(id, (*(by_id.get(id, 0.0) for by_id in scores), *self._of_document[id])) for id in candidates]


def _day(text: str) -> int:
    return date.fromisoformat(text).toordinal()


@dataclass(frozen=True)
class Model:
    weights: tuple[float, ...]

    def rank(self, rows: Rows) -> list[str]:
        def score(row: tuple[str, tuple[float, ...]]) -> float:
            return sum(weight * value for weight, value in zip(self.weights, row[1]))

        return [document for document, _ in sorted(rows, key=score, reverse=True)]


def load_or_train(stored: Path, features: Features, queries: list[Query]) -> Model:
    """The stored model; trains and stores it if there is none for these features."""
    if stored.exists():
        model = json.loads(stored.read_text())
        if model["features"] == list(NAMES):
            return Model(tuple(model["weights"]))
    print("training the ranking `learned` …", flush=True)
    trained = train(features, queries)
    stored.write_text(json.dumps({"features": NAMES, "weights": trained.weights}))
    return trained


def train(features: Features, queries: list[Query], rounds: int = 3) -> Model:
    """Weights that maximize nDCG@10 of the queries, by coordinate ascent."""
    rows = [features.of(query.text) for query in queries]
    grades = [[query.grades.get(document, 0) for document, _ in of_query] for query, of_query in zip(queries, rows)]
    ideals = [ndcg.ideal(query.grades) for query in queries]
    weights = [1.0] * (len(FIELDS) + 2) + [0.0] * (len(NAMES) - len(FIELDS) - 2)

    def measure(changed: int, by: float) -> float:
        total = 0.0
        for of_query, scores, of_grades, ideal in zip(rows, sums, grades, ideals):
            moved = [score + by * values[changed] for score, (_, values) in zip(scores, of_query)]
            best = sorted(range(len(moved)), key=moved.__getitem__, reverse=True)[: ndcg.DEPTH]
            total += ndcg.dcg(of_grades[row] for row in best) / ideal
        return total / len(queries)

    best = -1.0
    for _ in range(rounds):
        before = best
        for changed in range(len(weights)):
            # the scores without the change, so that a step costs one multiplication a row
            sums = [[sum(map(float.__mul__, weights, values)) for _, values in of_query] for of_query in rows]
            steps = [0.0, *(sign * step for step in _STEPS for sign in (1, -1))]
            best, step = max((measure(changed, step), -abs(step), step) for step in steps)[::2]
            weights[changed] += step
        if best - before < 1e-4:
            break
    return Model(tuple(round(weight, 3) for weight in weights))
