"""Copies, pickles and saved states."""

import copy
import pickle
from pathlib import Path
from typing import Any

import dueling_bandits as db
import numpy as np
import pytest

SPECS = [
    line.split()[0] for line in (Path(__file__).parent / "selections.txt").read_text().splitlines()
]
PAGE = db.interleave("probabilistic:tau=2", ["a", "b", "c"], ["c", "a", "d"], 3, 7, offset=1)
VERDICT = db.VerdictTracker.from_wins([[0, 700], [300, 0]])
VALUES: list[Any] = [
    db.Duel(0, 1),
    db.Policy("pcomp:horizon=1000", 3).select(),
    PAGE,
    PAGE.slots[0],
    PAGE.credit(["a"]),
    VERDICT.verdict,
    VERDICT.leader(),
    db.PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]], names=["a", "b"]),
]


def copies(value: Any) -> list[Any]:
    return [
        copy.copy(value),
        copy.deepcopy(value),
        *(pickle.loads(pickle.dumps(value, protocol)) for protocol in range(6)),
    ]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_equals_its_copies(value: Any) -> None:
    for other in copies(value):
        assert type(other) is type(value) and other == value and repr(other) == repr(value)
        public = [name for name in dir(value) if not name.startswith("_")]
        for name in public:
            ours, theirs = getattr(value, name), getattr(other, name)
            assert callable(ours) or ours == theirs, name
    assert value != db.Duel(9, 9)


def test_every_class_is_copied() -> None:
    kept = {type(value).__name__ for value in VALUES} | {"Policy", "VerdictTracker", "ClickModel"}
    module = db._native
    classes = {name for name, it in vars(module).items() if isinstance(it, type)}
    assert kept == classes
    result = db.simulate("cyclic-4", ["uniform"], horizon=10, runs=1)
    assert all(result == other for other in copies(result))


def test_a_copied_page_and_matrix_work_on() -> None:
    for page in copies(PAGE):
        assert page.credit(["c"]) == PAGE.credit(["c"])
    for matrix in copies(VALUES[-1]):
        assert matrix.names == ["a", "b"] and matrix[0, 1] == 0.7


@pytest.mark.parametrize("spec", SPECS)
def test_a_restored_policy_goes_on_as_the_first(spec: str) -> None:
    policy = db.Policy(spec, rankers=5, seed=1)
    rng = np.random.default_rng(2)
    for _ in range(700):
        duel = policy.select()
        policy.observe(duel, [1, 0, 0.5, None][rng.integers(4)])
    open_duels = [policy.select() for _ in range(3)]
    others = [*copies(policy), db.Policy.restore(policy.save())]
    for other in others:
        assert repr(other) == repr(policy)
    for _ in range(300):
        selected = [it.select(open_duels) for it in [policy, *others]]
        assert len({(duel, duel.batch) for duel in selected}) == 1
        outcome = [1, 0, 0.5, None][rng.integers(4)]
        for it in [policy, *others]:
            it.observe(selected[0], outcome)
    for other in others:
        assert other.verdict == policy.verdict and other.champion() == policy.champion()
        np.testing.assert_array_equal(other.wins, policy.wins)
        assert other.save() == policy.save()


def test_a_restored_tracker_goes_on_as_the_first() -> None:
    tracker = db.VerdictTracker(4, confidence=0.9, margin=0.02)
    rng = np.random.default_rng(1)
    others: list[db.VerdictTracker] = []
    while tracker.verdict is None:
        first, second = sorted(rng.choice(4, size=2, replace=False).tolist())
        outcome = bool(rng.random() < 0.7)
        for it in [tracker, *others]:
            it.observe((first, second), outcome)
        if tracker.comparisons == 20:
            others = [*copies(tracker), db.VerdictTracker.restore(tracker.save())]
    for other in others:
        assert other.verdict == tracker.verdict and other.leader() == tracker.leader()
        assert other.save() == tracker.save()


def test_a_copied_user_clicks_as_the_first() -> None:
    user = db.ClickModel("position-based:eta=0.5", grades=3, seed=4)
    user.click([2, 1, 0])
    others = copies(user)
    for _ in range(50):
        clicks = user.click([2, 1, 0, 2])
        assert all(other.click([2, 1, 0, 2]) == clicks for other in others)


def test_a_wrong_state_is_refused() -> None:
    state = db.Policy("rucb", 3).save()
    for wrong, message in [
        (b"", "it is too short"),
        (state[:-1], "it is damaged"),
        (state[:20] + bytes([state[20] ^ 1]) + state[21:], "it is damaged"),
        (b"\xff" + state[1:], "saved by another version"),
        (db.VerdictTracker(3).save(), "it is one of VerdictTracker"),
    ]:
        with pytest.raises(ValueError, match=f"`state` is no saved Policy: .*{message}"):
            db.Policy.restore(wrong)
