//! The verdict as a tracker of its own, for comparisons that any policy selected.

use dueling_bandits::evidence::{self, Target};
use dueling_bandits::{Outcome, Tally};
use numpy::{AllowTypeChange, PyArray2, PyArrayLike2};
use pyo3::prelude::*;

use crate::policy::{DuelArgument, Verdict, wins};
use crate::{check_rankers, guarded, outcome, value_error};

/// Where the evidence for the leader stands.
#[pyclass(frozen, get_all, module = "dueling_bandits")]
#[derive(Clone)]
pub struct Standing {
    /// The leader: the ranker nearest to a verdict.
    ranker: usize,
    /// Each rival, and the logarithm of the evidence that it is no better a winner.
    rivals: Vec<(usize, f64)>,
    /// The evidence that is needed against every rival: ln(1/δ).
    threshold: f64,
}

#[pymethods]
impl Standing {
    fn __repr__(&self) -> String {
        let least = self.rivals.iter().map(|rival| rival.1).fold(f64::INFINITY, f64::min);
        format!("<Standing: ranker {} with {least:.2} of {:.2}>", self.ranker, self.threshold)
    }
}

/// Finds the winner from comparisons, with an error that holds whenever somebody looks.
///
/// `confidence` is in (0, 1): the verdict is wrong in at most a share 1 - confidence of
/// experiments. Pairs within `margin` of 1/2 may go either way.
#[pyclass(module = "dueling_bandits")]
pub struct VerdictTracker {
    tally: Tally,
    active: Vec<usize>,
    tracker: evidence::VerdictTracker,
}

#[pymethods]
impl VerdictTracker {
    #[new]
    #[pyo3(signature = (rankers, confidence = 0.95, margin = 0.0))]
    fn new(rankers: usize, confidence: f64, margin: f64) -> PyResult<Self> {
        check_rankers(rankers)?;
        let target = target(confidence, margin)?;
        Ok(Self {
            tally: Tally::new(rankers),
            active: (0..rankers).collect(),
            tracker: guarded(|| evidence::VerdictTracker::new(target, rankers))?,
        })
    }

    /// A tracker that starts from win counts, and checks them once: row i, column j is the number
    /// of wins of i against j, a tie half for both.
    #[staticmethod]
    #[pyo3(signature = (wins, confidence = 0.95, margin = 0.0))]
    fn from_wins(
        wins: PyArrayLike2<'_, f64, AllowTypeChange>,
        confidence: f64,
        margin: f64,
    ) -> PyResult<Self> {
        let target = target(confidence, margin)?;
        let tally = tally_of(&wins)?;
        let active: Vec<usize> = (0..tally.rankers()).collect();
        let tracker = guarded(|| evidence::VerdictTracker::of_counts(target, &tally, &active))?;
        Ok(Self { tally, active, tracker })
    }

    /// Count the outcome of a duel: 1 if the first ranker won, 0 if the second won, 0.5 for a tie
    /// that counts half, None for a step that counts for neither.
    #[pyo3(signature = (duel, outcome = None))]
    fn observe(&mut self, duel: DuelArgument<'_>, outcome: Option<f64>) -> PyResult<()> {
        let duel = duel.of(self.tally.rankers())?.duel;
        let outcome = self::outcome(outcome)?;
        if duel.is_self() {
            self.tally.skip(1);
            return Ok(());
        }
        self.tally.record(duel, outcome);
        guarded(|| self.tracker.observe(&self.tally, &self.active, duel))
    }

    /// The verdict; None before there is one. Later counts do not take it back.
    #[getter]
    fn verdict(&self) -> Option<Verdict> {
        self.tracker.verdict().map(Verdict::of)
    }

    /// The comparisons so far.
    #[getter]
    fn comparisons(&self) -> u64 {
        self.tracker.comparisons()
    }

    /// The wins of each ranker (row) against each other (column), as a new array.
    #[getter]
    fn wins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        wins(py, &self.tally)
    }

    /// The ranker nearest to a verdict, with its evidence against every rival.
    fn leader(&self) -> PyResult<Standing> {
        let standing = guarded(|| self.tracker.leader(&self.tally, &self.active))?;
        let evidence::Standing { ranker, rivals, threshold } = standing;
        Ok(Standing { ranker, rivals, threshold })
    }

    fn __repr__(&self) -> String {
        let (rankers, comparisons) = (self.active.len(), self.tracker.comparisons());
        format!("<VerdictTracker of {rankers} rankers after {comparisons} comparisons>")
    }
}

fn target(confidence: f64, margin: f64) -> PyResult<Target> {
    if !(confidence > 0.0 && confidence < 1.0) {
        let message = format!("`confidence` is {confidence}; it must be above 0 and below 1");
        return Err(value_error(message));
    }
    if !(0.0..=0.49).contains(&margin) {
        return Err(value_error(format!("`margin` is {margin}; it must be from 0 to 0.49")));
    }
    Ok(Target { confidence, margin })
}

/// The counts of an array of wins.
fn tally_of(wins: &PyArrayLike2<'_, f64, AllowTypeChange>) -> PyResult<Tally> {
    /// Most wins of one ranker against another: half wins are kept in 32 bits.
    const MOST: f64 = (u32::MAX / 2) as f64;
    let wins = wins.as_array();
    let rankers = wins.nrows();
    check_rankers(rankers)?;
    if wins.ncols() != rankers {
        let message = format!("there are {rankers} rows of {} wins; give K × K", wins.ncols());
        return Err(value_error(message));
    }
    let mut tally = Tally::new(rankers);
    for ((i, j), &count) in wins.indexed_iter() {
        let is_count = (0.0..=MOST).contains(&count) && (2.0 * count).fract() == 0.0;
        if !is_count || (i == j && count != 0.0) {
            let expected =
                if i == j { "0 on the diagonal" } else { "a number of wins, or of halves" };
            let (row, column) = (i + 1, j + 1);
            let message = format!("row {row}, column {column} is {count}; it must be {expected}");
            return Err(value_error(message));
        }
    }
    for i in 0..rankers {
        for j in 0..i {
            let [ours, theirs] = [wins[[i, j]], wins[[j, i]]];
            // ties are half wins of both
            let ties = if ours.fract() == 0.5 { 1 } else { 0 };
            if (ours + theirs).fract() != 0.0 {
                let message = format!(
                    "row {}, column {} and its opposite are {ours} and {theirs}; a tie is half a \
                     win for both",
                    i + 1,
                    j + 1
                );
                return Err(value_error(message));
            }
            let duel = dueling_bandits::Duel::new(i, j);
            tally.record_run(duel, Outcome::First, ours as u32);
            tally.record_run(duel, Outcome::Second, theirs as u32);
            tally.record_run(duel, Outcome::Half, ties);
        }
    }
    Ok(tally)
}
