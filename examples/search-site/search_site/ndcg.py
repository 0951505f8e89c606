"""nDCG@10, the offline measure of a ranking (Järvelin and Kekäläinen, 2002)."""

from __future__ import annotations

import math
from typing import Iterable, Mapping, Sequence

from .corpus import Query

DEPTH = 10
_DISCOUNT = [1 / math.log2(position + 2) for position in range(DEPTH)]


def of(ranking: Sequence[str], grades: Mapping[str, int]) -> float:
    """nDCG@10 of one ranking, with the gain 2^grade - 1. The query has a relevant document."""
    return dcg(grades.get(document, 0) for document in ranking[:DEPTH]) / ideal(grades)


def ideal(grades: Mapping[str, int]) -> float:
    """DCG@10 of the best possible ranking."""
    return dcg(sorted(grades.values(), reverse=True)[:DEPTH])


def dcg(grades: Iterable[int]) -> float:
    return sum(((1 << grade) - 1) * discount for grade, discount in zip(grades, _DISCOUNT))


def mean(rankings: Sequence[Sequence[str]], queries: Sequence[Query]) -> float:
    """Mean over the queries, each with its ranking."""
    return sum(of(ranking, query.grades) for ranking, query in zip(rankings, queries)) / len(queries)
