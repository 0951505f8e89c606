//! Duels, and pairs of rankers as arguments.

use dueling_bandits::{MAX_RANKERS, Selection};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use crate::arguments::{count, items, refused, shown};
use crate::saved::{Reduced, Saved};
use crate::value_error;

/// A selected duel: a pair of rankers, which unpacks as `first, second = duel`.
///
/// Give it back to the policy with its outcome. `Duel(first, second)` is a duel that no policy
/// selected.
#[pyclass(frozen, sequence, eq, hash, module = "dueling_bandits")]
#[derive(Clone, Copy, PartialEq)]
pub struct Duel(pub Selection);

impl std::hash::Hash for Duel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0.duel, self.0.batch, self.0.ticket).hash(state);
    }
}

#[pymethods]
impl Duel {
    #[new]
    fn new(first: &Bound<'_, PyAny>, second: &Bound<'_, PyAny>) -> PyResult<Self> {
        let most = MAX_RANKERS - 1;
        Ok(Self(Selection::of(count("first", first, most)?, count("second", second, most)?)))
    }

    /// The candidate.
    #[getter]
    fn first(&self) -> usize {
        self.0.duel.first
    }

    /// The challenger.
    #[getter]
    fn second(&self) -> usize {
        self.0.duel.second
    }

    /// The batch that the duel belongs to, from 1; None outside batches.
    #[getter]
    fn batch(&self) -> Option<u32> {
        self.0.batch
    }

    /// Whether both are the same ranker, which is then shown alone.
    #[getter]
    fn is_self(&self) -> bool {
        self.0.duel.is_self()
    }

    fn __len__(&self) -> usize {
        2
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyTuple::new(py, [self.0.duel.first, self.0.duel.second])?.try_iter()
    }

    fn __getitem__(&self, index: isize) -> PyResult<usize> {
        match index {
            0 | -2 => Ok(self.0.duel.first),
            1 | -1 => Ok(self.0.duel.second),
            _ => Err(PyIndexError::new_err("a duel has two rankers")),
        }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

    fn __repr__(&self) -> String {
        format!("Duel({}, {})", self.0.duel.first, self.0.duel.second)
    }
}

impl Saved for Duel {
    const CLASS: &'static str = "Duel";
    type State = (usize, usize, Option<u32>, u64);

    fn state(&self) -> Self::State {
        let Selection { duel, batch, ticket } = self.0;
        (duel.first, duel.second, batch, ticket)
    }

    fn of_state((first, second, batch, ticket): Self::State) -> Option<Self> {
        Some(Self(Selection { batch, ticket, ..Selection::of(first, second) }))
    }
}

/// A duel, or a pair of rankers as a tuple, a list or an array.
pub fn pair(name: &str, value: &Bound<'_, PyAny>, rankers: usize) -> PyResult<Selection> {
    let selection = match value.cast::<Duel>() {
        Ok(duel) => duel.get().0,
        Err(_) => pair_of(name, value)?,
    };
    let duel = selection.duel;
    match [duel.first, duel.second].into_iter().find(|&ranker| ranker >= rankers) {
        None => Ok(selection),
        Some(ranker) => Err(value_error(format!(
            "`{name}` is {}: there is no ranker {ranker}; there are {rankers}, numbered from 0",
            shown(value)
        ))),
    }
}

fn pair_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Selection> {
    if let Ok(pair) = value.cast::<PyTuple>()
        && let Ok((first, second)) = pair.extract::<(usize, usize)>()
    {
        return Ok(Selection::of(first, second));
    }
    let wanted = "a Duel, or a pair of rankers, numbered from 0";
    let items = items(name, value, wanted)?;
    let ranker = |item| count(name, item, usize::MAX).map_err(|_| refused(name, value, wanted));
    match &items[..] {
        [first, second] => Ok(Selection::of(ranker(first)?, ranker(second)?)),
        _ => Err(refused(name, value, wanted)),
    }
}

/// Duels or pairs of rankers, as a list, an array of N × 2, or any other iterable.
pub fn pairs(name: &str, value: &Bound<'_, PyAny>, rankers: usize) -> PyResult<Vec<Selection>> {
    let items = items(name, value, "a list of duels or of pairs of rankers")?;
    items.iter().map(|item| pair(name, item, rankers)).collect()
}
