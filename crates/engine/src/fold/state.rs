//! The state that a log folds to.

use serde::{Deserialize, Serialize};

use super::methods::{Methods, as_json};
use super::{orders, values};
use crate::cohorts::SLACK_MS;
use crate::experiment_spec::{ConcludeAt, ExperimentSpec, OnDrift};
use crate::fold::counts::Counts;
use crate::fold::excluded::ExcludedUnits;
use crate::fold::open_pages::OpenPages;
use crate::fold::page_counts::PageCounts;
use crate::lifecycle::Lifecycle;
use dueling_bandits::claims::alone::AlonePages;
use dueling_bandits::claims::control::ControlClaims;
use dueling_bandits::claims::guardrails::{Guardrails, Kind};
use dueling_bandits::evidence::{HeavyUnits, History, Verdict};
use dueling_bandits::orders::Baskets;
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use rankduel_store::audience::Segment;

/// Layout of a saved fold without the policy's part. Together with the layout of the policy it is
/// the `format` of a snapshot.
const FORMAT: u32 = 1;

/// About the bytes of the counts over time, for each ranker.
const RANKER_BYTES: usize = 1024;
/// About the bytes of all counts and of the policy, for each ordered pair of rankers.
const PAIR_BYTES: usize = 39;

/// Largest log position and largest version. JSON readers lose digits of larger numbers, and no
/// experiment gets that far.
pub const MAX_POSITION: u64 = 1 << 53;

/// A claim that is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecidedClaim {
    /// Its name in logs, metrics and answers.
    pub claim: &'static str,
    /// The ranker that it is about.
    pub ranker: usize,
    /// The segment that it is about; `None` for all traffic.
    pub segment: Option<Segment>,
    /// Number of the metric that it is about, and the kind of its limit.
    pub metric: Option<(usize, Kind)>,
}

impl DecidedClaim {
    fn new(claim: &'static str, ranker: usize) -> Self {
        Self { claim, ranker, segment: None, metric: None }
    }
}

/// The state of an experiment at a log position.
#[derive(Debug)]
pub struct Fold {
    pub(super) state: State,
    pub(super) seed: u64,
    /// The policy, the rankers, and the verdict on the answers.
    pub(super) run: Run,
    /// The ranker that takes no part in the tournament: the second id of a canary.
    pub(super) held_out: Option<usize>,
}

/// The state of an experiment beside its run. It is saved as it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct State {
    /// Of the newest folded entry.
    pub position: u64,
    /// The spec after the changes so far.
    #[serde(with = "as_json")]
    pub spec: ExperimentSpec,
    /// The status, the winner and the archive after the changes so far.
    pub lifecycle: Lifecycle,
    /// How often the record was changed, from 1 for its creation.
    pub version: u64,
    /// How many rankers the experiment was created with.
    pub initial_rankers: usize,
    /// How often a control was named after the creation.
    pub controls: usize,
    /// Position of the newest change of the status; 0 before the first.
    pub status_since: u64,
    /// The appearances of each ranker on pages up to then; empty before the first change.
    pub shown_before_status: Vec<u64>,
    /// Raw counts.
    pub counts: Counts,
    /// The counts over time.
    pub history: History,
    /// Why the service concluded the experiment by itself, if it ever did; empty if a person has
    /// changed its status since.
    pub concluded_by_itself: Option<String>,
    /// Unix milliseconds at which the newest entry was recorded; before the first entry, those of
    /// the creation.
    pub recorded_at: i64,
    /// The batches of a policy that has some.
    pub batches: BatchTimes,
    /// The interleaving methods.
    pub methods: Methods,
    /// Duels that have clicks and are not settled.
    pub open_pages: OpenPages,
    /// Counts of settled pages.
    pub page_counts: PageCounts,
    /// The units that answer most.
    pub heavy_units: HeavyUnits,
    /// The units whose answers do not count.
    pub excluded: ExcludedUnits,
    /// The units that see one ranker alone; `None` if the experiment has none.
    pub alone: Option<Box<AlonePages>>,
    /// The claims about metrics; `None` without metrics.
    pub guardrails: Option<Box<Guardrails>>,
    /// Clicks and orders of units; `None` where clicks decide. It is saved behind the rest.
    #[serde(skip)]
    pub baskets: Option<Box<Baskets>>,
}

/// Facts about batches that the log has beside the policy's state.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct BatchTimes {
    /// Unix milliseconds at which the open batch opened: when the entry that closed the previous
    /// batch was recorded.
    pub opened_at: i64,
    /// Unix milliseconds at which the entry was recorded that last answered a comparison of the
    /// open batch, opened it, or set the experiment running.
    pub moved_at: i64,
    /// The highest batch that results were posted for; 0 if none.
    pub posted: u32,
    /// The highest batch that was posted as a whole; 0 if none.
    pub posted_whole: u32,
}

impl State {
    /// Whether an alarm about drift starts the verdict again. After the conclusion it does not:
    /// only the winner is compared with one other ranker then, and the answer is of interest
    /// still.
    pub(super) fn restarts_on_drift(&self) -> bool {
        self.spec.drift == OnDrift::Restart && !self.lifecycle.is_concluded()
    }

    /// How often a ranker was added or retired after the creation.
    pub fn roster_changes(&self) -> usize {
        let spec = &self.spec;
        spec.rankers.len() - self.initial_rankers + spec.retired.len()
    }
}

impl Fold {
    /// The state before the first log entry.
    pub fn start(spec: &ExperimentSpec, seed: u64, created_at: i64) -> Self {
        let rankers = spec.rankers.len();
        let policy = spec.policy.start(Setup { rankers, seed });
        let mut run = Run::new(policy, spec.targets(), spec.answer_window_ms());
        if spec.drift != OnDrift::Off {
            run.look_for_drift();
        }
        // a policy that cannot hold it out is not allowed
        let held_out = spec.held_out().filter(|&ranker| run.hold_out(ranker).is_ok());
        run.start_with_segments(spec.segments.len());
        if let Some(control) = spec.control_index() {
            run.start_with_control(control, spec.goal);
        }
        let state = State {
            position: 0,
            spec: ExperimentSpec { exclusions: Vec::new(), ..spec.clone() },
            lifecycle: Lifecycle::NEW,
            version: 1,
            initial_rankers: rankers,
            controls: 0,
            status_since: 0,
            shown_before_status: Vec::new(),
            counts: Counts::new(rankers),
            history: History::new(rankers),
            concluded_by_itself: None,
            recorded_at: created_at,
            batches: BatchTimes {
                opened_at: created_at,
                moved_at: created_at,
                posted: 0,
                posted_whole: 0,
            },
            methods: Methods::new(spec.pages.interleaving),
            open_pages: OpenPages::default(),
            page_counts: PageCounts::default(),
            heavy_units: HeavyUnits::default(),
            excluded: ExcludedUnits::of(spec),
            alone: (spec.alone > 0.0).then(Box::default),
            guardrails: values::start(spec, seed).map(Box::new),
            baskets: orders::start(spec, seed),
        };
        Self::with(seed, run, state, held_out)
    }

    pub(super) fn with(seed: u64, run: Run, state: State, held_out: Option<usize>) -> Self {
        let mut fold = Self { state, seed, run, held_out };
        fold.run.restart_on_drift(fold.state.restarts_on_drift());
        fold
    }

    /// The state that follows from the entries alone, beside the run.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The policy, the rankers, the verdict and the claims.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Number of the layout that [`Fold::save`] writes.
    pub fn format(&self) -> u32 {
        Self::format_of(&self.state.spec)
    }

    /// Number of the layout of an experiment with this spec.
    pub fn format_of(spec: &ExperimentSpec) -> u32 {
        FORMAT << 16 | spec.policy.format()
    }

    /// Estimated bytes in memory: those of the counts, the clicks of unsettled duels, and what the
    /// verdict and the claims keep.
    pub fn bytes(&self) -> usize {
        let rankers = self.run.roster().rankers();
        let alone = self.state.alone.as_deref().map_or(0, AlonePages::bytes);
        let kept = self.state.open_pages.bytes() + self.run.bytes() + self.state.excluded.bytes();
        let guardrails = self.state.guardrails.as_deref().map_or(0, Guardrails::bytes);
        let counts = RANKER_BYTES * rankers + PAIR_BYTES * rankers * rankers;
        let baskets = self.state.baskets.as_deref().map_or(0, Baskets::bytes);
        counts + kept + alone + guardrails + baskets
    }

    /// The verdict, once the experiment may conclude on it: the claims of the winner that `at` waits
    /// for are settled.
    pub fn settled_verdict(&self, at: &ConcludeAt) -> Option<&Verdict> {
        self.run.verdict().verdict().filter(|verdict| {
            let winner = verdict.winner();
            let is_settled = |claims: &ControlClaims| {
                self.run.next_control().is_none() && claims.is_settled(winner)
            };
            (!at.control || self.run.claims().is_none_or(is_settled))
                && (!at.segments || self.run.segments().is_none_or(|it| it.is_settled(winner)))
        })
    }

    /// The claims that are proven, apart from drift.
    pub fn decided_claims(&self) -> Vec<DecidedClaim> {
        let best = self.run.verdict().verdict().map(|it| DecidedClaim::new("best", it.winner()));
        let of_control = self.run.claims().into_iter().flat_map(ControlClaims::decided);
        let of_control = of_control.map(|(ranker, it, _)| DecidedClaim::new(it.name(), ranker));
        let mut decided: Vec<_> = best.into_iter().chain(of_control).collect();
        if let Some((held, ranker)) = self.run.segments().and_then(|it| Some((it, it.winner()?))) {
            decided.extend(held.hurt_segments().map(|place| DecidedClaim {
                segment: self.state.spec.segments.get(place).copied(),
                ..DecidedClaim::new("hurt", ranker)
            }));
            decided.extend(held.unhurt_after().map(|_| DecidedClaim::new("unhurt", ranker)));
        }
        let of_metrics = self.state.guardrails.as_deref().into_iter().flat_map(Guardrails::decided);
        decided.extend(of_metrics.map(|it| DecidedClaim {
            metric: Some((it.metric, it.kind)),
            ..DecidedClaim::new(it.side.name(), it.ranker)
        }));
        decided
    }

    /// The time from which on duels must be issued to count, if it is later than any right clock
    /// sets it: a clock was ahead. Duels that are issued now have this time of issue. They wait
    /// until the clock gets there; with their own time, they would come too late until then.
    pub fn time_ahead_of(&self, now: i64) -> Option<i64> {
        let cohorts = self.run.cohorts();
        let pages = self
            .state
            .guardrails
            .as_deref()
            .map_or(i64::MIN, |guardrails| guardrails.complete_until());
        let from = cohorts.complete_until().max(pages);
        // a change of the roster sets it to the end of a cohort
        (from > now + cohorts.width_ms() + SLACK_MS).then_some(from)
    }
}
