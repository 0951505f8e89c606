"""The example that chooses the weight of vectors against BM25."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "hybrid-weights" / "weights.py"


@pytest.fixture(scope="module")
def weights() -> ModuleType:
    spec = importlib.util.spec_from_file_location("weights", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_chosen_weight_is_as_good_as_the_best(weights: ModuleType) -> None:
    queries = [query for query in weights.made_up(topics=12, documents=8) if query.kind == "topic"]
    ndcg = [sum(query.ndcg(ranker) for query in queries) / len(queries) for ranker in range(11)]
    assert max(ndcg) - ndcg[0] > 0.1, "vectors find what words do not"
    policy, _ = weights.until_verdict(queries, 0.1, 1)
    assert policy.verdict is not None
    assert max(ndcg) - ndcg[policy.verdict.winner] <= 0.01


def test_judged_documents_are_read(weights: ModuleType, tmp_path: Path) -> None:
    lines = ["2 qid:1 25:0.1 40:0.9 # one", "0 qid:1 25:0.8 40:0.2 # two", "0 qid:2 25:1 40:1"]
    path = tmp_path / "judged.txt"
    path.write_text("\n".join(lines))
    (query,) = weights.letor(path)
    assert (query.rankings[0], query.rankings[10]) == (["d1", "d0"], ["d0", "d1"])
    assert query.ndcg(10) == 1 > query.ndcg(0)
