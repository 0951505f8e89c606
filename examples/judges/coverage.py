#!/usr/bin/env python3
"""How often `rank_intervals` is wrong at any time: looked at after every comparison.

    python examples/judges/coverage.py  # some minutes; the shares are in README.md
"""

import dueling_bandits as db
import numpy as np

RUNS, STEPS, CONFIDENCE = 200, 400, 0.9
EVEN = np.full((5, 5), 0.5)
MATRICES = {
    "cyclic-4": db.PreferenceMatrix.load("cyclic-4"),
    "btl:6:1": db.PreferenceMatrix.load("btl:6:1"),
    "five even rankers": db.PreferenceMatrix(EVEN),
}


def is_wrong(wins, matrix):
    """Whether a range leaves out a rank that the ranker can have."""
    entries = np.asarray(matrix)
    best = 1 + (entries < 0.5).sum(axis=1)
    worst = len(entries) - (entries > 0.5).sum(axis=1)
    low, high = db.rank_intervals(wins, CONFIDENCE).T
    return bool(((low > best) | (high < worst)).any())


def run(name, matrix, kind, seed):
    rng = np.random.default_rng(seed)
    policy = db.Policy(kind, matrix.rankers, seed)
    for _ in range(STEPS):
        duel = policy.select()
        if duel.is_self:
            policy.observe(duel)
            continue
        policy.observe(duel, rng.random() < matrix[duel])
        if is_wrong(policy.wins, matrix):
            return True
    return False


for name, matrix in MATRICES.items():
    for kind in ["uniform", "d-ts-verdict:margin=0.01"]:
        wrong = sum(run(name, matrix, kind, seed) for seed in range(RUNS))
        print(f"{name:18} {kind:26} wrong at any time in {wrong} of {RUNS} at {CONFIDENCE:.0%}")
