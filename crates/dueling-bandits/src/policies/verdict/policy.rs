//! The policy: explore, prove, and then show the winner.

mod choice;
mod guard;
mod records;

use crate::evidence::outlooks::Outlooks;
use crate::evidence::plan::Plan;
use crate::evidence::scores::Score;
use crate::evidence::{Target, VerdictTracker};
use crate::policies::bounds::Bounds;
use crate::policies::double_thompson::{Sampler, Ties};
use crate::policies::verdict::policy::guard::Guard;
use crate::policies::verdict::policy::records::Records;
use crate::{
    Duel, InFlight, Observation, Outcome, Policy, PolicyRng, RosterError, Selection, Tally,
    VerdictPlanning,
};
#[cfg(feature = "serde")]
use crate::{
    evidence::plan::SavedPlan,
    evidence::{scores::ScoreCounts, verdict},
    parameters::Setup,
    policies::verdict::policy::guard::SavedGuard,
    saved_state::{SaveLater, load_state, save_later},
};

#[cfg(feature = "serde")]
const FORMAT: u32 = 6;
/// Least number of steps between two plans, and the share by which the steps have grown.
const REPLAN_STEPS: u64 = 16;
const REPLAN_SHARE: f64 = 0.05;
/// With more rankers than this, only majorities near the top make a plan stale, and proofs without
/// a margin get less patience.
const FEW: usize = 20;
/// With more rankers than this there is no plan: no proof ends in reasonable time.
const PLANNED_MAX: usize = 256;
/// Least number of steps between two plans when a majority has turned.
const LEAST_REST: u64 = 4;
/// Steps that a completed plan waits before the next one: the verdict may only need its next check.
const LEAST_CHECK: u64 = 8;

/// D-TS-Verdict.
#[derive(Debug)]
pub(super) struct Deciding {
    explorer: Sampler,
    /// Follow from the tally.
    records: Records,
    /// [`Records::agreement`] at the newest plan.
    agreement: f64,
    tracker: VerdictTracker,
    urgency: f64,
    /// What the plan is made of; empty where there is none. Follows from the tally.
    outlooks: Outlooks,
    plan: Plan,
    /// Steps at the newest plan, and whether a majority has turned since.
    planned_at: u64,
    is_stale: bool,
    /// `#{y : x won more often than y}` of every active ranker; follows from the tally.
    scores: Vec<u32>,
    /// Comparisons of the active rankers that count, or are expected to, since the roster last
    /// changed. Follows from the tally and the verdict.
    counted: f64,
    /// What the winner has to prove again; empty before the verdict.
    guard: Guard,
}

/// What is saved.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
struct Saved {
    tally: Tally,
    retired: Vec<u16>,
    verdict: verdict::State,
    plan: SavedPlan,
    planned_at: u64,
    is_stale: bool,
    agreement: f64,
    guard: SavedGuard,
}

impl Deciding {
    pub(super) fn new(rankers: usize, alpha: f64, target: Target, urgency: f64) -> Self {
        let tracker = VerdictTracker::new(target, rankers);
        Self::of(Bounds::new(rankers, alpha), tracker, urgency)
    }

    pub(super) fn from_tally(tally: Tally, alpha: f64, target: Target, urgency: f64) -> Self {
        let bounds = Bounds::from_tally(tally, alpha);
        let tracker = VerdictTracker::of_counts(target, bounds.tally(), bounds.active());
        let mut policy = Self::of(bounds, tracker, urgency);
        if policy.tally().steps() > 0 && policy.is_planning() {
            policy.replan();
        }
        policy
    }

    fn of(bounds: Bounds, tracker: VerdictTracker, urgency: f64) -> Self {
        let mut policy = Self {
            records: Records::new(bounds.tally(), bounds.active()),
            agreement: 1.0,
            explorer: Sampler::new(bounds, Ties::ByRegret),
            tracker,
            urgency,
            outlooks: Outlooks::default(),
            plan: Plan::default(),
            planned_at: 0,
            is_stale: false,
            scores: Vec::new(),
            counted: 0.0,
            guard: Guard::default(),
        };
        policy.count_scores();
        policy.count_answers();
        policy.survey();
        policy.set_guard();
        policy
    }

    #[cfg(feature = "serde")]
    pub(super) fn restore(
        setup: Setup,
        format: u32,
        state: &[u8],
        alpha: f64,
        target: Target,
        urgency: f64,
    ) -> Option<Self> {
        (format == FORMAT).then_some(())?;
        // scores follow where there are any
        let (saved, scores): (Saved, ScoreCounts) = match load_state(state) {
            Some(saved) => (saved, ScoreCounts::default()),
            None => {
                let saved: (Saved, ScoreCounts) = load_state(state)?;
                (!saved.1.is_empty()).then_some(saved)?
            }
        };
        let verdict = saved.verdict.with_scores(scores);
        (saved.tally.rankers() >= setup.rankers).then_some(())?;
        let bounds = Bounds::from_parts(saved.tally, &saved.retired, alpha)?;
        let (tally, roster) = (bounds.tally(), bounds.roster());
        let is_sound = verdict.is_sound(tally, roster)
            && saved.planned_at <= tally.steps()
            && (0.0..=1.0).contains(&saved.agreement);
        is_sound.then_some(())?;
        let tracker = VerdictTracker::restore(target, verdict, roster.active().len());
        let mut policy = Self::of(bounds, tracker, urgency);
        policy.plan = Plan::restore(&saved.plan, &policy.outlooks, policy.active())?;
        policy.planned_at = saved.planned_at;
        policy.is_stale = saved.is_stale;
        policy.agreement = saved.agreement;
        let (tally, active) = (policy.tally(), policy.active());
        policy.guard = Guard::restore(&saved.guard, &policy.tracker, tally, active)?;
        Some(policy)
    }

    fn active(&self) -> &[usize] {
        self.explorer.bounds().active()
    }

    /// Whether there is a plan: before a verdict, and without too many rankers.
    fn is_planning(&self) -> bool {
        self.tracker.verdict().is_none() && self.active().len() <= PLANNED_MAX
    }

    fn survey(&mut self) {
        let pairs = self.tracker.evidence(self.tally(), self.active());
        self.outlooks = match self.is_planning() {
            true => Outlooks::new(&pairs, self.tracker.target().margin),
            false => Outlooks::default(),
        };
    }

    /// The verdict is new, or gone.
    fn set_guard(&mut self) {
        self.guard = Guard::new(&self.tracker, self.tally(), self.active());
    }

    fn count_scores(&mut self) {
        let (tally, active) = (self.tally(), self.active());
        let mut scores = vec![0; tally.rankers()];
        for &i in active {
            scores[i] = active.iter().filter(|&&j| tally.leads(i, j)).count() as u32;
        }
        self.scores = scores;
    }

    fn count_answers(&mut self) {
        let evidence = self.tracker.evidence(self.tally(), self.active());
        let pairs = (1..evidence.rankers()).flat_map(|x| (0..x).map(move |y| (x, y)));
        self.counted = pairs.map(|(x, y)| evidence.wins(x, y) + evidence.wins(y, x)).sum();
    }

    /// Comparisons of a pair that count; 0 if one of the two is not active.
    fn counted_of(&self, duel: Duel) -> f64 {
        let active = self.active();
        let evidence = self.tracker.evidence(self.tally(), active);
        match (active.binary_search(&duel.first), active.binary_search(&duel.second)) {
            (Ok(x), Ok(y)) => evidence.wins(x, y) + evidence.wins(y, x),
            _ => 0.0,
        }
    }

    /// Whether the counts still agree with the latched verdict: its winner has the largest score,
    /// and leads every rival that the verdict rests on.
    fn stands(&self, winner: usize) -> bool {
        let is_highest = self.active().iter().all(|&i| self.scores[i] <= self.scores[winner]);
        is_highest && !self.guard.has_turned()
    }

    /// The majority of the pair before an observation: `Greater` where `i` leads.
    fn majority(&self, duel: Duel) -> std::cmp::Ordering {
        let (i, j) = (duel.first, duel.second);
        self.tally().half_wins(i, j).cmp(&self.tally().half_wins(j, i))
    }

    fn folded(&mut self, observation: &Observation, before: std::cmp::Ordering) {
        let Observation { duel, outcome, .. } = *observation;
        let roster = self.explorer.bounds().roster();
        if !roster.is_active(duel.first) || !roster.is_active(duel.second) {
            return;
        }
        let (first, second) = outcome.half_wins();
        self.counted += f64::from(first + second) / 2.0;
        self.records.observe(duel.first, duel.second, outcome);
        let now = self.majority(duel);
        let (i, j) = (duel.first, duel.second);
        if now != before {
            let points = |of: std::cmp::Ordering| (of.is_gt() as u32, of.is_lt() as u32);
            self.scores[i] = self.scores[i] + points(now).0 - points(before).0;
            self.scores[j] = self.scores[j] + points(now).1 - points(before).1;
        }
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        if !self.is_planning() {
            let is_guarding = self.tracker.verdict().is_some();
            self.tracker.observe(tally, active, duel);
            return match is_guarding {
                true => self.guard.update(duel, &self.tracker, tally),
                false => self.set_guard(),
            };
        }
        let pairs = self.tracker.evidence(tally, active);
        if let (Ok(x), Ok(y)) = (active.binary_search(&i), active.binary_search(&j)) {
            // the plan reads its claims at once
            for (side, is_claimed) in
                [((x, y), self.plan.claims_that(i, j)), ((y, x), self.plan.claims_that(j, i))]
            {
                match is_claimed {
                    true => self.outlooks.update_side(&pairs, side),
                    false => self.outlooks.update_side_later(side),
                }
            }
        }
        self.tracker.observe_with(tally, active, duel, &mut self.outlooks);
        if self.tracker.verdict().is_some() {
            (self.plan, self.outlooks) = Default::default();
            return self.set_guard();
        }
        self.plan.update(&self.outlooks, active, i, j);
        if now != before {
            let of_leader = self.plan.leader().map_or(0, |leader| self.scores[leader]);
            let few = active.len() <= FEW;
            self.is_stale |= few || self.scores[i].max(self.scores[j]) + 1 >= of_leader;
        }
        self.is_stale |= self.plan.is_outdated();
        if self.is_plan_due() {
            self.replan();
        }
    }

    /// Other answers of this pair count than before, when `before` of them did.
    fn recounted(&mut self, duel: Duel, before: f64) {
        self.counted += self.counted_of(duel) - before;
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        let (i, j) = (duel.first, duel.second);
        if let (true, Ok(x), Ok(y)) =
            (self.is_planning(), active.binary_search(&i), active.binary_search(&j))
        {
            self.outlooks.update(&self.tracker.evidence(tally, active), x, y);
            self.plan.update(&self.outlooks, active, i, j);
        }
    }

    fn is_plan_due(&self) -> bool {
        let steps = self.tally().steps();
        let since = steps - self.planned_at;
        let rarely = REPLAN_STEPS.max((steps as f64 * REPLAN_SHARE) as u64);
        let rankers = self.active().len() as u64;
        // a plan takes a time that grows with the square of the number of rankers
        let rest = (rankers * rankers / 32).max(LEAST_REST);
        let is_due = self.plan.leader().is_none()
            || since >= rarely
            || self.plan.is_complete() && since >= LEAST_CHECK
            || self.is_stale;
        is_due && since >= rest
    }

    fn replan(&mut self) {
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        self.outlooks.catch_up(&self.tracker.evidence(tally, active));
        self.plan = Plan::of(&self.outlooks, &self.tracker, tally, active, self.plan.leader());
        self.agreement = self.records.agreement(tally, active);
        self.planned_at = tally.steps();
        self.is_stale = false;
    }

    fn roster_changed(&mut self) {
        self.count_scores();
        let bounds = self.explorer.bounds();
        self.records = Records::new(bounds.tally(), bounds.active());
        self.tracker.roster_changed(bounds.tally(), bounds.active().len());
        self.count_answers();
        self.plan = Plan::default();
        self.survey();
        self.set_guard();
        self.is_stale = true;
    }
}

impl Policy for Deciding {
    fn tally(&self) -> &Tally {
        self.explorer.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        self.choose(in_flight, rng)
    }

    fn observe(&mut self, observation: &Observation) {
        let before = self.majority(observation.duel);
        self.explorer.observe(observation);
        if !observation.duel.is_self() {
            self.folded(observation, before);
        }
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.explorer.observe_self_duels(ranker, count);
    }

    fn champion(&self) -> usize {
        match self.tracker.verdict() {
            Some(verdict) if self.stands(verdict.winner()) => verdict.winner(),
            _ => self.explorer.champion(),
        }
    }

    fn enlist(&mut self) -> Result<(), RosterError> {
        self.explorer.enlist()?;
        self.roster_changed();
        Ok(())
    }

    fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        let before = self.active().len();
        self.explorer.retire(ranker)?;
        if self.active().len() != before {
            self.roster_changed();
        }
        Ok(())
    }

    fn hold_out(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.retire(ranker)?;
        // the error of the verdict is not spent by a change
        self.tracker = VerdictTracker::new(self.tracker.target(), self.active().len());
        self.count_answers();
        self.survey();
        Ok(())
    }

    fn observe_deferred(&mut self, observation: &Observation) {
        let before = self.majority(observation.duel);
        self.explorer.observe_deferred(observation);
        if !observation.duel.is_self() {
            self.folded(observation, before);
        }
    }

    fn catch_up(&mut self) {
        self.explorer.catch_up();
    }

    fn verdict_planning(&mut self) -> Option<&mut dyn VerdictPlanning> {
        Some(self)
    }

    #[cfg(feature = "serde")]
    fn format(&self) -> u32 {
        FORMAT
    }

    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater {
        let (tally, retired) = self.explorer.bounds().parts();
        let saved = Saved {
            tally: tally.clone(),
            retired,
            verdict: self.tracker.state().clone(),
            plan: self.plan.saved(),
            planned_at: self.planned_at,
            is_stale: self.is_stale,
            agreement: self.agreement,
            guard: self.guard.saved(),
        };
        let scores = self.tracker.state().scores();
        match scores.is_empty() {
            true => save_later(saved),
            false => save_later((saved, scores.clone())),
        }
    }
}

impl VerdictPlanning for Deciding {
    fn score(&mut self, duel: Duel, score: Score) {
        let before = self.counted_of(duel);
        self.tracker.score(duel, score, 1);
        // the pair is updated when the answer is observed
        self.counted += self.counted_of(duel) - before;
    }

    fn leave_out(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>) {
        let before = self.counted_of(duel);
        self.tracker.leave_out(self.explorer.tally(), duel, outcome);
        if let Some(score) = score {
            self.tracker.unscore(duel, score);
        }
        self.recounted(duel, before);
    }

    fn count_again(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>) {
        let before = self.counted_of(duel);
        self.tracker.count_again(duel, outcome, 1);
        if let Some(score) = score {
            self.tracker.score(duel, score, 1);
        }
        self.recounted(duel, before);
    }

    fn reconsider(&mut self, decides: &VerdictTracker) -> bool {
        if self.tracker.verdict().is_none() {
            return false;
        }
        let bounds = self.explorer.bounds();
        self.tracker.reconsider(decides, bounds.tally(), bounds.active());
        self.set_guard();
        if self.tracker.verdict().is_some() {
            return true;
        }
        self.survey();
        if self.is_planning() {
            self.replan();
        }
        false
    }
}
