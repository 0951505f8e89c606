//! Policies and the duels that they select.

use comparators::{Comparator, Spec};
use dueling_bandits::evidence;
use dueling_bandits::run::{Run, SavedRun};
use dueling_bandits::{
    Bandit, InFlight, MAX_RANKERS, MIN_RANKERS, Outcome, PolicyRng, PolicySpec, Roster, Selection,
    Setup, Tally, step_rng,
};
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde::{Deserialize, Serialize};

use crate::arguments::{self, Argument, bytes, choice, outcome, text, whole};
use crate::duel::{Duel, pair, pairs};
use crate::saved::{Reduced, Saved, saved_as_it_is};
use crate::{guarded, value_error};

/// A policy that selects duels and learns from their outcomes.
///
/// `spec` is KIND or KIND:name=value,name=value, as in `Policy("d-ts-verdict:margin=0.01", 5)`;
/// `policy_kinds()` lists the kinds, and `policy_parameters(kind)` their parameters. `seed` decides
/// all random numbers: the same spec, seed and outcomes select the same duels on every machine.
#[pyclass(module = "dueling_bandits")]
pub struct Policy {
    spec: String,
    seed: u64,
    policy: Box<dyn Bandit>,
    rng: PolicyRng,
    /// All outcomes of a comparator, which is saved as these; `None` for a served policy.
    outcomes: Option<Vec<u8>>,
}

#[pymethods]
impl Policy {
    #[new]
    #[pyo3(
        signature = (spec, rankers, seed = Argument::Default(0)),
        text_signature = "(spec, rankers, seed=0)"
    )]
    fn new(
        spec: &Bound<'_, PyAny>,
        rankers: &Bound<'_, PyAny>,
        seed: Argument<'_, u64>,
    ) -> PyResult<Self> {
        let spec = text("spec", spec)?;
        let rankers = arguments::rankers(rankers)?;
        let seed = seed.read(|seed| whole("seed", seed, 0..=u64::MAX))?;
        let wrong = |error| value_error(format!("`spec`: {error}"));
        let read = Spec::from_text(&spec).map_err(wrong)?;
        read.validate(rankers).map_err(wrong)?;
        let policy = guarded(|| read.start(Setup { rankers, seed }))?;
        let outcomes = read.served().is_none().then(Vec::new);
        Ok(Self { spec, seed, policy, rng: step_rng(seed, 0), outcomes })
    }

    /// Choose the next duel. Nothing is learned by it.
    ///
    /// `in_flight` are the duels that were selected and have no outcome yet. Some policies then
    /// select other pairs.
    #[pyo3(signature = (in_flight = None))]
    fn select(&mut self, in_flight: Option<&Bound<'_, PyAny>>) -> PyResult<Duel> {
        let mut open = InFlight::new();
        if let Some(duels) = in_flight {
            for Selection { duel, .. } in pairs("in_flight", duels, self.rankers())? {
                open.add(duel.first, duel.second, 1);
            }
        }
        guarded(|| Duel(self.policy.select(&open, &mut self.rng)))
    }

    /// Learn from the outcome of a duel, in any order and at any time.
    ///
    /// `outcome` is 1 if the first ranker won, 0 if the second won, 0.5 for a tie that counts as
    /// half a win for both, and None for a step that counts for neither. That of a self-duel is
    /// not used.
    #[pyo3(signature = (duel, outcome = None))]
    fn observe(
        &mut self,
        duel: &Bound<'_, PyAny>,
        outcome: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let selection = pair("duel", duel, self.rankers())?;
        let outcome = self::outcome(outcome)?;
        guarded(|| self.policy.observe_shown(selection, outcome))?;
        if let Some(outcomes) = &mut self.outcomes {
            let code = CODES.iter().position(|&known| known == outcome).unwrap_or_default() as u8;
            let Selection { duel, batch, ticket } = selection;
            let shown: Shown = (duel.first, duel.second, batch, ticket, code);
            outcomes.extend(postcard::to_stdvec(&shown).map_err(value_error)?);
        }
        Ok(())
    }

    /// The ranker to recommend now.
    fn champion(&self) -> PyResult<usize> {
        guarded(|| self.policy.champion())
    }

    /// The policy as bytes, with its random numbers: `restore` goes on where it stands.
    ///
    /// A kind of `policy_kinds("comparator")` keeps its outcomes for this, some five bytes each, and
    /// `restore` observes them again.
    #[pyo3(name = "save")]
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.save()?))
    }

    /// The policy that `save` gave.
    #[staticmethod]
    #[pyo3(name = "restore")]
    fn from_bytes(state: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::restore(bytes("state", state)?)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
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

    /// The number of outcomes so far, those of self-duels and None included.
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

/// One outcome that a comparator observed: the selection, and the outcome as its place in [`CODES`].
type Shown = (usize, usize, Option<u32>, u64, u8);

const CODES: [Outcome; 4] = [Outcome::None, Outcome::First, Outcome::Second, Outcome::Half];

/// The state of a policy, in the layout of its kind.
#[derive(Serialize, Deserialize)]
pub enum PolicyState {
    Served { format: u32, run: Box<SavedRun> },
    Comparator { outcomes: Vec<u8> },
}

impl Saved for Policy {
    const CLASS: &'static str = "Policy";
    type State = (String, usize, u64, PolicyRng, PolicyState);

    fn state(&self) -> Self::State {
        let state = match (self.policy.run(), Spec::from_text(&self.spec)) {
            (Some(run), Ok(Spec::Served(spec))) => {
                PolicyState::Served { format: spec.format(), run: Box::new(run.saved()) }
            }
            _ => PolicyState::Comparator { outcomes: self.outcomes.clone().unwrap_or_default() },
        };
        (self.spec.clone(), self.rankers(), self.seed, self.rng.clone(), state)
    }

    fn of_state((spec, rankers, seed, rng, state): Self::State) -> Option<Self> {
        let read = Spec::from_text(&spec).ok()?;
        (MIN_RANKERS..=MAX_RANKERS).contains(&rankers).then_some(())?;
        read.validate(rankers).ok()?;
        let setup = Setup { rankers, seed };
        let mut policy = guarded(|| read.start(setup)).ok()?;
        match (state, &read) {
            (PolicyState::Served { format, run }, Spec::Served(served)) => {
                (format == served.format()).then_some(())?;
                let target = policy.run()?.verdict().target();
                let restored =
                    guarded(|| Run::restore((served, setup), target, Roster::new(rankers), *run));
                let policy = Box::new(restored.ok()??);
                Some(Self { spec, seed, policy, rng, outcomes: None })
            }
            (PolicyState::Comparator { outcomes }, Spec::Comparator(_)) => {
                let mut rest = &outcomes[..];
                while !rest.is_empty() {
                    let (shown, next) = postcard::take_from_bytes::<Shown>(rest).ok()?;
                    let (first, second, batch, ticket, code) = shown;
                    (first.max(second) < rankers).then_some(())?;
                    let selection = Selection { batch, ticket, ..Selection::of(first, second) };
                    let outcome = *CODES.get(usize::from(code))?;
                    guarded(|| policy.observe_shown(selection, outcome)).ok()?;
                    rest = next;
                }
                Some(Self { spec, seed, policy, rng, outcomes: Some(outcomes) })
            }
            _ => None,
        }
    }
}

/// A certified winner. It is wrong in at most a share 1 - confidence of experiments, whenever
/// somebody looks.
#[pyclass(frozen, eq, get_all, module = "dueling_bandits")]
#[derive(Clone, PartialEq, Serialize, Deserialize)]
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

saved_as_it_is!(Verdict);

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
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        self.reduce(py)
    }

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
pub fn policy_kinds(sort: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<&'static str>> {
    let served = PolicySpec::KINDS.iter().map(|(kind, _)| *kind);
    let comparators = Comparator::KINDS.iter().copied();
    let sort = sort.map(|sort| choice("sort", sort, &["served", "comparator"])).transpose()?;
    Ok(match sort {
        None => served.chain(comparators).collect(),
        Some("served") => served.collect(),
        Some(_) => comparators.collect(),
    })
}

/// The parameters of a kind of policy, by name: what a text such as "ccb:alpha=0.6" may give.
///
/// Each has its "default" (None: it must be given; a text where it depends on other parameters) and
/// its "meaning", which is None for a comparator: its paper has it.
#[pyfunction]
pub fn policy_parameters<'py>(
    py: Python<'py>,
    kind: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let kind = choice("kind", kind, &policy_kinds(None)?)?;
    let parameters = PyDict::new(py);
    let add = |name: &str, default: Option<&str>, meaning: Option<&str>| {
        let parameter = PyDict::new(py);
        let number = default.and_then(|text| text.parse::<f64>().ok());
        match default {
            Some("true") => parameter.set_item("default", true)?,
            Some("false") => parameter.set_item("default", false)?,
            _ if number.is_some() => parameter.set_item("default", number)?,
            _ => parameter.set_item("default", default)?,
        }
        parameter.set_item("meaning", meaning)?;
        parameters.set_item(name, parameter)
    };
    if let Some((_, description)) = PolicySpec::KINDS.iter().find(|(known, _)| *known == kind) {
        for it in description.parameters {
            add(it.name, it.default, Some(it.meaning))?;
        }
    }
    for (name, default) in Comparator::defaults(kind).into_iter().flatten() {
        let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        let is_required = name == "horizon" && text == "0";
        add(&name, (!is_required).then_some(text.as_str()), None)?;
    }
    Ok(parameters)
}
