//! Policies and the duels that they select.

use comparators::{Comparator, Spec};
use dueling_bandits::evidence;
use dueling_bandits::{Bandit, InFlight, PolicyRng, PolicySpec, Selection, Setup, Tally, step_rng};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple};

use crate::{check_pair, check_rankers, guarded, no_ranker, outcome, value_error};

/// A selected duel: a pair of rankers, which unpacks as `first, second = duel`.
///
/// Give it back to the policy with its outcome. `Duel(first, second)` is a duel that no policy
/// selected.
#[pyclass(frozen, sequence, eq, hash, module = "dueling_bandits")]
#[derive(Clone, Copy, PartialEq)]
pub struct Duel(Selection);

impl std::hash::Hash for Duel {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.0.duel, self.0.batch, self.0.ticket).hash(state);
    }
}

#[pymethods]
impl Duel {
    #[new]
    fn new(first: usize, second: usize) -> Self {
        Self(Selection::of(first, second))
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

    fn __repr__(&self) -> String {
        format!("Duel({}, {})", self.0.duel.first, self.0.duel.second)
    }
}

/// A duel or a pair of numbers, as an argument.
#[derive(FromPyObject)]
pub enum DuelArgument<'py> {
    /// A duel that a policy selected.
    Selected(PyRef<'py, Duel>),
    /// Any pair.
    Pair(i64, i64),
}

impl DuelArgument<'_> {
    /// The selection, whose rankers exist.
    pub fn of(&self, rankers: usize) -> PyResult<Selection> {
        match self {
            Self::Selected(duel) => {
                check_pair((duel.0.duel.first, duel.0.duel.second), rankers)?;
                Ok(duel.0)
            }
            &Self::Pair(first, second) => {
                let index =
                    |ranker| usize::try_from(ranker).map_err(|_| no_ranker(ranker, rankers));
                let pair = (index(first)?, index(second)?);
                check_pair(pair, rankers)?;
                Ok(Selection::of(pair.0, pair.1))
            }
        }
    }
}

/// A policy that selects duels and learns from their outcomes.
///
/// `spec` is KIND or KIND:name=value,name=value, as in `Policy("d-ts-verdict:margin=0.01", 5)`;
/// `policy_kinds()` lists the kinds. `seed` decides all random numbers: the same spec, seed and
/// outcomes select the same duels on every machine.
#[pyclass(module = "dueling_bandits")]
pub struct Policy {
    spec: String,
    policy: Box<dyn Bandit>,
    rng: PolicyRng,
}

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(signature = (spec, rankers, seed = 0))]
    fn new(spec: String, rankers: usize, seed: u64) -> PyResult<Self> {
        check_rankers(rankers)?;
        let read = Spec::from_text(&spec).map_err(value_error)?;
        read.validate(rankers).map_err(value_error)?;
        let policy = guarded(|| read.start(Setup { rankers, seed }))?;
        Ok(Self { spec, policy, rng: step_rng(seed, 0) })
    }

    /// Choose the next duel. Nothing is learned by it.
    ///
    /// `in_flight` are the duels that were selected and have no outcome yet. Some policies then
    /// select other pairs.
    #[pyo3(signature = (in_flight = None))]
    fn select(&mut self, in_flight: Option<Vec<DuelArgument<'_>>>) -> PyResult<Duel> {
        let mut open = InFlight::new();
        for duel in in_flight.into_iter().flatten() {
            let duel = duel.of(self.rankers())?.duel;
            open.add(duel.first, duel.second, 1);
        }
        guarded(|| Duel(self.policy.select(&open, &mut self.rng)))
    }

    /// Learn from the outcome of a duel, in any order and at any time.
    ///
    /// `outcome` is 1 if the first ranker won, 0 if the second won, 0.5 for a tie that counts as
    /// half a win for both, and None for a step that counts for neither. That of a self-duel is
    /// not read.
    #[pyo3(signature = (duel, outcome = None))]
    fn observe(&mut self, duel: DuelArgument<'_>, outcome: Option<f64>) -> PyResult<()> {
        let selection = duel.of(self.rankers())?;
        let outcome = self::outcome(outcome)?;
        guarded(|| self.policy.observe_shown(selection, outcome))
    }

    /// The ranker to recommend now.
    fn champion(&self) -> PyResult<usize> {
        guarded(|| self.policy.champion())
    }

    /// The verdict; None before there is one, and for policies of `policy_kinds("comparator")`.
    #[getter]
    fn verdict(&self) -> Option<Verdict> {
        self.policy.run()?.verdict().verdict().map(Verdict::of)
    }

    /// The number of rankers.
    #[getter]
    fn rankers(&self) -> usize {
        self.policy.tally().rankers()
    }

    /// The number of outcomes so far, self-duels included.
    #[getter]
    fn steps(&self) -> u64 {
        self.policy.tally().steps()
    }

    /// The wins of each ranker (row) against each other (column), as a new array.
    #[getter]
    fn wins<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        wins(py, self.policy.tally())
    }

    fn __repr__(&self) -> String {
        format!("<Policy {} of {} rankers after {} steps>", self.spec, self.rankers(), self.steps())
    }
}

/// A certified winner. It is wrong in at most a share 1 - confidence of experiments, whenever
/// somebody looks.
#[pyclass(frozen, eq, get_all, module = "dueling_bandits")]
#[derive(Clone, PartialEq)]
pub struct Verdict {
    /// The winner.
    winner: usize,
    /// All rankers that were certified at once, the winner first.
    winners: Vec<usize>,
    /// The comparisons that it took.
    comparisons: u64,
    /// The steps that it took, self-duels included.
    steps: u64,
    /// Whether the winner is certified to beat every other ranker.
    is_condorcet: bool,
}

impl Verdict {
    /// The verdict as Python sees it.
    pub fn of(verdict: &evidence::Verdict) -> Self {
        Self {
            winner: verdict.winner(),
            winners: verdict.winners.iter().map(|&winner| winner.into()).collect(),
            comparisons: verdict.comparisons,
            steps: verdict.steps,
            is_condorcet: verdict.condorcet_steps.is_some(),
        }
    }
}

#[pymethods]
impl Verdict {
    fn __repr__(&self) -> String {
        format!("<Verdict: ranker {} after {} comparisons>", self.winner, self.comparisons)
    }
}

/// The win counts as an array.
pub fn wins<'py>(py: Python<'py>, tally: &Tally) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let k = tally.rankers();
    let wins = (0..k * k).map(|at| tally.wins(at / k, at % k)).collect();
    PyArray1::from_vec(py, wins).reshape([k, k])
}

/// The kinds of policies: those that the service serves, then the comparators of other papers.
///
/// `sort` is "served", "comparator" or None for both.
#[pyfunction]
#[pyo3(signature = (sort = None))]
pub fn policy_kinds(sort: Option<&str>) -> PyResult<Vec<&'static str>> {
    let served = PolicySpec::KINDS.iter().map(|(kind, _)| *kind);
    let comparators = Comparator::KINDS.iter().copied();
    match sort {
        None => Ok(served.chain(comparators).collect()),
        Some("served") => Ok(served.collect()),
        Some("comparator") => Ok(comparators.collect()),
        Some(other) => {
            Err(value_error(format!("`sort` is {other}; it must be served or comparator")))
        }
    }
}
