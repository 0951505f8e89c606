"""Dueling bandits: learn which of K rankers is best from pairwise comparisons.

Policies that select the pairs, verdicts that hold whenever somebody looks, preference matrices with
their winners and regret, simulations on all cores, and interleaving of rankings with credit for
clicks. The code is that of the rankduel service, so the same seeds select the same duels.

    >>> import dueling_bandits as db
    >>> matrix = db.PreferenceMatrix([[0.5, 0.6, 0.7], [0.4, 0.5, 0.6], [0.3, 0.4, 0.5]])
    >>> result = db.simulate(matrix, ["uniform", "d-ts-verdict"], horizon=3000, runs=4, seed=1)
    >>> result.regret.shape == (2, 4, len(result.steps))
    True
    >>> bool(result.final_regret["d-ts-verdict"].mean() < result.final_regret["uniform"].mean())
    True

One duel after the other, with answers from anywhere:

    >>> policy = db.Policy("d-ts-verdict:margin=0.01", rankers=3, seed=1)
    >>> while policy.verdict is None:
    ...     duel = policy.select()
    ...     first, second = duel
    ...     policy.observe(duel, 1 if first < second else 0)  # the lower ranker wins
    >>> policy.verdict.winner
    0

Ranks and strengths from comparisons that were made anywhere:

    >>> wins = [[0, 40, 40], [10, 0, 30], [5, 20, 0]]
    >>> db.rank_intervals(wins).tolist()  # the best rank of each, from 1, and the worst
    [[1, 1], [2, 3], [2, 3]]
    >>> db.strengths(wins).round(2).tolist()
    [1.14, -0.34, -0.8]

Two rankings on one page, and a simulated user:

    >>> page = db.interleave("team-draft", ["a", "b", "c"], ["c", "a", "d"], length=3, seed=7)
    >>> page.credit(["c"]).outcome in ("left", "right", "tie", None)
    True
    >>> user = db.ClickModel("perfect", grades=2, seed=1)
    >>> user.click([int(document == "c") for document in page.documents]) == [page.documents.index("c")]
    True

Every object can be copied and pickled. `Policy` and `VerdictTracker` also `save` and `restore`.
"""

from ._native import (
    ClickModel,
    Credit,
    Duel,
    Page,
    Policy,
    PreferenceMatrix,
    Slot,
    Standing,
    Verdict,
    VerdictTracker,
    __version__,
    click_models,
    interleave,
    policy_kinds,
    policy_parameters,
    rank_intervals,
)
from .pairs import count_wins, strengths
from .simulation import PythonPolicy, Simulation, simulate

__all__ = [
    "ClickModel",
    "Credit",
    "Duel",
    "Page",
    "Policy",
    "PreferenceMatrix",
    "PythonPolicy",
    "Simulation",
    "Slot",
    "Standing",
    "Verdict",
    "VerdictTracker",
    "__version__",
    "click_models",
    "count_wins",
    "interleave",
    "policy_kinds",
    "policy_parameters",
    "rank_intervals",
    "simulate",
    "strengths",
]
