//! The policies of a simulation, and the thread that watches them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dueling_bandits::{Bandit, Duel, InFlight, Outcome, PolicyRng, Selection};
use pyo3::prelude::*;

use crate::arguments::ranker;
use crate::duel::pair;

/// Time between two reports of the progress, and between two checks for Ctrl-C.
pub const REPORT_EVERY: Duration = Duration::from_millis(100);

/// A policy in a run.
pub trait Player {
    /// The object that comes with a selection, and goes back with its outcome.
    type Token;

    fn select(&mut self, rng: &mut PolicyRng) -> PyResult<(Selection, Self::Token)>;
    /// A duel was shown, and waits for its outcome.
    fn issued(&mut self, duel: Duel);
    /// The outcome of a duel that waited for it.
    fn received(
        &mut self,
        selection: Selection,
        token: Self::Token,
        outcome: Outcome,
    ) -> PyResult<()>;
    fn observe(
        &mut self,
        selection: Selection,
        token: Self::Token,
        outcome: Outcome,
    ) -> PyResult<()>;
    /// The number of outcomes so far.
    fn steps(&self) -> u64;
    fn champion(&self) -> PyResult<usize>;
    /// The certified winner, and the comparisons that it took.
    fn verdict(&self) -> Option<(usize, u64)> {
        None
    }
    /// Whether to go on.
    fn goes_on(&self) -> bool;
    /// Some steps were done.
    fn pause(&mut self, steps: u64) -> PyResult<()>;
}

/// A policy of this workspace.
pub struct Native<'a> {
    policy: Box<dyn Bandit>,
    in_flight: InFlight,
    progress: &'a Progress,
}

impl<'a> Native<'a> {
    pub fn new(policy: Box<dyn Bandit>, progress: &'a Progress) -> Self {
        Self { policy, in_flight: InFlight::new(), progress }
    }
}

impl Player for Native<'_> {
    type Token = ();

    fn select(&mut self, rng: &mut PolicyRng) -> PyResult<(Selection, ())> {
        Ok((self.policy.select(&self.in_flight, rng), ()))
    }

    fn issued(&mut self, duel: Duel) {
        self.in_flight.add(duel.first, duel.second, 1);
    }

    fn received(&mut self, selection: Selection, (): (), outcome: Outcome) -> PyResult<()> {
        self.in_flight.remove(selection.duel.first, selection.duel.second, 1);
        self.observe(selection, (), outcome)
    }

    fn observe(&mut self, selection: Selection, (): (), outcome: Outcome) -> PyResult<()> {
        self.policy.observe_shown(selection, outcome);
        Ok(())
    }

    fn steps(&self) -> u64 {
        self.policy.tally().steps()
    }

    fn champion(&self) -> PyResult<usize> {
        Ok(self.policy.champion())
    }

    fn verdict(&self) -> Option<(usize, u64)> {
        let verdict = self.policy.run()?.verdict().verdict()?;
        Some((verdict.winner(), verdict.comparisons))
    }

    fn goes_on(&self) -> bool {
        !self.progress.is_stopped()
    }

    fn pause(&mut self, steps: u64) -> PyResult<()> {
        self.progress.advance(steps);
        Ok(())
    }
}

/// A policy that is written in Python: an object with `select`, `observe` and `champion`.
pub struct Foreign<'py, 'a, 'b> {
    policy: Bound<'py, PyAny>,
    rankers: usize,
    steps: u64,
    watcher: &'b mut Watcher<'py, 'a>,
}

impl<'py, 'a, 'b> Foreign<'py, 'a, 'b> {
    pub fn new(
        policy: Bound<'py, PyAny>,
        rankers: usize,
        watcher: &'b mut Watcher<'py, 'a>,
    ) -> Self {
        Self { policy, rankers, steps: 0, watcher }
    }
}

impl<'py> Player for Foreign<'py, '_, '_> {
    /// The object that `select` returned; `observe` gets it back.
    type Token = Bound<'py, PyAny>;

    fn select(&mut self, _rng: &mut PolicyRng) -> PyResult<(Selection, Self::Token)> {
        let selected = self.policy.call_method0("select")?;
        Ok((pair("select()", &selected, self.rankers)?, selected))
    }

    fn issued(&mut self, _duel: Duel) {}

    fn received(
        &mut self,
        selection: Selection,
        token: Self::Token,
        outcome: Outcome,
    ) -> PyResult<()> {
        self.observe(selection, token, outcome)
    }

    fn observe(
        &mut self,
        selection: Selection,
        token: Self::Token,
        outcome: Outcome,
    ) -> PyResult<()> {
        let share = match outcome {
            _ if selection.duel.is_self() => None,
            Outcome::First => Some(1.0),
            Outcome::Second => Some(0.0),
            Outcome::Half => Some(0.5),
            Outcome::Void | Outcome::None => None,
        };
        self.steps += 1;
        self.policy.call_method1("observe", (token, share))?;
        Ok(())
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn champion(&self) -> PyResult<usize> {
        ranker("champion()", &self.policy.call_method0("champion")?, self.rankers)
    }

    fn goes_on(&self) -> bool {
        !self.watcher.progress.is_stopped()
    }

    fn pause(&mut self, steps: u64) -> PyResult<()> {
        self.watcher.progress.advance(steps);
        self.watcher.look()
    }
}

/// The steps done so far by all threads, and whether they are to stop.
#[derive(Default)]
pub struct Progress {
    steps: AtomicU64,
    stopped: AtomicBool,
}

impl Progress {
    fn advance(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// The thread that Python called: it reports progress and notices Ctrl-C.
pub struct Watcher<'py, 'a> {
    pub py: Python<'py>,
    pub progress: &'a Progress,
    pub callback: Option<Bound<'py, PyAny>>,
    pub total: u64,
    pub last: Instant,
}

impl Watcher<'_, '_> {
    /// An error if Ctrl-C was pressed, or if the callback raises one.
    pub fn look(&mut self) -> PyResult<()> {
        if self.last.elapsed() >= REPORT_EVERY {
            self.last = Instant::now();
            self.py.check_signals()?;
            self.report()?;
        }
        Ok(())
    }

    pub fn report(&self) -> PyResult<()> {
        if let Some(callback) = &self.callback {
            callback.call1((self.progress.steps.load(Ordering::Relaxed), self.total))?;
        }
        Ok(())
    }
}
