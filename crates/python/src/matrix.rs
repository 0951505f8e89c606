//! Preference matrices.

use std::path::PathBuf;
use std::sync::Arc;

use dueling_bandits::preference::{self, Regret, RegretKind, csv};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLike2, PyArrayMethods};
use pyo3::prelude::*;

use crate::{check_pair, value_error};

/// The probabilities with which each of K rankers beats each other.
///
/// `PreferenceMatrix(entries)` checks an array of K × K numbers: row i, column j is the probability
/// that ranker i beats ranker j. Opposite entries add up to 1, the diagonal is 0.5, and K is from 2
/// to 1024. `numpy.asarray(matrix)` gives the entries back, `matrix[i, j]` one of them.
#[pyclass(frozen, module = "dueling_bandits")]
pub struct PreferenceMatrix(pub Arc<preference::PreferenceMatrix>);

#[pymethods]
impl PreferenceMatrix {
    #[new]
    fn new(entries: PyArrayLike2<'_, f64, AllowTypeChange>) -> PyResult<Self> {
        let rows: Vec<Vec<f64>> = entries.as_array().outer_iter().map(|row| row.to_vec()).collect();
        preference::PreferenceMatrix::from_rows(&rows).map_err(value_error).map(Self::of)
    }

    /// The matrix of a built-in name or generator, otherwise of a CSV file at this path.
    ///
    /// Built in are arxiv-6, cyclic-4, arithmetic-8 (published), btl:K:SEED, hard:K:SEED[:GAP],
    /// cycle:K:SEED and sst:K:SEED.
    #[staticmethod]
    fn load(name_or_path: PathBuf) -> PyResult<Self> {
        let path = name_or_path.to_string_lossy();
        preference::PreferenceMatrix::load(&path).map_err(value_error).map(Self::of)
    }

    /// The matrix in a text of comma-separated values: a line for each row, with or without names.
    #[staticmethod]
    fn from_csv(text: &str) -> PyResult<Self> {
        csv::read(text.as_bytes()).map_err(value_error).map(Self::of)
    }

    /// The number of rankers, K.
    #[getter]
    fn rankers(&self) -> usize {
        self.0.rankers()
    }

    /// The entries as a new array of K × K numbers.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let k = self.0.rankers();
        PyArray1::from_vec(py, self.0.rows().flatten().copied().collect()).reshape([k, k])
    }

    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(value_error("the entries are always copied"));
        }
        let entries = self.to_numpy(py)?.into_any();
        match dtype {
            None => Ok(entries),
            Some(dtype) => entries.call_method1("astype", (dtype,)),
        }
    }

    fn __getitem__(&self, pair: (usize, usize)) -> PyResult<f64> {
        check_pair(pair, self.0.rankers())?;
        Ok(self.0.win_probability(pair.0, pair.1))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __repr__(&self) -> String {
        format!("<PreferenceMatrix of {} rankers>", self.0.rankers())
    }

    /// The matrix among these rankers, in this order.
    fn restricted_to(&self, rankers: Vec<usize>) -> PyResult<Self> {
        for &ranker in &rankers {
            check_pair((ranker, ranker), self.0.rankers())?;
        }
        self.0.restricted_to(&rankers).map_err(value_error).map(Self::of)
    }

    /// The ranker that beats all others; None if there is none.
    fn condorcet_winner(&self) -> Option<usize> {
        self.0.condorcet_winner()
    }

    /// The rankers that beat the most others.
    fn copeland_winners(&self) -> Vec<usize> {
        self.0.copeland_winners()
    }

    /// The rankers with the largest mean probability to win.
    fn borda_winners(&self) -> Vec<usize> {
        self.0.borda_winners()
    }

    /// The smallest set of rankers each of which beats every ranker outside it.
    fn smith_set(&self) -> Vec<usize> {
        self.0.smith_set()
    }

    /// The number of others that each ranker beats.
    fn copeland_scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(py, self.0.copeland_scores().into_iter().map(|s| s as i64).collect())
    }

    /// The mean probability of each ranker to beat another one.
    fn borda_scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.0.borda_scores())
    }

    /// The share of time that a random walk towards better rankers spends at each ranker.
    fn random_walk_distribution<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.0.random_walk_distribution())
    }

    /// The weights of a mixed strategy that no ranker beats in expectation.
    fn von_neumann_strategy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.0.von_neumann_strategy().map_err(value_error)?))
    }

    /// The cost of showing each ranker to both sides of a page, instead of the best one.
    ///
    /// `kind` is "copeland", "condorcet", "borda" or "weak".
    #[pyo3(signature = (kind = "copeland"))]
    fn losses<'py>(&self, py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let regret = self.regret_of(kind)?;
        let losses = (0..self.0.rankers()).map(|i| regret.of_step(i, i)).collect();
        Ok(PyArray1::from_vec(py, losses))
    }

    /// The cumulative regret after each of these duels: pairs of rankers, in the order shown.
    #[pyo3(signature = (duels, kind = "copeland"))]
    fn regret<'py>(
        &self,
        py: Python<'py>,
        duels: Vec<(usize, usize)>,
        kind: &str,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let regret = self.regret_of(kind)?;
        let mut sum = 0.0;
        let mut sums = Vec::with_capacity(duels.len());
        for (first, second) in duels {
            check_pair((first, second), self.0.rankers())?;
            sum += regret.of_step(first, second);
            sums.push(sum);
        }
        Ok(PyArray1::from_vec(py, sums))
    }
}

impl PreferenceMatrix {
    fn of(matrix: preference::PreferenceMatrix) -> Self {
        Self(Arc::new(matrix))
    }

    /// Regret of the kind with this name.
    pub fn regret_of(&self, kind: &str) -> PyResult<Regret> {
        let kind = match kind {
            "copeland" => RegretKind::Copeland,
            "condorcet" => RegretKind::Condorcet,
            "borda" => RegretKind::Borda,
            "weak" => RegretKind::Weak,
            other => {
                return Err(value_error(format!(
                    "there is no regret `{other}`; choose one of: copeland, condorcet, borda, weak"
                )));
            }
        };
        Regret::of_kind(kind, &self.0).map_err(value_error)
    }
}
