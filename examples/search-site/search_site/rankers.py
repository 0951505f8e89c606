"""The six rankings that the site compares. Each is a function from a query to document ids."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Callable

from . import learn
from .corpus import Corpus
from .engines import Fts5, Tantivy

Ranker = Callable[[str], list[str]]

CONTROL = "tantivy"
"""The ranking that the site shows without rankduel."""
DESCRIPTIONS = {
    "tantivy": "BM25 of tantivy, all fields alike",
    "tantivy-lead": "BM25 of tantivy, names and first paragraph above the rest",
    "fts5": "BM25 of SQLite FTS5, all fields alike",
    "fts5-popular": "FTS5, pages that others refer to first",
    "learned": "linear model over both engines, trained on nDCG",
    "newest": "any matching page, the newest first",
}
_ALIKE = {"names": 1.0, "lead": 1.0, "body": 1.0}
_LEAD_FIRST = {"names": 3.0, "lead": 2.5, "body": 1.0}


def all_of(corpus: Corpus, model: Path) -> dict[str, Ranker]:
    """Every ranker by its id. Trains the learned one unless the file `model` has it."""
    tantivy, fts5 = Tantivy(corpus), Fts5(corpus)
    features = learn.Features(corpus, tantivy, fts5)
    learned = learn.load_or_train(model, features, corpus.training)

    def popular(query: str) -> list[str]:
        def boosted(hit: tuple[str, float]) -> float:
            return hit[1] * (1 + math.log1p(corpus.documents[hit[0]].mentioned_by))

        return _ids(sorted(fts5.search(query), key=boosted, reverse=True))

    def newest(query: str) -> list[str]:
        return sorted(_ids(fts5.search(query)), key=lambda id: (corpus.documents[id].date, id), reverse=True)

    return {
        "tantivy": lambda query: _ids(tantivy.search(query, _ALIKE)),
        "tantivy-lead": lambda query: _ids(tantivy.search(query, _LEAD_FIRST)),
        "fts5": lambda query: _ids(fts5.search(query)),
        "fts5-popular": popular,
        "learned": lambda query: learned.rank(features.of(query)),
        "newest": newest,
    }


def _ids(hits: list[tuple[str, float]]) -> list[str]:
    return [document for document, _ in hits]
