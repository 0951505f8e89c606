#!/usr/bin/env python3
"""The best of several prompts, from pairwise judgements, with an error that holds at any time.

Eight variants are compared by a judge, who may be a model or a person: given two answers to a
question, it prefers one. This judge is simulated, and prefers what it sees first too often, as models
do. Each comparison is judged in both orders. If the two judgements differ, it is a tie, which counts
half: two judge calls a comparison. Replace `judge` by a call of your own.

Four ways to spend judge calls are compared: adaptive pairs until the verdict, random pairs until the
same verdict, and both with the usual reading, which stops when the leader by Elo is first in 95 % of
bootstrap samples. It looks after every round of pairs, as people do. The last column says how often
the winner of each was wrong.

    pip install ./crates/python
    python examples/judges/judges.py  # half a minute; no network
"""

import argparse

import dueling_bandits as db
import numpy as np

VARIANTS = ["base", "terse", "steps", "quotes", "role", "shots", "rerank", "tuned"]
QUALITY = np.array([0.0, -0.6, 0.3, 0.1, -0.2, 0.4, 1.0, 0.5])
FIRST_SHOWN = 0.5  # how far the judge prefers the first, in the same unit
MOST = 6_000  # comparisons
LEVEL = 0.95


def judge(question, first, second, rng):
    """Whether the first answer shown is preferred."""
    return bool(rng.random() < 1 / (1 + np.exp(QUALITY[second] - QUALITY[first] - FIRST_SHOWN)))


def compare(question, one, other, rng):
    """1 if `one` is better, 0 if `other` is, 0.5 if the judge flips with the order."""
    first, second = judge(question, one, other, rng), judge(question, other, one, rng)
    return (first + (not second)) / 2


def until_verdict(kind, seed, rng):
    """The winner and the comparisons of a policy until its verdict."""
    policy = db.Policy(kind, len(VARIANTS), seed)
    for count in range(1, MOST + 1):
        duel = policy.select()
        first, second = duel
        outcome = None if duel.is_self else compare(count, first, second, rng)
        policy.observe(duel, outcome)
        if policy.verdict:
            return policy.verdict.winner, policy.verdict.comparisons
    return None, MOST


def until_bootstrap(kind, seed, rng, samples=40):
    """The same until the leader by Elo leads in 95 % of bootstrap samples."""
    policy = db.Policy(kind, len(VARIANTS), seed)
    size = len(VARIANTS) * (len(VARIANTS) - 1) // 2
    count = 0
    while count < MOST:
        for _ in range(size):
            duel = policy.select()
            first, second = duel
            policy.observe(duel, None if duel.is_self else compare(count, first, second, rng))
            count += not duel.is_self
        wins = policy.wins
        leader = db.strengths(wins, prior=0.1).argmax()
        plays = (wins + wins.T).astype(int)
        share = np.divide(wins, plays, out=np.full(wins.shape, 0.5), where=plays > 0)
        upper = np.triu(rng.binomial(plays, share, size=(samples, *wins.shape)), 1)
        drawn = upper + np.tril(plays - upper.transpose(0, 2, 1), -1)
        leads = [db.strengths(sample, prior=0.1).argmax() == leader for sample in drawn]
        if np.mean(leads) >= LEVEL:
            return leader, count
    return None, MOST


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    best = int(QUALITY.argmax())
    adaptive = "d-ts-verdict:margin=0.01"
    ways = {
        "adaptive pairs, verdict": lambda n, rng: until_verdict(adaptive, n, rng),
        "random pairs, verdict": lambda n, rng: until_verdict("uniform", n, rng),
        "adaptive pairs, Elo and bootstrap": lambda n, rng: until_bootstrap(adaptive, n, rng),
        "random pairs, Elo and bootstrap": lambda n, rng: until_bootstrap("uniform", n, rng),
    }
    print(f"{runs} runs, {len(VARIANTS)} variants; the best is {VARIANTS[best]}")
    print(f"{'':36}{'judge calls: median':>20}{'nine of ten':>13}{'undecided':>11}{'wrong':>7}")
    for name, way in ways.items():
        found = [way(run, np.random.default_rng(run)) for run in range(runs)]
        calls = [2 * count for _, count in found]
        undecided = np.mean([winner is None for winner, _ in found])
        wrong = np.mean([winner not in (None, best) for winner, _ in found])
        median, most = np.quantile(calls, [0.5, 0.9])
        print(f"{name:36}{median:20,.0f}{most:13,.0f}{undecided:11.1%}{wrong:7.1%}")

    rng = np.random.default_rng(0)
    policy = db.Policy("uniform", len(VARIANTS), seed=0)
    while policy.wins.sum() < MOST:
        duel = policy.select()
        policy.observe(duel, None if duel.is_self else compare(0, *duel, rng))
    print(f"\nThe ranks after {2 * MOST:,} judge calls on random pairs, at 95 %:")
    points = 400 / np.log(10) * db.strengths(policy.wins, prior=0.1)
    for at in (-points).argsort():
        low, high = db.rank_intervals(policy.wins)[at]
        print(f"  {VARIANTS[at]:8} {low} to {high}   {points[at]:+5.0f} Elo points")


if __name__ == "__main__":
    main()
