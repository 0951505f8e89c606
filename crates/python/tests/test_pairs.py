"""Ranks and strengths from win counts."""

import dueling_bandits as db
import numpy as np
import pytest


def test_wins_are_counted() -> None:
    duels = np.array([(0, 1), (1, 0), (0, 2), (2, 2), (0, 1)])
    wins = db.count_wins(duels, [1, 0.5, 0, 1, None], rankers=3)
    np.testing.assert_array_equal(wins, [[0, 1.5, 0], [0.5, 0, 0], [1, 0, 0]])
    with pytest.raises(ValueError, match="`duels` are 5 and `outcomes` 1; give one for each duel"):
        db.count_wins(duels, [1], rankers=3)
    with pytest.raises(ValueError, match="`duels` at 2: .* there is no ranker 2"):
        db.count_wins(duels, [1] * 5, rankers=2)


def test_ranks_narrow_with_evidence_and_keep_even_pairs_open() -> None:
    none = np.zeros((4, 4))
    np.testing.assert_array_equal(db.rank_intervals(none), [[1, 4]] * 4)
    order = np.triu(np.full((4, 4), 80), 1) + np.tril(np.full((4, 4), 20), -1)
    np.testing.assert_array_equal(db.rank_intervals(order), [[1, 1], [2, 2], [3, 3], [4, 4]])
    even = np.where(np.eye(4) > 0, 0, 1000)
    even[3, :3], even[:3, 3] = 200, 800
    np.testing.assert_array_equal(db.rank_intervals(even), [[1, 3], [1, 3], [1, 3], [4, 4]])
    wide = db.rank_intervals(order, confidence=1 - 1e-12)
    assert (wide[:, 0] <= [1, 2, 3, 4]).all() and (wide[:, 1] > [1, 2, 3, 3]).any()


def test_ranks_hold_whenever_somebody_looks() -> None:
    """A short run of the measurement in `examples/judges/coverage.py`, at a large error."""
    wrong = 0
    for run in range(60):
        rng = np.random.default_rng(run)
        wins = np.zeros((3, 3))
        for _ in range(60):
            first, second = rng.choice(3, size=2, replace=False)
            p = 0.5 + 0.1 * (second - first)
            wins[(first, second) if rng.random() < p else (second, first)] += 1
            low, high = db.rank_intervals(wins, confidence=0.6).T
            if ((low > [1, 2, 3]) | (high < [1, 2, 3])).any():
                wrong += 1
                break
    assert wrong <= 0.4 * 60


#: Wins, and the strengths that `choix.ilsr_pairwise_dense` 0.4.1 gives for them, less their mean.
WINS = np.array([[0, 7, 9, 4], [3, 0, 6, 8], [1, 4, 0, 5], [2, 2, 5, 0]])
CHOIX = [0.9659541793, 0.2116505920, -0.5705674479, -0.6070373234]


def test_strengths_are_the_most_likely() -> None:
    strengths = db.strengths(WINS)
    win = 1 / (1 + np.exp(strengths[None, :] - strengths[:, None]))
    np.testing.assert_allclose(((WINS + WINS.T) * win).sum(axis=1), WINS.sum(axis=1) + 0.0, atol=1e-8)
    assert abs(strengths.sum()) < 1e-12
    np.testing.assert_allclose(strengths, CHOIX, atol=1e-6)


def test_strengths_of_a_model_are_found_again() -> None:
    truth = np.array([3.0, 1.0, 0.0, -0.5, -3.5])
    win = 1 / (1 + np.exp(truth[None, :] - truth[:, None]))
    wins = np.round(1e6 * win * (1 - np.eye(5)))
    np.testing.assert_allclose(db.strengths(wins), truth, atol=1e-4)
    chain = np.diag([30] * 19, 1) + np.diag([10] * 19, -1)
    np.testing.assert_allclose(-np.diff(db.strengths(chain)), np.log(3), atol=1e-8)


def test_strengths_without_a_limit_are_refused() -> None:
    wins = [[0, 5, 3], [0, 0, 2], [0, 1, 0]]
    with pytest.raises(ValueError, match="`wins` has no finite strengths: ranker 1 never won"):
        db.strengths(wins)
    strengths = db.strengths(wins, prior=0.1)
    assert np.isfinite(strengths).all() and strengths.argmax() == 0
    with pytest.raises(ValueError, match="`wins` has no finite strengths: ranker 2 never"):
        db.strengths([[0, 1, 0], [1, 0, 0], [0, 0, 0]])
