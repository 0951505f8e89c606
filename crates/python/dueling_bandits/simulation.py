"""Simulations of policies on a known preference matrix."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal, Optional, Protocol, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._native import PreferenceMatrix

#: Most steps of a simulation.
_MOST_STEPS = 2**53


class PythonPolicy(Protocol):
    """A policy that is written in Python. `Policy` is one too."""

    def select(self) -> Any:
        """The next duel: a pair of rankers, or a `Duel`."""

    def observe(self, duel: Any, outcome: Optional[float]) -> None:
        """The outcome of the duel, which is the object that `select` returned: 1 if its first
        ranker won, 0 if its second won, 0.5 for a tie that counts half, None for a ranker against
        itself, a page without a click and a tie that does not count."""

    def champion(self) -> int:
        """The ranker to recommend at the end."""


#: A text such as "ccb:alpha=0.6", or a callable that makes a policy from the number of rankers and
#: a seed: a class with `__init__(self, rankers, seed)`.
PolicyLike = Union[str, Callable[[int, int], PythonPolicy]]
#: Called some ten times a second with the steps done and the steps in all.
ProgressCallback = Callable[[int, int], object]


@dataclass(frozen=True, repr=False, eq=False)
class Simulation:
    """The result of `simulate`. Rankers are numbered as in the matrix.

    P policies, R runs, C checkpoints and K rankers give these arrays. Two results are equal if they
    have the same policies, names and numbers.
    """

    #: The names of the policies.
    policies: list[str]
    #: The steps at which regret is recorded (C).
    steps: NDArray[np.int64]
    #: Cumulative regret (P × R × C).
    regret: NDArray[np.float64]
    #: How often each ranker was shown (P × R × K); a step shows two.
    appearances: NDArray[np.int64]
    #: The ranker that the policy recommends after the last step (P × R).
    champions: NDArray[np.int64]
    #: The ranker that the verdict names (P × R); -1 where there is none.
    winners: NDArray[np.int64]
    #: The comparisons that the verdict took (P × R); -1 where there is none.
    comparisons: NDArray[np.int64]
    #: The names of the rankers, where the matrix has them.
    names: Optional[list[str]] = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Simulation):
            return NotImplemented
        pairs = ((getattr(self, it.name), getattr(other, it.name)) for it in fields(self))
        return all(
            np.array_equal(ours, theirs) if isinstance(ours, np.ndarray) else ours == theirs
            for ours, theirs in pairs
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def final_regret(self) -> dict[str, NDArray[np.float64]]:
        """For each policy, the regret of its runs after the last step (R)."""
        return {name: self.regret[at, :, -1] for at, name in enumerate(self.policies)}

    def __repr__(self) -> str:
        _, runs, _ = self.regret.shape
        return f"<Simulation of {', '.join(self.policies)}: {runs} runs of {self.steps[-1]} steps>"


def simulate(
    matrix: Union[PreferenceMatrix, str, PathLike[str], ArrayLike],
    policies: Union[Mapping[str, PolicyLike], Iterable[PolicyLike]],
    horizon: int = 10_000,
    runs: int = 20,
    seed: int = 0,
    *,
    threads: int = 0,
    regret: Literal["copeland", "condorcet", "borda", "weak"] = "copeland",
    checkpoints: Union[int, Iterable[int]] = 100,
    shuffle: bool = True,
    progress: Union[bool, ProgressCallback] = False,
    delay: Union[int, str] = 0,
    ties: float = 0.0,
    tie_rule: Literal["skip", "half", "coin"] = "skip",
    no_click: float = 0.0,
) -> Simulation:
    """Simulate policies on a known preference matrix: a `PreferenceMatrix`, an array, or what
    `PreferenceMatrix.load` takes.

    Run n of every policy meets the same searchers, and has the numbers of run n of `lab simulate`
    with the same seed. The numbers do not depend on `threads` (0: one for each core). A parameter
    `horizon` of a policy is the horizon unless the text gives another one.

    `checkpoints` are the steps at which regret is recorded, or how many of them: they are then even
    on a logarithmic scale. `shuffle` shows the rankers to the policies in a random order.
    `progress` is a callback, or True for a bar on the terminal or in the notebook (with tqdm, if it
    is installed).

    `delay` is the number of further duels that are selected before an outcome is known, or
    "geometric:MEAN". `no_click` is the probability that a page gets no click, and `ties` that
    another page is a tie, which counts by the `tie_rule`: not at all, as half a win for both, or as
    a win for a random side.

    Ctrl-C ends the simulation.
    """
    matrix = _matrix(matrix)
    named = dict(policies) if isinstance(policies, Mapping) else _named(policies)
    steps = _steps(horizon, checkpoints)
    bar = _Bar() if progress is True else None
    callback = bar if isinstance(progress, bool) else progress
    feedback = {"delay": delay, "ties": ties, "tie_rule": tie_rule, "no_click": no_click}
    try:
        regrets, appearances, champions, winners, comparisons = _native.simulate(
            matrix,
            list(named.values()),
            steps,
            runs,
            seed,
            threads,
            regret,
            shuffle,
            callback,
            feedback,
        )
    finally:
        if bar is not None:
            bar.close()
    return Simulation(
        policies=list(named),
        steps=np.array(steps, dtype=np.int64),
        regret=regrets,
        appearances=appearances,
        champions=champions,
        winners=winners,
        comparisons=comparisons,
        names=matrix.names,
    )


def _matrix(matrix: Any) -> PreferenceMatrix:
    try:
        if isinstance(matrix, (str, PathLike)):
            return PreferenceMatrix.load(matrix)
        return matrix if isinstance(matrix, PreferenceMatrix) else PreferenceMatrix(matrix)
    except ValueError as error:
        raise ValueError(f"`matrix`: {error}") from None


def _named(policies: Iterable[PolicyLike]) -> dict[str, PolicyLike]:
    if isinstance(policies, str) or callable(policies):
        policies = [policies]
    named: dict[str, PolicyLike] = {}
    for policy in _items("policies", policies, "texts, and callables that make a policy"):
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", repr(policy))
        if name in named:
            raise ValueError(
                f"`policies` has `{name}` twice; give a dict with a name for each policy"
            )
        named[name] = policy
    return named


def _steps(horizon: int, checkpoints: Union[int, Iterable[int]]) -> list[int]:
    horizon = _native._whole("horizon", horizon, 1, _MOST_STEPS)
    if isinstance(checkpoints, (int, np.integer)):
        number = _native._whole("checkpoints", checkpoints, 1, 1_000_000)
        even = np.geomspace(1, horizon, number) if number > 1 else np.array([horizon])
        return sorted({*even.round().astype(int).tolist(), horizon})
    given = _items("checkpoints", checkpoints, "a number of them, or a list of steps")
    steps = [_native._whole("checkpoints", step, 1, _MOST_STEPS) for step in given]
    return sorted({step for step in steps if step < horizon} | {horizon})


def _items(name: str, values: Any, wanted: str) -> list[Any]:
    if not isinstance(values, (str, bytes)):
        try:
            return list(values)
        except TypeError:
            pass
    raise ValueError(f"`{name}` is {values!r:.80}; it must be {wanted}")


class _Bar:
    """A bar of the progress: that of tqdm, which knows notebooks, or a line on standard error."""

    def __init__(self) -> None:
        self.bar: Any = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a notebook without widgets
                tqdm = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            return
        self.bar = tqdm(unit="step", unit_scale=True)

    def __call__(self, done: int, total: int) -> None:
        if self.bar is not None:
            self.bar.total = total
            self.bar.update(done - self.bar.n)
            return
        share = done / total
        print(f"\r[{'#' * int(40 * share):40}] {share:4.0%}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
        else:
            print(file=sys.stderr)
