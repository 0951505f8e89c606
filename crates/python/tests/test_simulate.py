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


class Recorder(Uniform):
    """Keeps the outcomes of all duels of two rankers."""

    def __init__(self) -> None:
        super().__init__(2, 0)
        self.seen: list[object] = []

    def of(self, rankers: int, seed: int) -> "Recorder":
        super().__init__(rankers, seed)
        return self

    def observe(self, duel: tuple[int, int], outcome: object) -> None:
        if duel[0] != duel[1]:
            self.seen.append(outcome)


@pytest.mark.parametrize("pin", PINS, ids=lambda pin: "-".join(pin[:2]))
def test_numbers_are_those_of_the_laboratory(pin: Any) -> None:
    options, policy, *points = pin
    arguments: dict[str, Any] = dict(option.split("=") for option in options.split(","))
    numbers = {name: float(arguments[name]) for name in ("ties", "no_click") if name in arguments}
    arguments.update(numbers)
    steps, means = zip(*(point.split(":") for point in points))
    matrix = db.PreferenceMatrix.load("cyclic-4")
    at = [int(step) for step in steps]
    result = db.simulate(matrix, [policy], 2000, 2, 5, checkpoints=at, **arguments)
    regret = result.regret[0]
    assert ((regret[0] + regret[1]) / 2).tolist() == [float(mean) for mean in means]


def test_a_matrix_may_be_an_array_a_name_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("\n".join(",".join(map(str, row)) for row in np.asarray(ARXIV)))
    results = [
        db.simulate(matrix, ["rucb"], horizon=300, runs=2, seed=3)
        for matrix in (ARXIV, "arxiv-6", np.asarray(ARXIV), np.asarray(ARXIV).tolist(), path)
    ]
    assert all(result == results[0] for result in results)
    with pytest.raises(ValueError, match="`matrix`: `entries` has the shape 6"):
        db.simulate(np.asarray(ARXIV)[0], ["rucb"])


def test_results_are_compared() -> None:
    one, same = (db.simulate(ARXIV, ["rucb"], horizon=300, runs=2, seed=3) for _ in range(2))
    other = db.simulate(ARXIV, ["rucb"], horizon=300, runs=2, seed=4)
    longer = db.simulate(ARXIV, ["rucb"], horizon=301, runs=2, seed=3)
    assert one == same and not one != same
    assert one != other and one != longer and one != "rucb"
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_policy_in_python_meets_the_same_answers() -> None:
    rules: Any = {"skip": {None, 0, 1}, "half": {0, 0.5, 1}, "coin": {0, 1}}
    for tie_rule, allowed in rules.items():
        policy = Recorder()
        options: Any = {"ties": 0.5, "tie_rule": tie_rule, "delay": 3}
        db.simulate(ARXIV, {"it": policy.of}, horizon=500, runs=1, **options)
        seen = policy.seen
        assert set(seen) == allowed
    # an outcome comes with the object that was selected, after the delay
    order: list[tuple[str, object]] = []

    class Slow(Uniform):
        def select(self) -> Any:
            order.append(("select", len(order)))
            return [0, 1]

        def observe(self, duel: Any, outcome: object) -> None:
            order.append(("observe", duel))

    db.simulate(ARXIV, [Slow], horizon=4, runs=1, delay=2)
    assert [name for name, _ in order] == ["select"] * 3 + ["observe", "select", "observe"]


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
    with pytest.raises(ValueError, match=r"`champion\(\)` is 99: there is no such ranker"):
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


@pytest.mark.parametrize("policies", [["uniform"], [Uniform], ["uniform", Uniform]])
def test_a_stopped_simulation_does_not_walk_through_its_runs(
    policies: list[db.simulation.PolicyLike],
) -> None:
    """The runs are so many that walking through those that remain would take hours."""

    def stop(done: int, total: int) -> None:
        raise StopIteration

    with pytest.raises(StopIteration):
        db.simulate(ARXIV, policies, horizon=10, runs=10**12, progress=stop)


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
        ({"runs": 0}, "`runs` is 0; it must be"),
        ({"policies": []}, "`policies` is empty"),
        ({"policies": ["uniform", "uniform"]}, "`policies` has `uniform` twice"),
        ({"policies": ["d-ts:alpha=-3"]}, "`alpha` is -3"),
        ({"regret": "none"}, "`regret` is 'none'"),
        ({"checkpoints": 0}, "`checkpoints` is 0"),
        ({"checkpoints": [0, 5]}, "`checkpoints` is 0; it must be a whole number from 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.simulate(ARXIV, **{"policies": ["uniform"], **arguments})
