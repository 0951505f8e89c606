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

Two rankings on one page:

    >>> page = db.interleave("team-draft", ["a", "b", "c"], ["c", "a", "d"], length=3, seed=7)
    >>> page.credit(["c"]).outcome in ("left", "right", "tie", None)
    True
"""

from ._native import (
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
    interleave,
    policy_kinds,
)
from .simulation import PythonPolicy, Simulation, simulate

__all__ = [
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
    "interleave",
    "policy_kinds",
    "simulate",
]
