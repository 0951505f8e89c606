"""rankduel's verdict beside the offline measure of each ranker."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from . import ndcg
from .corpus import Query
from .rankers import Ranker


def offline(rankers: Mapping[str, Ranker], queries: Sequence[Query]) -> dict[str, float]:
    """nDCG@10 of each ranker over the queries that the simulated users search with."""
    return {
        name: ndcg.mean([ranker(query.text) for query in queries], queries) for name, ranker in rankers.items()
    }


def table(measured: Mapping[str, float], verdict: Any, standings: Any) -> str:
    """One line for each ranker, the best nDCG first, and a sentence that compares both winners."""
    online = {row["id"]: row for row in standings["rankers"]}
    rivals = len(online) - 1
    lines = [f"{'ranker':14}{'nDCG@10':>8}{'beats':>9}{'wins':>7}{'losses':>8}{'shown':>8}"]
    for name in sorted(measured, key=measured.__getitem__, reverse=True):
        row = online[name]
        beats = f"{round(row['copeland_score'] * rivals)} of {rivals}"
        counts = f"{row['wins']:>7}{row['losses']:>8}{row['appearances']:>8}"
        lines.append(f"{name:14}{measured[name]:>8.3f}{beats:>9}{counts}")
    best = max(measured, key=measured.__getitem__)
    if not verdict["winners"]:
        compared = f"rankduel's winner: none yet; the leader is {verdict['leader']}. Best by nDCG@10: {best}."
    else:
        winner = verdict["winners"][0]
        same = "They agree." if winner == best else "They differ."
        compared = f"rankduel's winner: {winner}. Best by nDCG@10: {best}. {same}"
    return "\n".join([verdict["sentence"], "", *lines, "", compared])
