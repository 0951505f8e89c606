//! The state that a log folds to.

use serde::{Deserialize, Serialize};

use super::methods::{MethodVersion, as_json, method_of};
use super::values;
use crate::cohorts::SLACK_MS;
use crate::experiment_spec::{ConcludeAt, ExperimentSpec, OnDrift};
use crate::fold::counts::Counts;
use crate::fold::excluded::ExcludedUnits;
use crate::fold::open_pages::OpenPages;
use crate::fold::page_counts::PageCounts;
use crate::lifecycle::Lifecycle;
use dueling_bandits::claims::alone::AlonePages;
use dueling_bandits::claims::control::ControlClaims;
use dueling_bandits::claims::drift::Drift;
use dueling_bandits::claims::guardrails::{Guardrails, Kind};
use dueling_bandits::claims::segments::SegmentClaims;
use dueling_bandits::evidence::{Cohorts, HeavyUnits, History, Race, Verdict, VerdictTracker};
use dueling_bandits::parameters::Setup;
use dueling_bandits::run::Run;
use dueling_bandits::{Policy, PolicyRng, Roster, Selection};
use rankduel_store::audience::Segment;
use rankduel_store::events::Status;

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

/// The part of the state that is saved as it is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub position: u64,
    /// The spec after the changes so far.
    #[serde(with = "as_json")]
    pub spec: ExperimentSpec,
    pub lifecycle: Lifecycle,
    /// How often the record was changed, from 1 for its creation.
    pub version: u64,
    /// How many rankers the experiment was created with.
    pub initial_rankers: usize,
    /// How often a control was named after the creation.
    pub controls: usize,
    /// Position of the newest change of the status; 0 before the first.
    pub status_since: u64,
    pub counts: Counts,
    pub history: History,
    /// Why the service concluded the experiment by itself, if it did.
    pub concluded_by_itself: Option<String>,
    /// Unix milliseconds at which the newest entry was recorded.
    pub recorded_at: i64,
    /// The batches of a policy that has some.
    pub batches: BatchTimes,
    /// Version 1 first.
    pub methods: Vec<MethodVersion>,
    pub open_pages: OpenPages,
    pub page_counts: PageCounts,
    pub heavy_units: HeavyUnits,
    pub excluded: ExcludedUnits,
    /// `None` if no unit sees one ranker alone.
    pub alone: Option<Box<AlonePages>>,
    /// `None` without metrics.
    pub guardrails: Option<Box<Guardrails>>,
}

/// Facts about batches that the log has beside the policy's state.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct BatchTimes {
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
            methods: vec![MethodVersion { since: 0, method: spec.pages.interleaving }],
            open_pages: OpenPages::default(),
            page_counts: PageCounts::default(),
            heavy_units: HeavyUnits::default(),
            excluded: ExcludedUnits::of(spec),
            alone: (spec.alone > 0.0).then(Box::default),
            guardrails: values::start(spec, seed).map(Box::new),
        };
        Self::with(seed, run, state, held_out)
    }

    pub(super) fn with(seed: u64, run: Run, state: State, held_out: Option<usize>) -> Self {
        let mut fold = Self { state, seed, run, held_out };
        fold.run.restart_on_drift(fold.restarts_on_drift());
        fold
    }

    /// Whether an alarm about drift starts the verdict again. After the conclusion it does not:
    /// only the winner is compared with one other ranker then, and the answer is of interest
    /// still.
    pub(super) fn restarts_on_drift(&self) -> bool {
        self.state.spec.drift == OnDrift::Restart && !self.is_concluded()
    }

    /// Number of the layout that [`Fold::save`] writes.
    pub fn format(&self) -> u32 {
        Self::format_of(&self.state.spec)
    }

    /// Number of the layout of an experiment with this spec.
    pub fn format_of(spec: &ExperimentSpec) -> u32 {
        FORMAT << 16 | spec.policy.format()
    }

    /// The spec after the changes so far.
    pub fn spec(&self) -> &ExperimentSpec {
        &self.state.spec
    }

    /// The status, the winner and the archive after the changes so far.
    pub fn lifecycle(&self) -> Lifecycle {
        self.state.lifecycle
    }

    /// The version of the record after the changes so far.
    pub fn version(&self) -> u64 {
        self.state.version
    }

    /// How often a control was named after the creation.
    pub fn controls(&self) -> usize {
        self.state.controls
    }

    /// Estimated bytes in memory: those of the counts, the clicks of unsettled duels, and what the
    /// verdict and the claims keep.
    pub fn bytes(&self) -> usize {
        let rankers = self.roster().rankers();
        let alone = self.alone().map_or(0, AlonePages::bytes);
        let kept = self.state.open_pages.bytes() + self.run.bytes() + self.state.excluded.bytes();
        let guardrails = self.guardrails().map_or(0, Guardrails::bytes);
        let counts = RANKER_BYTES * rankers + PAIR_BYTES * rankers * rankers;
        counts + kept + alone + guardrails
    }

    /// Position of the newest folded entry.
    pub fn position(&self) -> u64 {
        self.state.position
    }

    /// The policy at this position.
    pub fn policy(&self) -> &dyn Policy {
        self.run.policy()
    }

    /// Raw counts up to this position.
    pub fn counts(&self) -> &Counts {
        &self.state.counts
    }

    /// The counts over time.
    pub fn history(&self) -> &History {
        &self.state.history
    }

    /// The evidence for a winner, and the verdict once there is one.
    pub fn verdict(&self) -> &VerdictTracker {
        self.run.verdict()
    }

    /// The verdict, once the experiment may conclude on it: the claims of the winner that `at` waits
    /// for are settled.
    pub fn settled_verdict(&self, at: &ConcludeAt) -> Option<&Verdict> {
        self.verdict().verdict().filter(|verdict| {
            let winner = verdict.winner();
            let is_settled =
                |claims: &ControlClaims| self.next_control().is_none() && claims.is_settled(winner);
            (!at.control || self.claims().is_none_or(is_settled))
                && (!at.segments || self.segments().is_none_or(|it| it.is_settled(winner)))
        })
    }

    /// The claims against the control; `None` if none was ever named.
    pub fn claims(&self) -> Option<&ControlClaims> {
        self.run.claims()
    }

    /// The control that the claims follow next: see [`Run::next_control`].
    pub fn next_control(&self) -> Option<usize> {
        self.run.next_control()
    }

    /// The claims about segments; `None` if none was declared.
    pub fn segments(&self) -> Option<&SegmentClaims> {
        self.run.segments()
    }

    /// The claims that are proven, apart from drift.
    pub fn decided_claims(&self) -> Vec<DecidedClaim> {
        let best = self.verdict().verdict().map(|it| DecidedClaim::new("best", it.winner()));
        let of_control = self.claims().into_iter().flat_map(ControlClaims::decided);
        let of_control = of_control.map(|(ranker, it, _)| DecidedClaim::new(it.name(), ranker));
        let mut decided: Vec<_> = best.into_iter().chain(of_control).collect();
        if let Some((held, ranker)) = self.segments().and_then(|it| Some((it, it.winner()?))) {
            decided.extend(held.hurt_segments().map(|place| DecidedClaim {
                segment: self.state.spec.segments.get(place).copied(),
                ..DecidedClaim::new("hurt", ranker)
            }));
            decided.extend(held.unhurt_after().map(|_| DecidedClaim::new("unhurt", ranker)));
        }
        let of_metrics = self.guardrails().into_iter().flat_map(Guardrails::decided);
        decided.extend(of_metrics.map(|it| DecidedClaim {
            metric: Some((it.metric, it.kind)),
            ..DecidedClaim::new(it.side.name(), it.ranker)
        }));
        decided
    }

    /// The next duel that a claim needs.
    pub fn claimed(&self, rng: &mut PolicyRng) -> Option<Selection> {
        self.run.claimed(rng)
    }

    /// The answers that the verdict waits for, and what it counted of whom.
    pub fn cohorts(&self) -> &Cohorts {
        self.run.cohorts()
    }

    /// The time from which on duels must be issued to count, if it is later than any right clock
    /// sets it: a clock was ahead. Duels that are issued now have this time of issue. They wait
    /// until the clock gets there; with their own time, they would come too late until then.
    pub fn time_ahead_of(&self, now: i64) -> Option<i64> {
        let cohorts = self.cohorts();
        let pages = self.guardrails().map_or(i64::MIN, |guardrails| guardrails.complete_until());
        let from = cohorts.complete_until().max(pages);
        // a change of the roster sets it to the end of a cohort
        (from > now + cohorts.width_ms() + SLACK_MS).then_some(from)
    }

    /// The units that answer most.
    pub fn heavy_units(&self) -> &HeavyUnits {
        &self.state.heavy_units
    }

    /// The claim that preferences have changed; `None` where nobody looks for drift.
    pub fn drift(&self) -> Option<&Drift> {
        self.run.drift()
    }

    /// How the evidence grew.
    pub fn race(&self) -> &Race {
        self.run.race()
    }

    /// Unix milliseconds at which the newest entry was recorded; before the first entry, those of
    /// the creation.
    pub fn recorded_at(&self) -> i64 {
        self.state.recorded_at
    }

    /// Why the service concluded the experiment by itself, if it ever did; empty if a person has
    /// changed its status since.
    pub fn concluded_by_itself(&self) -> Option<&str> {
        self.state.concluded_by_itself.as_deref()
    }

    /// Whether the experiment is concluded.
    pub fn is_concluded(&self) -> bool {
        self.state.lifecycle.status == Status::Concluded
    }

    /// Unix milliseconds at which the open batch opened.
    pub fn batch_opened_at(&self) -> i64 {
        self.state.batches.opened_at
    }

    /// Unix milliseconds since which no comparison of the open batch was answered while the
    /// experiment was running.
    pub fn batch_still_since(&self) -> i64 {
        self.state.batches.moved_at
    }

    /// The interleaving methods, version 1 first.
    pub fn methods(&self) -> &[MethodVersion] {
        &self.state.methods
    }

    /// Version and method for a duel that was selected at this log position.
    pub fn method_at(&self, chosen_at: u64) -> (u32, interleaving::Spec) {
        let version =
            self.state.methods.partition_point(|version| version.since <= chosen_at).max(1);
        (version as u32, self.state.methods[version - 1].method)
    }

    /// The method with this version number.
    pub fn method(&self, version: u32) -> Option<interleaving::Spec> {
        method_of(&self.state.methods, version)
    }

    /// Position of the newest change of the status; 0 before the first.
    pub fn status_since(&self) -> u64 {
        self.state.status_since
    }

    /// The units whose answers do not count.
    pub fn excluded(&self) -> &ExcludedUnits {
        &self.state.excluded
    }

    /// Duels that have clicks and are not settled.
    pub fn open_pages(&self) -> &OpenPages {
        &self.state.open_pages
    }

    /// Counts of settled pages.
    pub fn page_counts(&self) -> &PageCounts {
        &self.state.page_counts
    }

    /// The rankers, active and retired.
    pub fn roster(&self) -> &Roster {
        self.run.roster()
    }

    /// How many rankers the experiment was created with.
    pub fn initial_rankers(&self) -> usize {
        self.state.initial_rankers
    }

    /// How often a ranker was added or retired after the creation.
    pub fn roster_changes(&self) -> usize {
        let spec = &self.state.spec;
        spec.rankers.len() - self.state.initial_rankers + spec.retired.len()
    }
}
