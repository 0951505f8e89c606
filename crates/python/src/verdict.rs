//! The verdict as a tracker of its own, for comparisons that any policy selected.

use dueling_bandits::evidence::{self, Target};
use dueling_bandits::{Outcome, Roster, Tally};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::{Deserialize, Serialize};

use crate::arguments::{self, Argument, bytes, outcome, real};
use crate::duel::pair;
use crate::guarded;
use crate::policy::{Verdict, wins};
use crate::ranks::tally_of;
use crate::saved::{Reduced, Saved, saved_as_it_is};

/// Where the evidence for the leader stands.
#[pyclass(frozen, eq, get_all, module = "dueling_bandits")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
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
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

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
    #[pyo3(
        signature = (
            rankers, confidence = Argument::Default(0.95), margin = Argument::Default(0.0)
        ),
        text_signature = "(rankers, confidence=0.95, margin=0.0)"
    )]
    fn new(
        rankers: &Bound<'_, PyAny>,
        confidence: Argument<'_, f64>,
        margin: Argument<'_, f64>,
    ) -> PyResult<Self> {
        let rankers = arguments::rankers(rankers)?;
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
    #[pyo3(
        signature = (wins, confidence = Argument::Default(0.95), margin = Argument::Default(0.0)),
        text_signature = "(wins, confidence=0.95, margin=0.0)"
    )]
    fn from_wins(
        wins: &Bound<'_, PyAny>,
        confidence: Argument<'_, f64>,
        margin: Argument<'_, f64>,
    ) -> PyResult<Self> {
        let target = target(confidence, margin)?;
        let tally = tally_of(wins)?;
        let active: Vec<usize> = (0..tally.rankers()).collect();
        let tracker = guarded(|| evidence::VerdictTracker::of_counts(target, &tally, &active))?;
        Ok(Self { tally, active, tracker })
    }

    /// Count the outcome of a duel: 1 if the first ranker won, 0 if the second won, 0.5 for a tie
    /// that counts half, None for a step that counts for neither and is no comparison.
    #[pyo3(signature = (duel, outcome = None))]
    fn observe(
        &mut self,
        duel: &Bound<'_, PyAny>,
        outcome: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let duel = pair("duel", duel, self.tally.rankers())?.duel;
        let outcome = self::outcome(outcome)?;
        if duel.is_self() || outcome == Outcome::None {
            self.tally.skip(1);
            return Ok(());
        }
        self.tally.record(duel, outcome);
        guarded(|| self.tracker.observe(&self.tally, &self.active, duel))
    }

    /// The tracker as bytes, from which `restore` goes on.
    #[pyo3(name = "save")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.save()?))
    }

    /// The tracker that `save` gave.
    #[staticmethod]
    #[pyo3(name = "restore")]
    fn from_bytes(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::restore(bytes("state", state)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
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

saved_as_it_is!(Standing);

impl Saved for VerdictTracker {
    const CLASS: &'static str = "VerdictTracker";
    type State = (Target, Tally, evidence::verdict::State);

    fn state(&self) -> Self::State {
        (self.tracker.target(), self.tally.clone(), self.tracker.state().clone())
    }

    fn of_state((target, tally, state): Self::State) -> Option<Self> {
        let rankers = tally.rankers();
        state.is_sound(&tally, &Roster::new(rankers)).then(|| Self {
            tracker: evidence::VerdictTracker::restore(target, state, rankers),
            active: (0..rankers).collect(),
            tally,
        })
    }
}

fn target(confidence: Argument<'_, f64>, margin: Argument<'_, f64>) -> PyResult<Target> {
    let allows = |margin| (0.0..=0.49).contains(&margin);
    Ok(Target {
        confidence: confidence.read(arguments::confidence)?,
        margin: margin.read(|it| real("margin", it, "a number from 0 to 0.49", allows))?,
    })
}
