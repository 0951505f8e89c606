//! The policy: prove, explore while a proof takes too long, and then show the winner.

use rand::RngExt;

use crate::evidence::certificate::PairEvidence;
use crate::evidence::plan::{Awaited, Plan};
use crate::evidence::{Target, View};
use crate::parameters::Setup;
use crate::policies::bounds::Bounds;
use crate::policies::double_thompson::{Sampler, Ties};
use crate::saved_state::{load_state, save_state};
use crate::{
    Bandit, Duel, InFlight, Observation, Policy, PolicyRng, RosterError, Selection, Tally,
    VerdictPlanning,
};

/// A plan is made anew once the number of steps has grown by this share, and by at least
/// [`REPLAN_STEPS`].
const REPLAN_SHARE: f64 = 0.05;
const REPLAN_STEPS: u64 = 16;
/// Least number of steps between two plans with few rankers.
const LEAST_REST: u64 = 4;
/// With many rankers, this least number is the square of the number of rankers over this: the time
/// of a plan grows in the same way.
const PAIRS_A_STEP: u64 = 32;
/// With more rankers than this there is no plan: no proof ends in reasonable time.
const PLANNED_MAX: usize = 256;
/// While a proof is expected to end within this many steps, those so far included, it gets every
/// page.
const PATIENCE: f64 = 7e4;
/// A longer proof gets a share of pages that grows with the steps so far, because exploring without
/// a proof has cost about as much by then (the ski rental problem). The growth ends after this many
/// steps, so that the regret of a hopeless proof grows only with the logarithm of time.
const MOST_PATIENCE: f64 = 3e6;
/// Share of pages that show the leader alone while all that the plan lacks is in flight. The others
/// follow the plan: a duel that is never answered stays in flight until it expires, and without
/// them a few dozen of these would stop the proof.
const WAITING: f64 = 0.5;
/// Share of exploration after the verdict.
const EXPLORING: f64 = 0.001;

/// D-TS-Verdict.
#[derive(Debug)]
pub(super) struct Deciding {
    explorer: Sampler,
    target: Target,
    plan: Plan,
    /// Steps at the newest plan, and whether a majority has turned since.
    planned_at: u64,
    is_stale: bool,
    /// Follow from the evidence.
    seen: Seen,
}

/// The parts of the evidence that a selection needs.
#[derive(Debug)]
struct Seen {
    /// The winner, once there is a verdict, and whether the counts still agree with it.
    winner: Option<usize>,
    counts_agree: bool,
    /// Whether the answers that wait are expected to complete the proof.
    is_expected: bool,
    /// The share of answers that count.
    counting: f64,
    /// With a complete plan, the ranker over which the leader leads with the least evidence.
    nearest: Option<usize>,
}

impl Default for Seen {
    fn default() -> Self {
        Self { winner: None, counts_agree: false, is_expected: false, counting: 1.0, nearest: None }
    }
}

/// The saved state: tally, retired rankers, plan, its step, and whether a majority turned since.
type Saved = (Tally, Vec<u16>, Plan, u64, bool);

impl Deciding {
    pub(super) fn new(bounds: Bounds, target: Target) -> Self {
        Self {
            explorer: Sampler::new(bounds, Ties::ByRegret),
            target,
            plan: Plan::default(),
            planned_at: 0,
            is_stale: false,
            seen: Seen::default(),
        }
    }

    pub(super) fn restore(setup: Setup, state: &[u8], alpha: f64, target: Target) -> Option<Self> {
        let (tally, retired, plan, planned_at, is_stale): Saved = load_state(state)?;
        (tally.rankers() >= setup.rankers && planned_at <= tally.steps()).then_some(())?;
        let bounds = Bounds::from_parts(tally, &retired, alpha)?;
        plan.is_sound(bounds.active()).then_some(())?;
        Some(Self { plan, planned_at, is_stale, ..Self::new(bounds, target) })
    }

    fn active(&self) -> &[usize] {
        self.explorer.bounds().active()
    }

    fn steps(&self) -> u64 {
        self.explorer.tally().steps()
    }

    /// The probability with which a page goes to the proof. A proof that takes too long gets fewer
    /// pages, but never none, so that it ends. 0 without a plan.
    fn patience(&self) -> f64 {
        if self.plan.leader().is_none() {
            return 0.0;
        }
        let steps = self.steps() as f64;
        steps.clamp(PATIENCE, MOST_PATIENCE) / (steps + self.plan.missing())
    }

    /// The selection, except for a self-duel before the first plan, and after the verdict has
    /// started again: then that ranker meets another one. A self-duel teaches nothing, and a plan
    /// is made with an answer, so that without one self-duels would follow for ever.
    fn without_early_self_duel(&self, selection: Selection, rng: &mut PolicyRng) -> Selection {
        let (active, first) = (self.active(), selection.duel.first);
        let is_early = self.steps() < self.least_rest();
        let is_due = self.is_stale || self.is_plan_due();
        // without a first one, nobody makes plans
        let awaits_plan = is_early || self.planned_at > 0 && active.len() <= PLANNED_MAX && is_due;
        let is_planned = self.plan.leader().is_some() || !awaits_plan;
        if is_planned || !selection.duel.is_self() || active.len() < 2 {
            return selection;
        }
        let place = rng.random_range(0..active.len() - 1);
        let other = active.iter().copied().filter(|&ranker| ranker != first).nth(place);
        other.map_or(selection, |other| Selection::of(first, other))
    }

    /// A duel for the proof; none if its plan has no leader, or lacks nothing and has no rival.
    fn proving(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Option<Selection> {
        let leader = self.plan.leader()?;
        if self.seen.is_expected {
            // the verdict only waits for answers to be counted
            return Some(Selection::of(leader, leader));
        }
        let draw = |in_flight: &InFlight, rng: &mut PolicyRng| {
            let awaited = Awaited { in_flight, counting: self.seen.counting };
            self.plan.draw(awaited, rng.random())
        };
        let drawn = match draw(in_flight, rng) {
            None if !self.plan.is_complete() => match rng.random::<f64>() < WAITING {
                true => return Some(Selection::of(leader, leader)),
                false => draw(&InFlight::new(), rng),
            },
            drawn => drawn,
        };
        let (winner, loser) = drawn.or(self.seen.nearest.map(|rival| (leader, rival)))?;
        Some(Selection::of(winner, loser))
    }

    /// Fold an answer to a duel. A majority that turns makes the plan stale.
    fn fold_answer(&mut self, duel: Duel, fold: impl FnOnce(&mut Sampler)) {
        let (i, j) = (duel.first, duel.second);
        let majority = |tally: &Tally| tally.half_wins(i, j).cmp(&tally.half_wins(j, i));
        let before = majority(self.tally());
        fold(&mut self.explorer);
        self.is_stale |= majority(self.tally()) != before;
    }

    fn is_plan_due(&self) -> bool {
        let since = self.steps() - self.planned_at;
        let rarely = REPLAN_STEPS.max((self.steps() as f64 * REPLAN_SHARE) as u64);
        let is_due = self.is_stale
            || self.plan.leader().is_none()
            || self.plan.is_complete()
            || since >= rarely;
        is_due && since >= self.least_rest()
    }

    /// Least number of steps between two plans, and before the first one.
    fn least_rest(&self) -> u64 {
        let rankers = self.active().len() as u64;
        (rankers * rankers / PAIRS_A_STEP).max(LEAST_REST)
    }

    /// Reads the parts of the evidence that a selection needs.
    fn read_evidence(&mut self, view: &View<'_>) {
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        let winner = view.tracker.winner();
        let score = |i: usize| active.iter().filter(|&&j| tally.leads(i, j)).count();
        let is_highest = |winner| active.iter().all(|&i| score(i) <= score(winner));
        self.seen = Seen {
            winner,
            counts_agree: winner.is_some_and(is_highest),
            counting: view.counting,
            ..Seen::default()
        };
        if winner.is_some() {
            self.plan = Plan::default();
        }
        let leader = self.plan.leader().filter(|_| self.plan.is_complete());
        if let Some(place) = leader.and_then(|leader| active.binary_search(&leader).ok()) {
            let evidence = view.expected(tally, active);
            self.seen.is_expected = view.will_certify(&evidence, place);
            self.seen.nearest = nearest_rival(&evidence, place).map(|rival| active[rival]);
        }
    }

    fn roster_changed(&mut self) {
        self.plan = Plan::default();
        self.is_stale = true;
        self.seen = Seen::default();
    }
}

/// The ranker over which the leader leads with the least evidence, by place. O(K).
fn nearest_rival(evidence: &PairEvidence, leader: usize) -> Option<usize> {
    let is_beaten = |&y: &usize| y != leader && evidence.wins(leader, y) > evidence.wins(y, leader);
    let beaten = (0..evidence.rankers()).filter(is_beaten);
    beaten.min_by(|&x, &y| evidence.ln(leader, x).total_cmp(&evidence.ln(leader, y)))
}

impl Bandit for Deciding {
    fn tally(&self) -> &Tally {
        self.explorer.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        if let Some(winner) = self.seen.winner {
            if self.seen.counts_agree && rng.random::<f64>() >= EXPLORING {
                return Selection::of(winner, winner);
            }
            return self.explorer.select(in_flight, rng);
        }
        let patience = self.patience();
        let is_proving = patience >= 1.0 || patience > 0.0 && rng.random::<f64>() < patience;
        let proving = if is_proving { self.proving(in_flight, rng) } else { None };
        let selection = proving.unwrap_or_else(|| self.explorer.select(in_flight, rng));
        self.without_early_self_duel(selection, rng)
    }

    fn observe(&mut self, observation: &Observation) {
        self.fold_answer(observation.duel, |explorer| explorer.observe(observation));
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.explorer.observe_self_duels(ranker, count);
    }

    fn champion(&self) -> usize {
        let winner = self.seen.winner.filter(|_| self.seen.counts_agree);
        winner.unwrap_or_else(|| self.explorer.champion())
    }
}

impl Policy for Deciding {
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

    fn observe_deferred(&mut self, observation: &Observation) {
        self.fold_answer(observation.duel, |explorer| explorer.observe_deferred(observation));
    }

    fn catch_up(&mut self) {
        self.explorer.catch_up();
    }

    fn verdict_planning(&mut self) -> Option<&mut dyn VerdictPlanning> {
        Some(self)
    }

    fn save(&self) -> Vec<u8> {
        let (tally, retired) = self.explorer.bounds().parts();
        save_state(&(tally, retired, &self.plan, self.planned_at, self.is_stale))
    }
}

impl VerdictPlanning for Deciding {
    fn target(&self) -> Target {
        self.target
    }

    fn read(&mut self, view: &View<'_>) {
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        self.plan.update(&view.expected(tally, active), active, view.tracker.target().margin, None);
        self.read_evidence(view);
    }

    fn follow(&mut self, view: &View<'_>, duel: Option<Duel>) {
        let bounds = self.explorer.bounds();
        let (tally, active) = (bounds.tally(), bounds.active());
        let evidence = view.expected(tally, active);
        let changed = duel.map(|duel| (duel.first, duel.second));
        self.plan.update(&evidence, active, view.tracker.target().margin, changed);
        let is_open = view.tracker.verdict().is_none() && active.len() <= PLANNED_MAX;
        if is_open && self.is_plan_due() {
            self.plan = Plan::of(view.tracker, &evidence, active, tally.steps());
            self.planned_at = tally.steps();
            self.is_stale = false;
        }
        self.read_evidence(view);
    }
}
