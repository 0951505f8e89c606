"""Every refused argument of every function raises a ValueError that names it."""

import inspect
from collections.abc import Callable
from typing import Any

import dueling_bandits as db
import numpy as np
import pytest

MATRIX = db.PreferenceMatrix([[0.5, 0.6], [0.4, 0.5]])
PAGE = db.interleave("team-draft", ["a", "b"], ["b", "c"], length=2)
#: Values of every type. A parameter is tried with those that are not `fine` for it.
VALUES: dict[str, Any] = {
    "none": None,
    "negative": -1,
    "zero": 0,
    "one": 1,
    "huge": 2**64,
    "larger": 10**400,
    "fraction": 0.25,
    "whole float": 2.0,
    "nan": float("nan"),
    "infinity": float("inf"),
    "bool": True,
    "text": "xyz",
    "lone surrogate": "\ud800",
    "empty text": "",
    "bytes": b"xyz",
    "complex": 1j,
    "object": object(),
    "empty list": [],
    "list of nothing": [None],
    "list of numbers": [-1, 2.9, float("nan")],
    "list of texts": ["x", "y"],
    "triple": (0, 1, 0),
    "dict": {-1: 5},
    "far pair": (0, 2),
    "array": np.array([0.5, 0.5, 0.5]),
    "cube": np.zeros((2, 2, 2)),
    "array of objects": np.array([[None, "x"], [0, 1]], dtype=object),
    "function": len,
}
WHOLE = {"whole float", "one", "bool"}
SMALL = WHOLE | {"zero"}


def case(
    function: Callable[..., Any], valid: dict[str, Any], fine: dict[str, set[str]]
) -> list[Any]:
    """The cases of a function, each one of its parameters with one value that is not fine."""
    assert set(fine) == set(valid), function
    function(**valid)
    cases = []
    for name in valid:
        for kind, value in VALUES.items():
            if kind not in fine[name]:
                title = f"{getattr(function, '__qualname__', function)}-{name}-{kind}"
                cases.append(pytest.param(function, {**valid, name: value}, name, id=title))
    return cases


def simulate(**arguments: Any) -> object:
    return db.simulate(**{"horizon": 5, "runs": 1, **arguments})


def policy(name: str) -> Callable[..., Any]:
    return lambda **arguments: getattr(db.Policy("uniform", 2), name)(**arguments)


def tracker(name: str) -> Callable[..., Any]:
    return lambda **arguments: getattr(db.VerdictTracker(2), name)(**arguments)


OUTCOME = {"none", "zero", "one", "bool"}
CASES = [
    *case(db.Duel, {"first": 0, "second": 1}, {"first": SMALL, "second": SMALL}),
    *case(
        db.Policy,
        {"spec": "uniform", "rankers": 2, "seed": 0},
        {"spec": set(), "rankers": {"whole float"}, "seed": SMALL},
    ),
    *case(policy("select"), {"in_flight": []}, {"in_flight": {"none", "empty list"}}),
    *case(
        policy("observe"),
        {"duel": (0, 1), "outcome": 1},
        {"duel": set(), "outcome": OUTCOME},
    ),
    *case(db.Policy.restore, {"state": db.Policy("uniform", 2).save()}, {"state": set()}),
    *case(
        db.VerdictTracker,
        {"rankers": 2, "confidence": 0.9, "margin": 0.1},
        {"rankers": {"whole float"}, "confidence": {"fraction"}, "margin": {"fraction", "zero"}},
    ),
    *case(
        db.VerdictTracker.from_wins,
        {"wins": [[0, 1], [1, 0]], "confidence": 0.9, "margin": 0.1},
        {"wins": set(), "confidence": {"fraction"}, "margin": {"fraction", "zero"}},
    ),
    *case(
        tracker("observe"),
        {"duel": (0, 1), "outcome": 1},
        {"duel": set(), "outcome": OUTCOME},
    ),
    *case(db.VerdictTracker.restore, {"state": db.VerdictTracker(2).save()}, {"state": set()}),
    *case(
        db.PreferenceMatrix,
        {"entries": [[0.5, 0.6], [0.4, 0.5]], "names": None},
        {"entries": set(), "names": {"none", "list of texts"}},
    ),
    *case(db.PreferenceMatrix.load, {"name_or_path": "arxiv-6"}, {"name_or_path": set()}),
    *case(db.PreferenceMatrix.from_csv, {"text": "0.5,0.6\n0.4,0.5"}, {"text": set()}),
    *case(lambda pair: MATRIX[pair], {"pair": (0, 1)}, {"pair": set()}),
    *case(MATRIX.restricted_to, {"rankers": [1, 0]}, {"rankers": {"triple"}}),
    *case(MATRIX.losses, {"kind": "weak"}, {"kind": set()}),
    *case(
        MATRIX.regret,
        {"duels": [(0, 1)], "kind": "weak"},
        {"duels": {"empty list"}, "kind": set()},
    ),
    *case(
        db.interleave,
        {
            "method": "balanced",
            "left": ["a"],
            "right": ["b"],
            "length": 1,
            "seed": 0,
            "offset": 0,
            "pinned": {},
        },
        {
            "method": set(),
            "left": {"empty list", "list of texts"},
            "right": {"empty list", "list of texts"},
            "length": WHOLE,
            "seed": SMALL,
            "offset": SMALL,
            "pinned": {"none"},
        },
    ),
    *case(PAGE.credit, {"clicks": [0]}, {"clicks": {"empty list", "triple"}}),
    *case(
        db.ClickModel,
        {"model": "perfect", "grades": 2, "seed": 0},
        {"model": set(), "grades": {"whole float"}, "seed": SMALL},
    ),
    *case(
        db.ClickModel("perfect", 2).click, {"grades": [1]}, {"grades": {"empty list", "triple"}}
    ),
    *case(db.policy_kinds, {"sort": "served"}, {"sort": {"none"}}),
    *case(db.policy_parameters, {"kind": "ccb"}, {"kind": set()}),
    *case(
        db.rank_intervals,
        {"wins": [[0, 1], [1, 0]], "confidence": 0.9},
        {"wins": set(), "confidence": {"fraction"}},
    ),
    *case(
        db.strengths,
        {"wins": [[0, 1], [1, 0]], "prior": 0},
        {"wins": set(), "prior": SMALL | {"fraction"}},
    ),
    *case(
        db.count_wins,
        {"duels": [(0, 1)], "outcomes": [1], "rankers": 2},
        {"duels": set(), "outcomes": {"list of nothing"}, "rankers": {"whole float"}},
    ),
    *case(
        simulate,
        {
            "matrix": MATRIX,
            "policies": ["uniform"],
            "horizon": 5,
            "runs": 1,
            "seed": 0,
            "threads": 1,
            "regret": "weak",
            "checkpoints": 2,
            "shuffle": True,
            "progress": False,
            "delay": 1,
            "ties": 0.1,
            "tie_rule": "half",
            "no_click": 0.1,
        },
        {
            "matrix": set(),
            "policies": {"function"},
            "horizon": WHOLE,
            "runs": WHOLE,
            "seed": SMALL,
            "threads": SMALL,
            "regret": set(),
            "checkpoints": WHOLE | {"empty list"},
            "shuffle": {"bool"},
            "progress": {"bool", "none", "function"},
            "delay": SMALL,
            "ties": SMALL | {"fraction"},
            "tie_rule": set(),
            "no_click": SMALL | {"fraction"},
        },
    ),
]


@pytest.mark.parametrize(("function", "arguments", "name"), CASES)
def test_a_refused_argument_is_named(
    function: Callable[..., Any], arguments: dict[str, Any], name: str
) -> None:
    with pytest.raises(ValueError, match=f"`{name}`"):
        function(**arguments)


def test_more_values_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"seed": -1}, "`seed` is -1; it must be a whole number from 0"),
        ({"threads": -1}, "`threads` is -1; it must be a whole number from 0 to 1024"),
        ({"threads": 3000}, "`threads` is 3000; it must be a whole number from 0 to 1024"),
        ({"horizon": 2**64}, "`horizon` is 18446744073709551616; it must be"),
        ({"checkpoints": [2.9, 50, float("nan")]}, "`checkpoints` is 2.9"),
        ({"delay": "geometric:-1"}, "`delay` is 'geometric:-1'; it must be a number of steps"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            db.simulate(MATRIX, ["uniform"], **arguments)
    with pytest.raises(ValueError, match="`entries` has the shape 2; it must be K × K"):
        db.PreferenceMatrix(np.asarray(MATRIX)[0])


def test_every_parameter_is_tried() -> None:
    tried = {case.values[2] for case in CASES}
    classes = [db.Duel, db.Policy, db.VerdictTracker, db.PreferenceMatrix, db.ClickModel, db.Page]
    functions = [getattr(db, name) for name in db.__all__ if name[0].islower()]
    functions += [
        getattr(of, name) for of in classes for name in dir(of) if not name.startswith("_")
    ]
    for function in [*classes, *functions]:
        if callable(function) and function is not db.Page:
            parameters = set(inspect.signature(function).parameters) - {"self"}
            assert parameters <= tried, function
