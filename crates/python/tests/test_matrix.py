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


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_matrix_may_be_less_exact(dtype: Any) -> None:
    exact = np.random.default_rng(1).random((40, 40))
    exact = np.where(np.triu(np.ones((40, 40)), 1) > 0, exact, 1 - exact.T)
    np.fill_diagonal(exact, 0.5)
    matrix = db.PreferenceMatrix(exact.astype(dtype))
    np.testing.assert_allclose(matrix, exact, atol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(np.asarray(matrix) + np.asarray(matrix).T, 1, atol=1e-15)
    with pytest.raises(ValueError, match="they must add up to 1"):
        db.PreferenceMatrix(np.array([[0.5, 0.61], [0.4, 0.5]], dtype=dtype))
    with pytest.raises(ValueError, match="row 0, column 1 is 0.6.* and row 1, column 0 is 0.4"):
        db.PreferenceMatrix(np.array([[0.5, 0.6], [0.4 + 1e-7, 0.5]]))


def test_a_pair_of_a_matrix_is_a_duel_a_tuple_a_list_or_an_array() -> None:
    matrix = db.PreferenceMatrix(ENTRIES)
    pairs: list[Any] = [db.Duel(0, 2), (0, 2), [0, 2], np.array([0, 2])]
    assert [matrix[pair] for pair in pairs] == [0.7] * 4
    array = np.array([(0, 2)] * 4)
    np.testing.assert_array_equal(matrix.regret(pairs), matrix.regret(array))
    with pytest.raises(ValueError, match=r"`pair` is \[0, 3\]: there is no ranker 3"):
        matrix[[0, 3]]


def test_rankers_have_names(tmp_path: Path) -> None:
    matrix = db.PreferenceMatrix(ENTRIES, names=["bm25", "vectors", "both"])
    assert matrix.names == ["bm25", "vectors", "both"]
    assert matrix.restricted_to([2, 0]).names == ["both", "bm25"]
    assert db.PreferenceMatrix(ENTRIES).names is None and matrix == db.PreferenceMatrix(ENTRIES)
    path = tmp_path / "own.csv"
    path.write_text(',"a, b",c\nfirst,0.5,0.7\nsecond,0.3,0.5\n')
    assert db.PreferenceMatrix.load(path).names == ["a, b", "c"]
    assert db.PreferenceMatrix.from_csv("a,b\n0.5,0.7\n0.3,0.5\n").names == ["a", "b"]
    assert db.simulate(matrix, ["uniform"], horizon=5, runs=1).names == matrix.names
    for names in [["a", "b"], ["a", "b", "a"]]:
        with pytest.raises(ValueError, match="`names` is .*; it must be 3 different names"):
            db.PreferenceMatrix(ENTRIES, names)


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
    with pytest.raises(ValueError, match="`kind` is 'strong'; it must be one of: copeland"):
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
    with pytest.raises(ValueError, match=r"`text` is no .*: row 0, column 1 \(line 1\) is `x`"):
        db.PreferenceMatrix.from_csv("0.5,x\n0.3,0.5\n")


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (np.zeros((0, 0)), "it is empty"),
        ([[0.5]], "it has one ranker"),
        ([[0.5, 0.6, 0.7], [0.4, 0.5, 0.5]], "it is not square"),
        ([[0.5, 0.6], [0.5, 0.5]], "they must add up to 1"),
        ([[0.5, float("nan")], [0.5, 0.5]], "`entries` are no .*: row 0, column 1 is NaN"),
        ([[0.4, 0.6], [0.4, 0.5]], "a ranker against itself must be 0.5"),
    ],
)
def test_a_wrong_matrix_is_refused_with_the_words_of_the_crate(entries: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        db.PreferenceMatrix(entries)
