"""Policies, one duel after the other."""

import hashlib
from pathlib import Path
from typing import Any

import dueling_bandits as db
import numpy as np
import pytest

FILE = Path(__file__).parent / "selections.txt"
PINS = [line.split() for line in FILE.read_text().splitlines()]


@pytest.mark.parametrize(("spec", "digest"), PINS)
def test_selections_are_those_of_the_rust_crate(spec: str, digest: str) -> None:
    policy = db.Policy(spec, rankers=5, seed=1)
    selected = bytearray()
    for step in range(1000):
        duel = policy.select()
        first, second = duel
        selected += bytes([first, second])
        policy.observe(duel, (first < second) == (step % 3 > 0))
    selected.append(policy.champion())
    assert policy.steps == 1000
    assert hashlib.sha256(selected).hexdigest()[:16] == digest


def test_every_kind_is_pinned() -> None:
    assert [spec.split(":")[0] for spec, _ in PINS] == db.policy_kinds()
    assert db.policy_kinds("served") + db.policy_kinds("comparator") == db.policy_kinds()


def test_a_duel_is_a_pair() -> None:
    duel = db.Duel(2, 1)
    assert (duel[0], duel[1], duel[-1], len(duel), list(duel)) == (2, 1, 1, 2, [2, 1])
    assert duel == db.Duel(2, 1) and duel != db.Duel(1, 2) and not duel.is_self
    assert {duel: 1}[db.Duel(2, 1)] == 1 and repr(duel) == "Duel(2, 1)"
    with pytest.raises(IndexError):
        duel[2]


def test_outcomes_count_in_wins() -> None:
    policy = db.Policy("uniform", 2)
    for outcome in [1, True, np.float64(1.0), 0, 0.5, None]:
        policy.observe((0, 1), outcome)
    policy.observe((1, 1))
    np.testing.assert_array_equal(policy.wins, [[0, 3.5], [1.5, 0]])
    assert (policy.steps, policy.champion(), policy.rankers) == (7, 0, 2)


def test_duels_in_flight_reach_the_policy() -> None:
    policy = db.Policy("pcomp:horizon=1000", 3, seed=2)
    open_duels = [policy.select() for _ in range(10)]
    assert {duel.batch for duel in open_duels} == {1}
    assert policy.select(open_duels) is not None
    with pytest.raises(ValueError, match="there is no ranker 3; there are 3, numbered from 0"):
        policy.select([(0, 3)])


@pytest.mark.parametrize(
    ("spec", "rankers", "message"),
    [
        ("best", 3, "there is no policy `best`; choose one of: uniform, d-ts"),
        ("ccb:alpha=-1", 3, "`alpha` is -1"),
        ("ccb:beta=1", 3, "policy `ccb` has no parameter `beta`"),
        ("rucb:alpha", 3, "not of the form name=value"),
        ("uniform", 1, "`rankers` is 1; it must be a whole number from 2 to 1024"),
        ("uniform", 1025, "`rankers` is 1025"),
        ("pcomp", 3, "needs `horizon`"),
    ],
)
def test_a_wrong_policy_is_refused_with_the_words_of_the_crate(
    spec: str, rankers: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        db.Policy(spec, rankers)


def test_a_wrong_outcome_is_refused_and_nothing_counts() -> None:
    policy = db.Policy("d-ts-verdict", 3)
    cases: list[tuple[Any, float, str]] = [
        ((0, 3), 1, "no ranker 3"),
        ((-1, 0), 1, r"`duel` is \(-1, 0\)"),
        (db.Duel(7, 0), 1, "no ranker 7"),
        ((0, 1), 2, "`outcome` is 2; it must be 1"),
        ((0, 1), float("nan"), "`outcome` is nan"),
    ]
    for duel, outcome, message in cases:
        with pytest.raises(ValueError, match=message):
            policy.observe(duel, outcome)
    with pytest.raises(ValueError, match="`duel` is 'ab'"):
        policy.observe("ab", 1)  # type: ignore[arg-type]
    assert policy.steps == 0


@pytest.mark.parametrize("kind", [spec for spec, _ in PINS])
def test_no_made_up_observation_ends_the_process(kind: str) -> None:
    policy = db.Policy(kind, rankers=4, seed=3)
    for number in range(200):
        duel = policy.select()
        try:
            made_up = (number % 4, number % 3)
            policy.observe(duel if number % 2 else made_up, [1, 0, 0.5, None][number % 4])
        except RuntimeError as error:
            pytest.fail(f"{kind}: {error}")


def test_a_tracker_finds_the_verdict_of_the_policy() -> None:
    policy = db.Policy("d-ts-verdict:margin=0.01", rankers=4, seed=9)
    tracker = db.VerdictTracker(4, confidence=0.95, margin=0.01)
    rng = np.random.default_rng(1)
    while policy.verdict is None:
        assert tracker.verdict is None
        duel = policy.select()
        wins = rng.random() < 0.5 + 0.1 * (duel.second - duel.first)
        policy.observe(duel, wins)
        tracker.observe(duel, wins)
    assert policy.verdict == tracker.verdict and policy.verdict.winner == policy.champion() == 0
    assert tracker.comparisons == policy.verdict.comparisons <= policy.verdict.steps == policy.steps
    np.testing.assert_array_equal(tracker.wins, policy.wins)
    leader = tracker.leader()
    assert leader.ranker == 0 and {rival for rival, _ in leader.rivals} == {1, 2, 3}
    assert leader.threshold > 0 and "Standing: ranker 0" in repr(leader)


def test_a_step_without_an_outcome_is_no_comparison() -> None:
    policy, tracker = db.Policy("d-ts-verdict", 2, seed=1), db.VerdictTracker(2)
    for it in (policy, tracker):
        for _ in range(1000):
            it.observe((0, 1))
        while it.verdict is None:
            it.observe([0, 1], 1)
        assert it.verdict.comparisons < 30 and it.verdict.steps == 1000 + it.verdict.comparisons
    assert tracker.comparisons == tracker.wins.sum()
    assert f"after {tracker.comparisons} comparisons" in repr(tracker)


def test_a_pair_is_a_duel_a_tuple_a_list_or_an_array() -> None:
    policy, tracker = db.Policy("uniform", 3), db.VerdictTracker(3)
    pairs: list[Any] = [db.Duel(0, 1), (0, 1), [0, 1], np.array([0, 1]), (np.int32(0), 1.0)]
    for pair in pairs:
        policy.observe(pair, 1)
        tracker.observe(pair, 1)
    assert policy.wins[0, 1] == tracker.wins[0, 1] == len(pairs)
    assert policy.select(pairs) is not None


def test_the_parameters_of_every_kind_make_a_policy() -> None:
    for kind in db.policy_kinds():
        texts = []
        for name, parameter in db.policy_parameters(kind).items():
            assert set(parameter) == {"default", "meaning"}
            assert parameter["meaning"] or kind in db.policy_kinds("comparator")
            default = parameter["default"]
            if default is None:
                texts.append(f"{name}=1000")
            elif isinstance(default, bool):
                texts.append(f"{name}={str(default).lower()}")
            elif isinstance(default, float):
                texts.append(f"{name}={default:g}")
        assert db.Policy(f"{kind}:{','.join(texts)}", 4).select() is not None, texts
    assert db.policy_parameters("ccb")["alpha"]["default"] == 0.51
    assert db.policy_parameters("pcomp")["horizon"]["default"] is None


def test_a_tracker_starts_from_wins() -> None:
    few = db.VerdictTracker.from_wins([[0, 6], [4, 0]])
    assert few.verdict is None and few.comparisons == 10
    many = db.VerdictTracker.from_wins(np.array([[0, 700.5], [300.5, 0]]))
    assert many.verdict is not None and many.verdict.winner == 0 and many.comparisons == 1001
    cases: list[tuple[Any, str]] = [
        ([[0, 1.2], [1, 0]], "`wins`: row 0, column 1 is 1.2; it must be a number of wins"),
        ([[0, 1.5], [1, 0]], "a tie is half a win for both"),
        ([[1, 2], [1, 0]], "row 0, column 0 is 1; it must be 0 on the diagonal"),
        ([[0, 2, 3], [1, 0, 2]], "`wins` has the shape 2 × 3; it must be K × K"),
        ([[0, -1], [1, 0]], "row 0, column 1 is -1"),
    ]
    for wins, message in cases:
        with pytest.raises(ValueError, match=message):
            db.VerdictTracker.from_wins(wins)
    with pytest.raises(ValueError, match="`confidence` is 1; it must be a number above 0 and below 1"):
        db.VerdictTracker(3, confidence=1)
    with pytest.raises(ValueError, match="`margin` is 0.6"):
        db.VerdictTracker(3, margin=0.6)
