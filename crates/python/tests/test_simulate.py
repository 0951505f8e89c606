"""Simulations: their numbers, policies in Python, progress and interruptions."""

import signal
import sys
import threading
from pathlib import Path
from typing import Any

import dueling_bandits as db
import numpy as np
import pytest

FILE = Path(__file__).parent / "simulation.txt"
PINS = [line.split() for line in FILE.read_text().splitlines()]
ARXIV = db.PreferenceMatrix.load("arxiv-6")


class Uniform:
    """A policy in Python. It records the calls."""

    def __init__(self, rankers: int, seed: int) -> None:
        self.rankers, self.rng = rankers, np.random.default_rng(seed)
        self.outcomes: list[object] = []

    def select(self) -> tuple[int, int]:
        first, second = self.rng.integers(self.rankers, size=2)
        return int(first), int(second)

    def observe(self, duel: tuple[int, int], outcome: object) -> None:
        assert (outcome is None) == (duel[0] == duel[1]) and outcome in (None, 0, 1)
        self.outcomes.append(outcome)

    def champion(self) -> int:
        return 3


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: "-".join(pin[:2]))
def test_numbers_are_those_of_the_laboratory(pin: Any) -> None:
    kind, policy, *points = pin
    steps, means = zip(*(point.split(":") for point in points))
    matrix = db.PreferenceMatrix.load("cyclic-4")
    at = [int(step) for step in steps]
    result = db.simulate(matrix, [policy], 2000, 2, 5, regret=kind, checkpoints=at)
    regret = result.regret[0]
    assert ((regret[0] + regret[1]) / 2).tolist() == [float(mean) for mean in means]


def test_results_have_the_shapes_and_do_not_depend_on_threads_or_company() -> None:
    policies = {"ours": "d-ts-verdict:margin=0.02", "theirs": "rucb", "python": Uniform}
    result = db.simulate(ARXIV, policies, horizon=3000, runs=3, seed=7, threads=2)
    alone = db.simulate(ARXIV, {"theirs": "rucb"}, horizon=3000, runs=3, seed=7, threads=1)
    assert result.policies == ["ours", "theirs", "python"] and result.steps[-1] == 3000
    np.testing.assert_array_equal(result.regret[1], alone.regret[0])
    assert result.regret.shape == (3, 3, len(result.steps))
    assert (np.diff(result.regret, axis=2) >= 0).all()
    assert result.appearances.shape == (3, 3, 6) and (result.appearances.sum(axis=2) == 6000).all()
    final = result.appearances @ ARXIV.losses() / 2
    np.testing.assert_allclose(final, result.regret[:, :, -1])
    assert result.final_regret["ours"].tolist() == result.regret[0, :, -1].tolist()
    assert (result.winners[1:] == -1).all() and (result.comparisons[1:] == -1).all()
    decided = result.winners[0] >= 0
    assert (result.winners[0][decided] == result.champions[0][decided]).all()
    assert (result.comparisons[0][decided] > 0).all() and "3 runs of 3000 steps" in repr(result)


def test_a_verdict_names_the_winner_of_the_matrix() -> None:
    matrix = db.PreferenceMatrix([[0.5, 0.8, 0.8], [0.2, 0.5, 0.6], [0.2, 0.4, 0.5]])
    result = db.simulate(matrix, ["d-ts-verdict"], horizon=2000, runs=8, seed=1)
    assert (result.winners == 0).all() and (result.champions == 0).all()
    assert ((0 < result.comparisons) & (result.comparisons <= 2000)).all()


def test_a_policy_of_the_module_may_stand_where_one_in_python_does() -> None:
    def ours(rankers: int, seed: int) -> db.Policy:
        return db.Policy("d-ts-plus", rankers, seed)

    result = db.simulate(ARXIV, [ours, Uniform], horizon=2000, runs=2, seed=3, shuffle=False)
    assert result.policies == ["ours", "Uniform"] and (result.champions[1] == 3).all()
    assert result.final_regret["ours"].mean() < result.final_regret["Uniform"].mean()


def test_an_error_of_a_policy_in_python_ends_the_simulation() -> None:
    class Wrong(Uniform):
        def select(self) -> tuple[int, int]:
            return (0, 6)

    class Fails(Uniform):
        def observe(self, duel: object, outcome: object) -> None:
            raise LookupError("no such duel")

    class Nobody(Uniform):
        def champion(self) -> int:
            return 99

    with pytest.raises(ValueError, match="there is no ranker 6"):
        db.simulate(ARXIV, [Wrong, "d-ts"], horizon=10**9, runs=2)
    with pytest.raises(LookupError, match="no such duel"):
        db.simulate(ARXIV, [Fails], horizon=100)
    with pytest.raises(ValueError, match="there is no ranker 99"):
        db.simulate(ARXIV, [Nobody], horizon=10)


def test_progress_ends_at_the_total_and_may_stop_the_simulation() -> None:
    calls: list[tuple[int, int]] = []
    db.simulate(ARXIV, ["uniform", Uniform], 500, 4, progress=lambda *call: calls.append(call))
    assert calls[-1] == (4000, 4000) and calls == sorted(calls)

    def stop(done: int, total: int) -> None:
        raise StopIteration(f"{done} of {total}")

    with pytest.raises(StopIteration):
        db.simulate(ARXIV, ["uniform"], horizon=10**12, runs=1, progress=stop)


def test_a_bar_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db.simulate(ARXIV, ["uniform"], 500, 4, progress=True)
    assert "step" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    db.simulate(ARXIV, ["uniform"], 500, 4, progress=True)
    assert "100%" in capsys.readouterr().err


@pytest.mark.parametrize("policy", ["uniform", Uniform])
def test_ctrl_c_ends_a_simulation(policy: db.simulation.PolicyLike) -> None:
    # a process in the background of a shell starts without a handler
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main = threading.main_thread().ident or 0
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        db.simulate(ARXIV, [policy], horizon=10**12, runs=4)
    timer.join()


def test_other_threads_run_meanwhile() -> None:
    done = threading.Event()

    def work() -> None:
        db.simulate(ARXIV, ["d-ts-verdict"], horizon=20_000, runs=4)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    turns = 0
    while not done.is_set():
        turns += 1
    thread.join()
    assert turns > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "`horizon` is 0"),
        ({"runs": 0}, "at least one policy, one run and one step"),
        ({"policies": []}, "at least one policy"),
        ({"policies": ["uniform", "uniform"]}, "`uniform` is given twice"),
        ({"policies": ["d-ts:alpha=-3"]}, "`alpha` is -3"),
        ({"regret": "none"}, "there is no regret `none`"),
        ({"checkpoints": 0}, "`checkpoints` is 0"),
        ({"checkpoints": [0, 5]}, "checkpoints that ascend from 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.simulate(ARXIV, **{"policies": ["uniform"], **arguments})
