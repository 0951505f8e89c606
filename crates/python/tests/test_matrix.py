"""Preference matrices."""

from pathlib import Path
from typing import Any

import dueling_bandits as db
import numpy as np
import pytest

ENTRIES = [[0.5, 0.6, 0.7], [0.4, 0.5, 0.8], [0.3, 0.2, 0.5]]


def test_a_matrix_goes_to_numpy_and_back() -> None:
    matrix = db.PreferenceMatrix(ENTRIES)
    np.testing.assert_array_equal(np.asarray(matrix), ENTRIES)
    assert db.PreferenceMatrix(np.asarray(matrix)) == matrix
    assert np.asarray(matrix, dtype=np.float32).dtype == np.float32
    assert db.PreferenceMatrix(np.array(ENTRIES, order="F")) == matrix
    assert (matrix.rankers, matrix[0, 2]) == (3, 0.7)
    assert repr(matrix) == "<PreferenceMatrix of 3 rankers>"
    assert matrix.restricted_to([2, 0])[0, 1] == 0.3


def test_a_matrix_has_its_winners() -> None:
    matrix = db.PreferenceMatrix(ENTRIES)
    assert matrix.condorcet_winner() == 0 and matrix.copeland_winners() == [0]
    assert matrix.borda_winners() == [0] and matrix.smith_set() == [0]
    assert matrix.copeland_scores().tolist() == [2, 1, 0]
    np.testing.assert_allclose(matrix.borda_scores(), [0.65, 0.6, 0.25])
    np.testing.assert_allclose(matrix.von_neumann_strategy(), [1, 0, 0])
    assert matrix.random_walk_distribution().argmax() == 0
    rock = db.PreferenceMatrix([[0.5, 0.9, 0.1], [0.1, 0.5, 0.9], [0.9, 0.1, 0.5]])
    assert rock.condorcet_winner() is None and rock.smith_set() == [0, 1, 2]


def test_regret_adds_up_the_losses() -> None:
    matrix = db.PreferenceMatrix(ENTRIES)
    losses = matrix.losses("condorcet")
    np.testing.assert_allclose(losses, [0, 0.1, 0.2])
    regret = matrix.regret([(0, 0), (0, 1), (2, 1)], "condorcet")
    np.testing.assert_allclose(regret, [0, 0.05, 0.2])
    np.testing.assert_allclose(matrix.regret([(0, 2), (1, 2)], "weak"), [0, 0.1])
    with pytest.raises(ValueError, match="there is no regret `strong`; choose one of: copeland"):
        matrix.losses("strong")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no ranker 5"):
        matrix.regret([(0, 5)])
    cycle = db.PreferenceMatrix.load("cycle:5:1")
    with pytest.raises(ValueError, match="it has no Condorcet winner"):
        cycle.losses("condorcet")


def test_a_matrix_is_loaded_by_name_or_from_a_file(tmp_path: Path) -> None:
    assert db.PreferenceMatrix.load("arxiv-6").rankers == 6
    path = tmp_path / "own.csv"
    path.write_text("a,b\n0.5,0.7\n0.3,0.5\n")
    assert db.PreferenceMatrix.load(path)[0, 1] == 0.7
    assert db.PreferenceMatrix.from_csv(path.read_text()) == db.PreferenceMatrix.load(str(path))
    with pytest.raises(ValueError, match="cannot open the preference matrix `nowhere.csv`"):
        db.PreferenceMatrix.load("nowhere.csv")
    with pytest.raises(ValueError, match=r"row 1, column 2 \(line 1\) is `x`"):
        db.PreferenceMatrix.from_csv("0.5,x\n0.3,0.5\n")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (np.zeros((0, 0)), "it is empty"),
        ([[0.5]], "it has one ranker"),
        ([[0.5, 0.6, 0.7], [0.4, 0.5, 0.5]], "it is not square"),
        ([[0.5, 0.6], [0.5, 0.5]], "they must add up to 1"),
        ([[0.5, float("nan")], [0.5, 0.5]], "row 1, column 2 is NaN"),
        ([[0.4, 0.6], [0.4, 0.5]], "a ranker against itself must be 0.5"),
    ],
)
def test_a_wrong_matrix_is_refused_with_the_words_of_the_crate(entries: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.PreferenceMatrix(entries)
