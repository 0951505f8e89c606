//! Many runs of many policies on all cores, with the numbers of `lab simulate`.
//!
//! Threads run the policies of this crate without the lock of the interpreter. The calling thread
//! runs the policies that are written in Python, and meanwhile reports progress and honours Ctrl-C.

use std::sync::Arc;
use std::time::Instant;

use comparators::environment::Environment;
use comparators::feedback::{Delay, Feedback, Outstanding};
use comparators::{RunSeeds, Spec, fingerprint};
use dueling_bandits::preference::{self, Regret};
use dueling_bandits::tally::MAX_STEPS;
use dueling_bandits::{Answer, Outcome, PolicyRng, Selection, Setup, TieRule};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use rand::SeedableRng;
use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::arguments::{Argument, choice, flag, probability, refused, text, whole};
use crate::matrix::PreferenceMatrix;
use crate::players::{Foreign, Native, Player, Progress, REPORT_EVERY, Watcher};
use crate::{guarded, value_error};

/// Steps between two looks at the rest of the simulation.
const STEPS_PER_LOOK: u64 = 256;
/// Most threads. More than a machine has cores help nobody.
const MAX_THREADS: u64 = 1024;

/// The simulation without its policies.
struct Plan {
    matrix: Arc<preference::PreferenceMatrix>,
    fingerprint: [u8; 32],
    regret: Regret,
    /// The steps at which regret is recorded, ascending; the last one is the horizon.
    checkpoints: Vec<u64>,
    seed: u64,
    shuffle: bool,
    feedback: Feedback,
}

/// The result of one run.
struct Record {
    /// Cumulative regret at each checkpoint.
    regrets: Vec<f64>,
    /// How often each ranker was shown.
    appearances: Vec<u64>,
    champion: usize,
    verdict: Option<(usize, u64)>,
}

/// A duel that waits for its outcome.
type Pending<P> = (Selection, <P as Player>::Token, Answer);

impl Plan {
    /// Run number `number` of the player; `None` if it was stopped.
    fn run<P: Player>(
        &self,
        number: u64,
        start: impl FnOnce(Setup) -> PyResult<P>,
    ) -> PyResult<Option<Record>> {
        let rankers = self.matrix.rankers();
        let seeds = RunSeeds::new(self.seed, &self.fingerprint, number);
        let mut searchers = match self.shuffle {
            true => Environment::shuffled(&self.matrix, &self.feedback, seeds),
            false => Environment::new(&self.matrix, &self.feedback, seeds),
        };
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let mut player = start(Setup { rankers, seed: seeds.folding })?;
        let mut outstanding = Outstanding::new(&self.feedback);
        let resolve = |player: &P, answer: Answer| {
            self.feedback.tie_rule.resolve(answer, seeds.folding, player.steps())
        };
        let mut appearances = vec![0; rankers];
        let mut weak_regret = 0.0;
        let mut regrets = Vec::with_capacity(self.checkpoints.len());
        let mut step = 0;
        for &checkpoint in &self.checkpoints {
            while step < checkpoint {
                let before = step;
                let pause = checkpoint.min(step + STEPS_PER_LOOK);
                while step < pause {
                    if !player.goes_on() {
                        return Ok(None);
                    }
                    step += 1;
                    let (selection, token) = player.select(&mut selecting)?;
                    let duel = selection.duel;
                    let (first, second) = (searchers.name(duel.first), searchers.name(duel.second));
                    appearances[first] += 1;
                    appearances[second] += 1;
                    if self.regret.is_weak() {
                        weak_regret += self.regret.of_step(first, second);
                    }
                    if duel.is_self() {
                        player.observe(selection, token, Outcome::None)?;
                    } else if let Some(answer) = searchers.answer(duel) {
                        if self.feedback.delay == Delay::Steps(0) {
                            player.observe(selection, token, resolve(&player, answer))?;
                            continue;
                        }
                        player.issued(duel);
                        let pending: Pending<P> = (selection, token, answer);
                        outstanding.add(step, pending, &mut searchers.rng);
                    }
                    while let Some((selection, token, answer)) =
                        outstanding.next(step, &mut searchers.rng)
                    {
                        player.received(selection, token, resolve(&player, answer))?;
                    }
                }
                player.pause(step - before)?;
            }
            regrets.push(match self.regret.is_weak() {
                true => weak_regret,
                false => self.regret.of_appearances(&appearances),
            });
        }
        let champion = searchers.name(player.champion()?);
        let verdict = player.verdict();
        let verdict = verdict.map(|(winner, comparisons)| (searchers.name(winner), comparisons));
        Ok(Some(Record { regrets, appearances, champion, verdict }))
    }

    /// A run of a policy of this workspace.
    fn native(&self, spec: &Spec, number: u64, progress: &Progress) -> PyResult<Option<Record>> {
        let start = |setup| Ok(Native::new(spec.start(setup), progress));
        guarded(|| self.run(number, start))?
    }

    /// A run of a policy that `factory(rankers, seed)` makes.
    fn foreign<'py>(
        &self,
        factory: &Bound<'py, PyAny>,
        number: u64,
        watcher: &mut Watcher<'py, '_>,
    ) -> PyResult<Option<Record>> {
        self.run(number, |setup| {
            let policy = factory.call1((setup.rankers, setup.seed))?;
            Ok(Foreign::new(policy, setup.rankers, watcher))
        })
    }
}

/// A policy to simulate.
enum Entrant<'py> {
    Native(Box<Spec>),
    Foreign(Bound<'py, PyAny>),
}

impl<'py> Entrant<'py> {
    fn read(policy: Bound<'py, PyAny>, horizon: u64, rankers: usize) -> PyResult<Self> {
        if policy.is_callable() {
            return Ok(Self::Foreign(policy));
        }
        let Ok(text) = policy.extract::<String>() else {
            return Err(refused("policies", &policy, "texts, and callables that make a policy"));
        };
        let wrong = |error| value_error(format!("`policies`: {error}"));
        let fallbacks = [("horizon", horizon.into())];
        let spec = Spec::from_text_with(&text, &fallbacks).map_err(wrong)?;
        spec.validate(rankers).map_err(wrong)?;
        Ok(Self::Native(Box::new(spec)))
    }
}

type Jobs = Vec<((usize, u64), PyResult<Option<Record>>)>;

/// Cumulative regret (policy × run × checkpoint), appearances (policy × run × ranker), champions,
/// winners by verdict (-1 for none) and comparisons until it (policy × run each).
type Arrays<'py> = (
    Bound<'py, PyArray3<f64>>,
    Bound<'py, PyArray3<i64>>,
    Bound<'py, PyArray2<i64>>,
    Bound<'py, PyArray2<i64>>,
    Bound<'py, PyArray2<i64>>,
);

/// Simulate policies: texts, or callables that make one. `dueling_bandits.simulate` is the public
/// function, and has checked the checkpoints, which ascend from 1 or more.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of the Python function")]
pub fn simulate<'py>(
    py: Python<'py>,
    matrix: &PreferenceMatrix,
    policies: Vec<Bound<'py, PyAny>>,
    checkpoints: Vec<u64>,
    runs: &Bound<'py, PyAny>,
    seed: &Bound<'py, PyAny>,
    threads: &Bound<'py, PyAny>,
    regret: Bound<'py, PyAny>,
    shuffle: &Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
    feedback: &Bound<'py, PyDict>,
) -> PyResult<Arrays<'py>> {
    let horizon = checkpoints.last().copied().unwrap_or(0);
    if policies.is_empty() {
        return Err(value_error("`policies` is empty; give at least one policy"));
    }
    let runs = whole("runs", runs, 1..=MAX_STEPS)?;
    let threads = whole("threads", threads, 0..=MAX_THREADS)? as usize;
    if let Some(progress) = progress.as_ref().filter(|progress| !progress.is_callable()) {
        return Err(refused("progress", progress, "True, False or a callable"));
    }
    let rankers = matrix.matrix.rankers();
    let plan = Plan {
        matrix: matrix.matrix.clone(),
        fingerprint: fingerprint(&matrix.matrix),
        regret: matrix.regret_of("regret", Argument::Given(regret))?,
        checkpoints,
        seed: whole("seed", seed, 0..=u64::MAX)?,
        shuffle: flag("shuffle", shuffle)?,
        feedback: feedback_of(feedback)?,
    };
    let entrants = policies
        .into_iter()
        .map(|policy| Entrant::read(policy, horizon, rankers))
        .collect::<PyResult<Vec<_>>>()?;
    let total = horizon.saturating_mul(runs).saturating_mul(entrants.len() as u64);
    let done = Progress::default();
    let watcher = Watcher { py, progress: &done, callback: progress, total, last: Instant::now() };
    let mut records = run_all(&plan, &entrants, runs, threads, watcher)?;
    // threads finish in any order
    records.sort_by_key(|(job, _)| *job);
    let records = records.into_iter().map(|(_, record)| record).collect::<PyResult<Vec<_>>>()?;
    let records: Vec<Record> = records.into_iter().flatten().collect();
    arrays(py, &records, [entrants.len(), runs as usize])
}

/// How answers reach the policies, from the arguments `delay`, `ties`, `tie_rule` and `no_click`.
fn feedback_of(arguments: &Bound<'_, PyDict>) -> PyResult<Feedback> {
    let mut feedback = Feedback::default();
    for (name, value) in arguments {
        match name.extract::<String>()?.as_str() {
            "ties" => feedback.ties = probability("ties", &value)?,
            "no_click" => feedback.no_click = probability("no_click", &value)?,
            "tie_rule" => {
                feedback.tie_rule = match choice("tie_rule", &value, &["skip", "half", "coin"])? {
                    "half" => TieRule::Half,
                    "coin" => TieRule::Coin,
                    _ => TieRule::Skip,
                }
            }
            _ => feedback.delay = delay_of(&value)?,
        }
    }
    Ok(feedback)
}

fn delay_of(value: &Bound<'_, PyAny>) -> PyResult<Delay> {
    let given = match value.is_instance_of::<PyString>() {
        true => text("delay", value)?,
        false => {
            whole("delay", value, 0..=u64::MAX).map(|steps| steps.to_string()).unwrap_or_default()
        }
    };
    given.parse().map_err(|_: String| {
        refused("delay", value, "a number of steps from 0 to 1000000, or geometric:MEAN")
    })
}

/// All runs. The result has one record for each, in any order.
fn run_all<'py>(
    plan: &Plan,
    entrants: &[Entrant<'py>],
    runs: u64,
    threads: usize,
    mut watcher: Watcher<'py, '_>,
) -> PyResult<Jobs> {
    let (mut specs, mut foreign) = (Vec::new(), Vec::new());
    for (index, entrant) in entrants.iter().enumerate() {
        match entrant {
            Entrant::Native(spec) => specs.push((index, &**spec)),
            Entrant::Foreign(factory) => foreign.push((index, factory)),
        }
    }
    // without a policy there is nothing to do in the runs, however many they are
    let runs_of = |policies: usize| if policies == 0 { 0 } else { runs };
    let (native_runs, foreign_runs) = (runs_of(specs.len()), runs_of(foreign.len()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(value_error)?;
    let (progress, caller) = (watcher.progress, std::thread::current());
    std::thread::scope(|scope| {
        let native = scope.spawn(|| {
            let jobs =
                (0..native_runs).flat_map(|number| specs.iter().map(move |spec| (spec, number)));
            // once stopped, the remaining runs are not even counted
            let open = jobs.take_while(|_| !progress.is_stopped());
            let records: Jobs = pool.install(|| {
                open.par_bridge()
                    .map(|(&(index, spec), number)| {
                        let record = plan.native(spec, number, progress);
                        if record.is_err() {
                            progress.stop();
                        }
                        ((index, number), record)
                    })
                    .collect()
            });
            caller.unpark();
            records
        });
        let mut in_python = || -> PyResult<Jobs> {
            let mut records = Vec::new();
            let jobs =
                (0..foreign_runs).flat_map(|number| foreign.iter().map(move |it| (it, number)));
            for (&(index, factory), number) in jobs.take_while(|_| !progress.is_stopped()) {
                let record = plan.foreign(factory, number, &mut watcher)?;
                records.push(((index, number), Ok(record)));
            }
            while !native.is_finished() {
                watcher.py.detach(|| std::thread::park_timeout(REPORT_EVERY / 4));
                watcher.look()?;
            }
            watcher.py.check_signals()?;
            watcher.report()?;
            Ok(records)
        };
        let in_python = in_python();
        if in_python.is_err() {
            progress.stop();
        }
        let native = watcher.py.detach(|| native.join());
        let mut records = in_python?;
        records
            .extend(guarded(|| native.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))?);
        Ok(records)
    })
}

/// The records of all policies, one policy after the other, as arrays.
fn arrays<'py>(
    py: Python<'py>,
    records: &[Record],
    [policies, runs]: [usize; 2],
) -> PyResult<Arrays<'py>> {
    let numbers = |number: fn(&Record) -> i64| {
        PyArray1::from_vec(py, records.iter().map(number).collect()).reshape([policies, runs])
    };
    let regrets: Vec<f64> = records.iter().flat_map(|record| &record.regrets).copied().collect();
    let appearances = records.iter().flat_map(|record| &record.appearances);
    let appearances: Vec<i64> = appearances.map(|&shown| shown as i64).collect();
    let (checkpoints, rankers) = (regrets.len() / records.len(), appearances.len() / records.len());
    Ok((
        PyArray1::from_vec(py, regrets).reshape([policies, runs, checkpoints])?,
        PyArray1::from_vec(py, appearances).reshape([policies, runs, rankers])?,
        numbers(|record| record.champion as i64)?,
        numbers(|record| record.verdict.map_or(-1, |(winner, _)| winner as i64))?,
        numbers(|record| record.verdict.map_or(-1, |(_, comparisons)| comparisons as i64))?,
    ))
}
