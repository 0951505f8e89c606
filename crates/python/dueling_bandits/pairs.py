"""Win counts of compared pairs, and the strengths behind them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._native import VerdictTracker

_STEPS = 200


def count_wins(
    duels: Iterable[Any], outcomes: Iterable[Optional[float]], rankers: int
) -> NDArray[np.float64]:
    """The wins of each ranker (row) against each other (column), from duels and their outcomes.

    A duel is a `Duel` or a pair of rankers. An outcome is 1 if its first ranker won, 0 if its second
    won, 0.5 for a tie, and None for no comparison. Both are lists, arrays or other iterables of the
    same length.

        >>> count_wins([(0, 1), (1, 0), (0, 1)], [1, 0.5, None], rankers=2).tolist()
        [[0.0, 1.5], [0.5, 0.0]]
    """
    tracker = VerdictTracker(rankers)
    lists = []
    for name, values in (("duels", duels), ("outcomes", outcomes)):
        try:
            lists.append(list(values))
        except TypeError:
            raise ValueError(f"`{name}` is {values!r:.80}; it must be a list or an array") from None
    if len(lists[0]) != len(lists[1]):
        raise ValueError(
            f"`duels` are {len(lists[0])} and `outcomes` {len(lists[1])}; give one for each duel"
        )
    for at, (duel, outcome) in enumerate(zip(*lists)):
        try:
            tracker.observe(duel, outcome)
        except ValueError as error:
            name = "duels" if str(error).startswith("`duel`") else "outcomes"
            raise ValueError(f"`{name}` at {at}: {error}") from None
    return tracker.wins


def strengths(wins: ArrayLike, prior: float = 0.0) -> NDArray[np.float64]:
    """The strengths of the rankers in the model of Bradley and Terry, most likely given these wins.

    Ranker i beats ranker j with the probability 1 / (1 + exp(strength of j - strength of i)).
    The strengths add up to 0; 400 / ln 10 times a strength is a difference in Elo points. `wins` are
    win counts: row i, column j is the number of wins of i against j, a tie half for both. `prior` is
    added to the wins of every ranker against every other one. Without a prior there are finite
    strengths only if no group of rankers won, or lost, all its comparisons with the rest.

    The model assumes an order that the pairs may not have; a `VerdictTracker` and `rank_intervals`
    do not. As pairs that a policy chose depend on earlier outcomes, an interval from a bootstrap
    of the strengths holds at no error that is known.

        >>> strengths([[0, 3], [1, 0]]).round(3).tolist()
        [0.549, -0.549]
    """
    counts = VerdictTracker.from_wins(wins).wins
    try:
        added = float(prior)
    except (TypeError, ValueError, OverflowError):
        added = -1.0
    if not 0 <= added <= 1e9:
        raise ValueError(f"`prior` is {prior!r:.80}; it must be a number of wins from 0 to 1e9")
    rankers = len(counts)
    counts = counts + added * (1 - np.eye(rankers))
    _check_connected(counts)
    plays, won = counts + counts.T, counts.sum(axis=1)
    strength = np.zeros(rankers)
    value = _likelihood(strength, counts)
    for _ in range(_STEPS):
        expected = plays / (1 + np.exp(strength[None, :] - strength[:, None]))
        slope = won - expected.sum(axis=1)
        spread = expected * (plays - expected) / np.where(plays > 0, plays, 1)
        curvature = np.diag(spread.sum(axis=1)) - spread + 1 / rankers
        step = np.linalg.solve(curvature, slope)
        # half of the step until it helps: the likelihood is concave
        size = min(1.0, 5 / max(np.abs(step).max(), 1e-300))
        while size > 1e-9 and _likelihood(strength + size * step, counts) < value:
            size /= 2
        strength = strength + size * step
        strength -= strength.mean()
        value = _likelihood(strength, counts)
        if np.abs(size * step).max() < 1e-10:
            break
    return strength


def _likelihood(strength: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    return float(-(counts * np.logaddexp(0, strength[None, :] - strength[:, None])).sum())


def _check_connected(counts: NDArray[np.float64]) -> None:
    for beats, verb in ((counts > 0, "lost"), (counts.T > 0, "won")):
        reached = np.zeros(len(counts), dtype=bool)
        new = reached.copy()
        new[0] = True
        while new.any():
            reached |= new
            new = beats[new].any(axis=0) & ~reached
        if not reached.all():
            rest, rankers = np.flatnonzero(~reached), ", ".join(map(str, np.flatnonzero(reached)))
            raise ValueError(
                f"`wins` has no finite strengths: ranker {rest[0]} never {verb} against any of the "
                f"rankers {rankers:.80}; compare more, or give a `prior`, such as 0.1"
            )
