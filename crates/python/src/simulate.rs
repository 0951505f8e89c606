//! Many runs of many policies on all cores, with the numbers of `lab simulate`.
//!
//! Threads run the policies of this crate without the lock of the interpreter. The calling thread
//! runs the policies that are written in Python, and meanwhile reports progress and honours Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use comparators::{RunSeeds, Spec, fingerprint};
use dueling_bandits::preference::{self, Regret};
use dueling_bandits::{Bandit, Duel, InFlight, Outcome, PolicyRng, Selection, Setup};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods};
use pyo3::prelude::*;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rayon::iter::{ParallelBridge, ParallelIterator};

use crate::matrix::PreferenceMatrix;
use crate::policy::DuelArgument;
use crate::{guarded, value_error};

/// Steps between two looks at the rest of the simulation.
const STEPS_PER_LOOK: u64 = 256;
/// Time between two reports of the progress, and between two checks for Ctrl-C.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A policy in a run.
trait Player {
    fn select(&mut self, rng: &mut PolicyRng) -> PyResult<Selection>;
    fn observe(&mut self, selection: Selection, outcome: Outcome) -> PyResult<()>;
    fn champion(&self) -> PyResult<usize>;
    /// The certified winner, and the comparisons that it took.
    fn verdict(&self) -> Option<(usize, u64)> {
        None
    }
    /// Some steps were done. Returns whether to go on.
    fn pause(&mut self, steps: u64) -> PyResult<bool>;
}

/// A policy of this workspace.
struct Native<'a> {
    policy: Box<dyn Bandit>,
    in_flight: InFlight,
    progress: &'a Progress,
}

impl Player for Native<'_> {
    fn select(&mut self, rng: &mut PolicyRng) -> PyResult<Selection> {
        Ok(self.policy.select(&self.in_flight, rng))
    }

    fn observe(&mut self, selection: Selection, outcome: Outcome) -> PyResult<()> {
        self.policy.observe_shown(selection, outcome);
        Ok(())
    }

    fn champion(&self) -> PyResult<usize> {
        Ok(self.policy.champion())
    }

    fn verdict(&self) -> Option<(usize, u64)> {
        let verdict = self.policy.run()?.verdict().verdict()?;
        Some((verdict.winner(), verdict.comparisons))
    }

    fn pause(&mut self, steps: u64) -> PyResult<bool> {
        Ok(self.progress.advance(steps))
    }
}

/// A policy that is written in Python: an object with `select`, `observe` and `champion`.
struct Foreign<'py, 'a, 'b> {
    policy: Bound<'py, PyAny>,
    rankers: usize,
    /// The object that `select` returned last; `observe` gets it back.
    selected: Option<Bound<'py, PyAny>>,
    watcher: &'b mut Watcher<'py, 'a>,
}

impl Player for Foreign<'_, '_, '_> {
    fn select(&mut self, _rng: &mut PolicyRng) -> PyResult<Selection> {
        let selected = self.policy.call_method0("select")?;
        let selection = selected.extract::<DuelArgument<'_>>()?.of(self.rankers)?;
        self.selected = Some(selected);
        Ok(selection)
    }

    fn observe(&mut self, selection: Selection, outcome: Outcome) -> PyResult<()> {
        let share = match outcome {
            _ if selection.duel.is_self() => None,
            Outcome::First => Some(1.0),
            _ => Some(0.0),
        };
        self.policy.call_method1("observe", (self.selected.take(), share))?;
        Ok(())
    }

    fn champion(&self) -> PyResult<usize> {
        let champion: usize = self.policy.call_method0("champion")?.extract()?;
        crate::check_pair((champion, champion), self.rankers)?;
        Ok(champion)
    }

    fn pause(&mut self, steps: u64) -> PyResult<bool> {
        self.watcher.look()?;
        Ok(self.watcher.progress.advance(steps))
    }
}

/// The steps done so far by all threads, and whether they are to stop.
#[derive(Default)]
struct Progress {
    steps: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    /// Count steps. Returns whether to go on.
    fn advance(&self, steps: u64) -> bool {
        self.steps.fetch_add(steps, Ordering::Relaxed);
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// The thread that Python called: it reports progress and notices Ctrl-C.
struct Watcher<'py, 'a> {
    py: Python<'py>,
    progress: &'a Progress,
    callback: Option<Bound<'py, PyAny>>,
    total: u64,
    last: Instant,
}

impl Watcher<'_, '_> {
    /// An error if Ctrl-C was pressed, or if the callback raises one.
    fn look(&mut self) -> PyResult<()> {
        if self.last.elapsed() >= REPORT_EVERY {
            self.last = Instant::now();
            self.py.check_signals()?;
            self.report()?;
        }
        Ok(())
    }

    fn report(&self) -> PyResult<()> {
        if let Some(callback) = &self.callback {
            callback.call1((self.progress.steps.load(Ordering::Relaxed), self.total))?;
        }
        Ok(())
    }
}

/// The simulation without its policies.
struct Plan {
    matrix: Arc<preference::PreferenceMatrix>,
    fingerprint: [u8; 32],
    regret: Regret,
    /// The steps at which regret is recorded, ascending; the last one is the horizon.
    checkpoints: Vec<u64>,
    seed: u64,
    shuffle: bool,
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

impl Plan {
    /// Run number `number` of the player; `None` if it was stopped.
    fn run<P: Player>(
        &self,
        number: u64,
        start: impl FnOnce(Setup) -> PyResult<P>,
    ) -> PyResult<Option<Record>> {
        let rankers = self.matrix.rankers();
        let seeds = RunSeeds::new(self.seed, &self.fingerprint, number);
        let mut names: Vec<usize> = (0..rankers).collect();
        if self.shuffle {
            names.shuffle(&mut PolicyRng::seed_from_u64(seeds.shuffling));
        }
        let mut searchers = PolicyRng::seed_from_u64(seeds.answering);
        let mut selecting = PolicyRng::seed_from_u64(seeds.selecting);
        let mut player = start(Setup { rankers, seed: seeds.folding })?;
        let mut appearances = vec![0; rankers];
        let mut weak_regret = 0.0;
        let mut regrets = Vec::with_capacity(self.checkpoints.len());
        let mut step = 0;
        for &checkpoint in &self.checkpoints {
            while step < checkpoint {
                let before = step;
                let pause = checkpoint.min(step + STEPS_PER_LOOK);
                while step < pause {
                    step += 1;
                    let selection = player.select(&mut selecting)?;
                    let Duel { first, second } = selection.duel;
                    let (first, second) = (names[first], names[second]);
                    appearances[first] += 1;
                    appearances[second] += 1;
                    if self.regret.is_weak() {
                        weak_regret += self.regret.of_step(first, second);
                    }
                    let outcome = if first == second {
                        Outcome::None
                    } else if searchers.random::<f64>() < self.matrix.win_probability(first, second)
                    {
                        Outcome::First
                    } else {
                        Outcome::Second
                    };
                    player.observe(selection, outcome)?;
                }
                if !player.pause(step - before)? {
                    return Ok(None);
                }
            }
            regrets.push(match self.regret.is_weak() {
                true => weak_regret,
                false => self.regret.of_appearances(&appearances),
            });
        }
        let champion = names[player.champion()?];
        let verdict = player.verdict().map(|(winner, comparisons)| (names[winner], comparisons));
        Ok(Some(Record { regrets, appearances, champion, verdict }))
    }

    /// A run of a policy of this workspace.
    fn native(&self, spec: &Spec, number: u64, progress: &Progress) -> PyResult<Option<Record>> {
        let start =
            |setup| Ok(Native { policy: spec.start(setup), in_flight: InFlight::new(), progress });
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
            Ok(Foreign { policy, rankers: setup.rankers, selected: None, watcher })
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
        let text: String = policy.extract()?;
        let fallbacks = [("horizon", horizon.into())];
        let spec = Spec::from_text_with(&text, &fallbacks).map_err(value_error)?;
        spec.validate(rankers).map_err(value_error)?;
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
/// function.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the arguments of the Python function")]
pub fn simulate<'py>(
    py: Python<'py>,
    matrix: &PreferenceMatrix,
    policies: Vec<Bound<'py, PyAny>>,
    checkpoints: Vec<u64>,
    runs: u64,
    seed: u64,
    threads: usize,
    regret: &str,
    shuffle: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Arrays<'py>> {
    let horizon = checkpoints.last().copied().unwrap_or(0);
    let ascend = checkpoints.windows(2).all(|pair| pair[0] < pair[1]);
    if horizon == 0 || !ascend || checkpoints[0] == 0 || runs == 0 || policies.is_empty() {
        let message = "at least one policy, one run and one step are needed, and checkpoints that \
                       ascend from 1 to the horizon";
        return Err(value_error(message));
    }
    let rankers = matrix.0.rankers();
    let plan = Plan {
        matrix: matrix.0.clone(),
        fingerprint: fingerprint(&matrix.0),
        regret: matrix.regret_of(regret)?,
        checkpoints,
        seed,
        shuffle,
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

/// All runs. The result has one record for each, in any order.
fn run_all<'py>(
    plan: &Plan,
    entrants: &[Entrant<'py>],
    runs: u64,
    threads: usize,
    mut watcher: Watcher<'py, '_>,
) -> PyResult<Jobs> {
    let specs: Vec<(usize, &Spec)> = entrants
        .iter()
        .enumerate()
        .filter_map(|(index, entrant)| match entrant {
            Entrant::Native(spec) => Some((index, &**spec)),
            Entrant::Foreign(_) => None,
        })
        .collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(value_error)?;
    let (progress, caller) = (watcher.progress, std::thread::current());
    std::thread::scope(|scope| {
        let native = scope.spawn(|| {
            let jobs = (0..runs).flat_map(|number| specs.iter().map(move |spec| (spec, number)));
            let records: Jobs = pool.install(|| {
                let open = jobs.par_bridge().filter(|_| !progress.is_stopped());
                open.map(|(&(index, spec), number)| {
                    let record = plan.native(spec, number, progress);
                    if record.is_err() {
                        progress.stopped.store(true, Ordering::Relaxed);
                    }
                    ((index, number), record)
                })
                .collect()
            });
            caller.unpark();
            records
        });
        let mut foreign = || -> PyResult<Jobs> {
            let mut records = Vec::new();
            for number in 0..runs {
                for (index, entrant) in entrants.iter().enumerate() {
                    let Entrant::Foreign(factory) = entrant else { continue };
                    let record = plan.foreign(factory, number, &mut watcher)?;
                    records.push(((index, number), Ok(record)));
                }
            }
            while !native.is_finished() {
                watcher.py.detach(|| std::thread::park_timeout(REPORT_EVERY / 4));
                watcher.look()?;
            }
            watcher.py.check_signals()?;
            watcher.report()?;
            Ok(records)
        };
        let foreign = foreign();
        if foreign.is_err() {
            progress.stopped.store(true, Ordering::Relaxed);
        }
        let native = watcher.py.detach(|| native.join());
        let mut records = foreign?;
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
