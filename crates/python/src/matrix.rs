//! Preference matrices.

use std::path::PathBuf;
use std::sync::Arc;

use dueling_bandits::preference::csv::{self, CsvError};
use dueling_bandits::preference::{self, InvalidMatrix, LoadError, Regret, RegretKind};
use numpy::ndarray::Array2;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;

use crate::arguments::{Argument, choice, items, ranker, refused, table, text, texts};
use crate::duel::{pair, pairs};
use crate::saved::{Reduced, Saved};
use crate::value_error;

/// The kinds of regret.
pub const REGRETS: [&str; 4] = ["copeland", "condorcet", "borda", "weak"];

/// The probabilities with which each of K rankers beats each other.
///
/// `PreferenceMatrix(entries)` checks an array of K × K numbers: row i, column j is the probability
/// that ranker i beats ranker j. Opposite entries add up to 1, the diagonal is 0.5, and K is from 2
/// to 1024. Sums may be wrong by 1e-9, and with entries of float32 or float16 by four times the
/// distance from 1 to the next number; the entries are then made to add up. `names` are those of the
/// rankers. `numpy.asarray(matrix)` gives the entries back, `matrix[i, j]` one of them. Matrices
/// with the same entries are equal.
#[pyclass(frozen, module = "dueling_bandits")]
pub struct PreferenceMatrix {
    pub matrix: Arc<preference::PreferenceMatrix>,
    names: Option<Vec<String>>,
}

#[pymethods]
impl PreferenceMatrix {
    #[new]
    #[pyo3(signature = (entries, names = None))]
    fn new(entries: &Bound<'_, PyAny>, names: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let (mut table, precision) = table("entries", entries)?;
        if table.is_square() && precision > f64::EPSILON {
            complete(&mut table, 4.0 * precision);
        }
        let rows: Vec<Vec<f64>> = table.outer_iter().map(|row| row.to_vec()).collect();
        let matrix = preference::PreferenceMatrix::from_rows(&rows);
        let matrix = matrix.map_err(|error| {
            value_error(format!("`entries` are no preference matrix: {}", from_zero(error)))
        })?;
        let names = match names {
            Some(names) => Some(names_of(names, matrix.rankers())?),
            None => None,
        };
        Ok(Self::of(matrix, names))
    }

    /// The matrix of a built-in name or generator, otherwise of a CSV file at this path.
    ///
    /// Built in are arxiv-6, cyclic-4, arithmetic-8 (published), btl:K:SEED, hard:K:SEED[:GAP],
    /// cycle:K:SEED and sst:K:SEED. A file may begin with a line of names. Errors count rows and
    /// columns from 0, and lines of a file from 1.
    #[staticmethod]
    fn load(name_or_path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let path: PathBuf = name_or_path
            .extract()
            .map_err(|_| refused("name_or_path", name_or_path, "a built-in name or a path"))?;
        let (matrix, names) = preference::PreferenceMatrix::load_named(&path.to_string_lossy())
            .map_err(|error| match error {
                LoadError::Csv { path, source } => {
                    LoadError::Csv { path, source: csv_from_zero(source) }
                }
                other => other,
            })
            .map_err(|error| value_error(format!("`name_or_path`: {error}")))?;
        Ok(Self::of(matrix, names))
    }

    /// The matrix in a text of comma-separated values: a line for each row, with or without names.
    #[staticmethod]
    fn from_csv(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let text = self::text("text", text)?;
        let (matrix, names) = csv::read_named(text.as_bytes()).map_err(|error| {
            value_error(format!("`text` is no preference matrix: {}", csv_from_zero(error)))
        })?;
        Ok(Self::of(matrix, names))
    }

    /// The names of the rankers; None where none were given.
    #[getter]
    fn names(&self) -> Option<Vec<String>> {
        self.names.clone()
    }

    /// The number of rankers, K.
    #[getter]
    fn rankers(&self) -> usize {
        self.matrix.rankers()
    }

    /// The entries as a new array of K × K numbers.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let k = self.matrix.rankers();
        PyArray1::from_vec(py, self.matrix.rows().flatten().copied().collect()).reshape([k, k])
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

    fn __getitem__(&self, pair: &Bound<'_, PyAny>) -> PyResult<f64> {
        let duel = self::pair("pair", pair, self.matrix.rankers())?.duel;
        Ok(self.matrix.win_probability(duel.first, duel.second))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.matrix == other.matrix
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __repr__(&self) -> String {
        format!("<PreferenceMatrix of {} rankers>", self.matrix.rankers())
    }

    /// The matrix among these rankers, in this order.
    fn restricted_to(&self, rankers: &Bound<'_, PyAny>) -> PyResult<Self> {
        let chosen = items("rankers", rankers, "a list of rankers")?;
        let chosen = chosen.iter().map(|item| ranker("rankers", item, self.matrix.rankers()));
        let chosen = chosen.collect::<PyResult<Vec<_>>>()?;
        let matrix = self.matrix.restricted_to(&chosen);
        let matrix = matrix.map_err(|error| value_error(format!("`rankers`: {error}")))?;
        let names = self.names.as_ref();
        Ok(Self::of(matrix, names.map(|it| chosen.iter().map(|&i| it[i].clone()).collect())))
    }

    /// The ranker that beats all others; None if there is none.
    fn condorcet_winner(&self) -> Option<usize> {
        self.matrix.condorcet_winner()
    }

    /// The rankers that beat the most others.
    fn copeland_winners(&self) -> Vec<usize> {
        self.matrix.copeland_winners()
    }

    /// The rankers with the largest mean probability to win.
    fn borda_winners(&self) -> Vec<usize> {
        self.matrix.borda_winners()
    }

    /// The smallest set of rankers each of which beats every ranker outside it.
    fn smith_set(&self) -> Vec<usize> {
        self.matrix.smith_set()
    }

    /// The number of others that each ranker beats.
    fn copeland_scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_vec(
            py,
            self.matrix.copeland_scores().into_iter().map(|s| s as i64).collect(),
        )
    }

    /// The mean probability of each ranker to beat another one.
    fn borda_scores<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.matrix.borda_scores())
    }

    /// The share of time that a random walk towards better rankers spends at each ranker.
    fn random_walk_distribution<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_vec(py, self.matrix.random_walk_distribution())
    }

    /// The weights of a mixed strategy that no ranker beats in expectation.
    fn von_neumann_strategy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(PyArray1::from_vec(py, self.matrix.von_neumann_strategy().map_err(value_error)?))
    }

    /// The cost of showing each ranker to both sides of a page, instead of the best one.
    ///
    /// `kind` is "copeland", "condorcet", "borda" or "weak".
    #[pyo3(
        signature = (kind = Argument::Default("copeland")),
        text_signature = "($self, kind='copeland')"
    )]
    fn losses<'py>(
        &self,
        py: Python<'py>,
        kind: Argument<'py, &'static str>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let regret = self.regret_of("kind", kind)?;
        let losses = (0..self.matrix.rankers()).map(|i| regret.of_step(i, i)).collect();
        Ok(PyArray1::from_vec(py, losses))
    }

    /// The cumulative regret after each of these duels: pairs of rankers, in the order shown.
    #[pyo3(
        signature = (duels, kind = Argument::Default("copeland")),
        text_signature = "($self, duels, kind='copeland')"
    )]
    fn regret<'py>(
        &self,
        py: Python<'py>,
        duels: &Bound<'py, PyAny>,
        kind: Argument<'py, &'static str>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let regret = self.regret_of("kind", kind)?;
        let duels = pairs("duels", duels, self.matrix.rankers())?;
        let sums = duels.iter().scan(0.0, |sum, selection| {
            *sum += regret.of_step(selection.duel.first, selection.duel.second);
            Some(*sum)
        });
        Ok(PyArray1::from_vec(py, sums.collect()))
    }
}

impl PreferenceMatrix {
    fn of(matrix: preference::PreferenceMatrix, names: Option<Vec<String>>) -> Self {
        Self { matrix: Arc::new(matrix), names }
    }

    /// Regret of the kind that the argument `name` chooses.
    pub fn regret_of(&self, name: &str, kind: Argument<'_, &'static str>) -> PyResult<Regret> {
        let kind = match kind.read(|kind| choice(name, kind, &REGRETS))? {
            "condorcet" => RegretKind::Condorcet,
            "borda" => RegretKind::Borda,
            "weak" => RegretKind::Weak,
            _ => RegretKind::Copeland,
        };
        Regret::of_kind(kind, &self.matrix)
            .map_err(|error| value_error(format!("`{name}` does not fit the matrix: {error}")))
    }
}

impl Saved for PreferenceMatrix {
    const CLASS: &'static str = "PreferenceMatrix";
    type State = (Vec<Vec<f64>>, Option<Vec<String>>);

    fn state(&self) -> Self::State {
        (self.matrix.rows().map(<[f64]>::to_vec).collect(), self.names.clone())
    }

    fn of_state((rows, names): Self::State) -> Option<Self> {
        let matrix = preference::PreferenceMatrix::from_rows(&rows).ok()?;
        let fit = names.as_ref().is_none_or(|names| names.len() == matrix.rankers());
        fit.then(|| Self::of(matrix, names))
    }
}

/// A name for each ranker.
fn names_of(names: &Bound<'_, PyAny>, rankers: usize) -> PyResult<Vec<String>> {
    let given = texts("names", names)?;
    let distinct: std::collections::BTreeSet<_> = given.iter().collect();
    match given.len() == rankers && distinct.len() == rankers {
        true => Ok(given),
        false => Err(refused("names", names, format!("{rankers} different names"))),
    }
}

/// Make opposite entries add up to 1 where they do so but for rounding.
fn complete(table: &mut Array2<f64>, tolerance: f64) {
    for i in 0..table.nrows() {
        for j in 0..=i {
            let [ours, theirs] = [table[[i, j]], table[[j, i]]];
            if (ours + theirs - 1.0).abs() <= tolerance && (ours - 0.5).abs() <= 0.5 + tolerance {
                let win = (0.5 + (ours - theirs) / 2.0).clamp(0.0, 1.0);
                table[[i, j]] = win;
                table[[j, i]] = 1.0 - win;
            }
        }
    }
}

/// The error with rows and columns from 0.
fn from_zero(error: InvalidMatrix) -> InvalidMatrix {
    match error {
        InvalidMatrix::NotSquare { row, columns, expected } => {
            InvalidMatrix::NotSquare { row: row - 1, columns, expected }
        }
        InvalidMatrix::OutOfRange { row, column, value } => {
            InvalidMatrix::OutOfRange { row: row - 1, column: column - 1, value }
        }
        InvalidMatrix::Diagonal { row, value } => InvalidMatrix::Diagonal { row: row - 1, value },
        InvalidMatrix::NotComplementary { row, column, value, mirrored } => {
            InvalidMatrix::NotComplementary { row: row - 1, column: column - 1, value, mirrored }
        }
        other => other,
    }
}

fn csv_from_zero(error: CsvError) -> CsvError {
    match error {
        CsvError::NotANumber { row, column, line, text } => {
            CsvError::NotANumber { row: row - 1, column: column - 1, line, text }
        }
        CsvError::Matrix(error) => CsvError::Matrix(from_zero(error)),
        other => other,
    }
}
