"""Simulations of policies on a known preference matrix."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Optional, Protocol, Union

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._native import PreferenceMatrix


class PythonPolicy(Protocol):
    """A policy that is written in Python. `Policy` is one too."""

    def select(self) -> Any:
        """The next duel: a pair of rankers, or a `Duel`."""

    def observe(self, duel: Any, outcome: Optional[float]) -> None:
        """The outcome of the duel, which is the object that `select` returned: 1 if its first
        ranker won, 0 if its second won, None for a ranker against itself."""

    def champion(self) -> int:
        """The ranker to recommend at the end."""


#: A text such as "ccb:alpha=0.6", or a callable that makes a policy from the number of rankers and
#: a seed: a class with `__init__(self, rankers, seed)`.
PolicyLike = Union[str, Callable[[int, int], PythonPolicy]]
#: Called some ten times a second with the steps done and the steps in all.
ProgressCallback = Callable[[int, int], object]


@dataclass(frozen=True, repr=False)
class Simulation:
    """The result of `simulate`. Rankers are numbered as in the matrix.

    P policies, R runs, C checkpoints and K rankers give these arrays.
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

    @property
    def final_regret(self) -> dict[str, NDArray[np.float64]]:
        """For each policy, the regret of its runs after the last step (R)."""
        return {name: self.regret[at, :, -1] for at, name in enumerate(self.policies)}

    def __repr__(self) -> str:
        _, runs, _ = self.regret.shape
        return f"<Simulation of {', '.join(self.policies)}: {runs} runs of {self.steps[-1]} steps>"


def simulate(
    matrix: PreferenceMatrix,
    policies: Union[Mapping[str, PolicyLike], Iterable[PolicyLike]],
    horizon: int = 10_000,
    runs: int = 20,
    seed: int = 0,
    *,
    threads: int = 0,
    regret: Literal["copeland", "condorcet", "borda", "weak"] = "copeland",
    checkpoints: Union[int, Sequence[int]] = 100,
    shuffle: bool = True,
    progress: Union[bool, ProgressCallback] = False,
) -> Simulation:
    """Simulate policies on a known preference matrix.

    Run n of every policy meets the same searchers, and has the numbers of run n of `lab simulate`
    with the same seed. The numbers do not depend on `threads` (0: one for each core). A parameter
    `horizon` of a policy is the horizon unless the text gives another one.

    `checkpoints` are the steps at which regret is recorded, or how many of them: they are then even
    on a logarithmic scale. `shuffle` shows the rankers to the policies in a random order.
    `progress` is a callback, or True for a bar on the terminal or in the notebook (with tqdm, if it
    is installed).

    Ctrl-C ends the simulation.
    """
    named = dict(policies) if isinstance(policies, Mapping) else _named(policies)
    steps = _steps(horizon, checkpoints)
    bar = _Bar() if progress is True else None
    callback = bar if isinstance(progress, bool) else progress
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
    )


def _named(policies: Iterable[PolicyLike]) -> dict[str, PolicyLike]:
    if isinstance(policies, str) or callable(policies):
        policies = [policies]
    named: dict[str, PolicyLike] = {}
    for policy in policies:
        name = policy if isinstance(policy, str) else getattr(policy, "__name__", repr(policy))
        if name in named:
            raise ValueError(f"`{name}` is given twice; give a dict with a name for each policy")
        named[name] = policy
    return named


def _steps(horizon: int, checkpoints: Union[int, Sequence[int]]) -> list[int]:
    if horizon < 1:
        raise ValueError(f"`horizon` is {horizon}; it must be at least 1")
    if not isinstance(checkpoints, int):
        steps = sorted({int(step) for step in checkpoints if step < horizon} | {horizon})
    elif checkpoints < 1:
        raise ValueError(f"`checkpoints` is {checkpoints}; it must be at least 1")
    else:
        even = np.geomspace(1, horizon, checkpoints) if checkpoints > 1 else np.array([horizon])
        steps = sorted({*even.round().astype(int).tolist(), horizon})
    return steps


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
