//! A run: a policy, which of its answers count for the verdict, and the verdict.
//!
//! The policy learns from every answer. The verdict counts one answer of each unit, in complete
//! [`Cohorts`]. A policy that plans for the verdict sees the evidence in two [views](View): what
//! counts so far, and what is expected to count once the answers that wait have been counted.

use crate::evidence::balance::Cell;
use crate::evidence::cohorts::{Added, Admission, Change, Completed};
use crate::evidence::{Cohorts, Counted, Race, Target, TimedAnswer, VerdictTracker, View};
use crate::{
    Batches, Duel, InFlight, Observation, Policy, PolicyRng, Roster, RosterError, Selection, Tally,
};
use crate::{
    PolicySpec, Setup,
    evidence::{cohorts, verdict},
};

/// The target of a policy that plans for none.
const DEFAULT_TARGET: Target = Target { confidence: 0.95, margin: 0.0 };

/// A policy with the verdict on its answers.
///
/// ```
/// use dueling_bandits::run::Run;
/// use dueling_bandits::{InFlight, Outcome, Policy, PolicySpec, Setup, step_rng};
///
/// let spec = PolicySpec::from_text("d-ts-verdict:margin=0.01")?;
/// let mut run = Run::of(spec.start(Setup { rankers: 4, seed: 1 }));
/// let mut rng = step_rng(1, 0);
/// while run.verdict().verdict().is_none() {
///     let selection = run.select(&InFlight::new(), &mut rng);
///     // a lower ranker always wins
///     match selection.duel {
///         duel if duel.is_self() => run.observe_self_duels(duel.first, 1),
///         duel if duel.first < duel.second => run.observe(&selection.observed(Outcome::First)),
///         _ => run.observe(&selection.observed(Outcome::Second)),
///     }
/// }
/// assert_eq!(run.champion(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Run {
    policy: Box<dyn Policy>,
    roster: Roster,
    tracker: VerdictTracker,
    cohorts: Cohorts,
    race: Race,
    /// Which answers are expected to count; `None` where answers count as they arrive.
    expected: Option<Counted>,
}

impl Run {
    /// A run towards the verdict that the policy plans for, in which every answer counts at once.
    pub fn of(mut policy: Box<dyn Policy>) -> Self {
        let target = policy.verdict_planning().map_or(DEFAULT_TARGET, |planning| planning.target());
        Self::new(policy, target, 0)
    }

    /// A run whose answers come within `window_ms` of the issue of their duels. With 0, an answer
    /// counts as it arrives.
    pub fn new(policy: Box<dyn Policy>, target: Target, window_ms: i64) -> Self {
        let roster = Roster::new(policy.tally().rankers());
        let tracker = VerdictTracker::of_counts(target, policy.tally(), roster.active());
        Self::with(policy, roster, tracker, Cohorts::new(window_ms), Race::default())
    }

    /// A run that goes on from the counts of the policy and from this verdict, in which every
    /// further answer counts at once.
    pub fn going_on(policy: Box<dyn Policy>, roster: Roster, tracker: VerdictTracker) -> Self {
        Self::with(policy, roster, tracker, Cohorts::new(0), Race::default())
    }

    fn with(
        policy: Box<dyn Policy>,
        roster: Roster,
        tracker: VerdictTracker,
        cohorts: Cohorts,
        race: Race,
    ) -> Self {
        let expected =
            (cohorts.window_ms() > 0).then(|| tracker.counted().with_waiting(&cohorts.expected()));
        let mut run = Self { policy, roster, tracker, cohorts, race, expected };
        run.read();
        run
    }

    /// Keep `ranker` out of the tournament from the start, before the first step.
    pub fn hold_out(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.policy.retire(ranker)?;
        self.roster.retire(ranker)?;
        // the error of the verdict is not spent by this change
        self.tracker = VerdictTracker::new(self.tracker.target(), self.roster.active().len());
        self.read();
        Ok(())
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The rankers, active and retired.
    pub fn roster(&self) -> &Roster {
        &self.roster
    }

    /// The evidence for a winner, and the verdict once there is one.
    pub fn verdict(&self) -> &VerdictTracker {
        &self.tracker
    }

    /// Which answers are expected to count once those that wait have been counted.
    pub fn expected(&self) -> &Counted {
        self.expected.as_ref().unwrap_or_else(|| self.tracker.counted())
    }

    /// The answers that wait, and what was counted of whom.
    pub fn cohorts(&self) -> &Cohorts {
        &self.cohorts
    }

    /// How the evidence grew.
    pub fn race(&self) -> &Race {
        &self.race
    }

    /// Estimated bytes in memory that the verdict takes.
    pub fn bytes(&self) -> usize {
        let views = if self.expected.is_some() { 2 } else { 1 };
        views * self.tracker.bytes() + self.cohorts.bytes()
    }

    /// Fold one answered duel, which arrived `at` this time. It counts now, later, or not at all.
    /// [`Run::catch_up`] is to follow before the next selection.
    pub fn observe_timed(
        &mut self,
        answer: &TimedAnswer,
        batch: Option<u32>,
        ticket: u64,
        at: i64,
    ) {
        let &TimedAnswer { duel, outcome, score, .. } = answer;
        self.policy.observe_deferred(&Observation { duel, outcome, batch, ticket });
        let Added { admission, others } = self.cohorts.add(answer);
        let (tally, active) = (self.policy.tally(), self.roster.active());
        if admission == Admission::Counted {
            if let Some(score) = score {
                self.tracker.score(duel, score);
            }
            self.tracker.observe(tally, active, duel);
        } else {
            self.tracker.leave_out(tally, duel, outcome);
        }
        if let Some(expected) = &mut self.expected {
            match (admission, score) {
                (Admission::Counted | Admission::Waits, Some(score)) => {
                    expected.score(duel, score, 1);
                }
                (Admission::Counted | Admission::Waits, None) => {}
                _ => expected.leave_out(tally, duel, outcome, None),
            }
            for &Change { duel, outcome, score, counts } in &others {
                match counts {
                    true => expected.count_again(duel, outcome, score, 1),
                    false => expected.leave_out(tally, duel, outcome, score),
                }
            }
        }
        let count = u64::from(admission == Admission::Counted);
        self.race.observe(&self.tracker, tally, active, count, at);
        self.follow(others.is_empty().then_some(duel));
    }

    /// No answer of a duel issued before `until` can come any more: count them, cohort by cohort in
    /// the order of issue.
    pub fn complete(&mut self, until: i64, at: i64) {
        let completed = self.cohorts.complete(until);
        if completed.is_empty() {
            return;
        }
        let (tally, active) = (self.policy.tally(), self.roster.active());
        for cohort in completed {
            let mut comparisons = 0;
            for Completed { duel, outcome, score, count, counts, expected } in cohort {
                if counts {
                    self.tracker.count_again(duel, outcome, score, count);
                    comparisons += u64::from(count);
                } else if let (true, Some(view)) = (expected, &mut self.expected) {
                    view.leave_out(tally, duel, outcome, score);
                }
            }
            if comparisons > 0 {
                self.tracker.observe_several(tally, active, comparisons);
                self.race.observe(&self.tracker, tally, active, comparisons, at);
            }
        }
        self.follow(None);
    }

    /// Duels issued after this time have another window; see [`Cohorts::change_window`].
    pub fn change_window(&mut self, window_ms: i64, at: i64) -> bool {
        self.cohorts.change_window(window_ms, at)
    }

    /// Count duels of complete cohorts, or a sample of them, answered or not.
    pub fn add_duels(&mut self, duels: Cell) {
        self.cohorts.add_duels(duels);
    }

    /// The policy, to fold comparisons that were counted elsewhere. [`Run::compared`] is to follow,
    /// once for all of them.
    pub fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut *self.policy
    }

    /// `count` comparisons that the policy has folded count.
    pub fn compared(&mut self, count: u64, at: i64) {
        let (tally, active) = (self.policy.tally(), self.roster.active());
        self.cohorts.counted_elsewhere(count);
        self.tracker.observe_several(tally, active, count);
        self.race.observe(&self.tracker, tally, active, count, at);
        self.follow(None);
    }

    /// Do the work that [`Run::observe_timed`] postponed.
    pub fn catch_up(&mut self) {
        self.policy.catch_up();
    }

    /// Add one ranker, with the next index, at this time. The verdict starts again.
    pub fn enlist(&mut self, at: i64) -> Result<(), RosterError> {
        let mut roster = self.roster.clone();
        roster.enlist()?;
        self.policy.enlist()?;
        self.roster = roster;
        self.roster_changed(at);
        Ok(())
    }

    /// Never select `ranker` again. Its counts stay. The verdict starts again, with duels issued
    /// after this time.
    pub fn retire(&mut self, ranker: usize, at: i64) -> Result<(), RosterError> {
        self.policy.retire(ranker)?;
        if self.roster.retire(ranker)? {
            self.roster_changed(at);
        }
        Ok(())
    }

    fn roster_changed(&mut self, at: i64) {
        self.tracker.roster_changed(self.policy.tally(), self.roster.active().len());
        self.cohorts.restart(at);
        self.race.roster_changed();
        if self.expected.is_some() {
            self.expected = Some(self.tracker.counted().clone());
        }
        self.read();
    }

    fn read(&mut self) {
        let view = view(&self.tracker, &self.cohorts, self.expected.as_ref());
        if let Some(planning) = self.policy.verdict_planning() {
            planning.read(&view);
        }
    }

    fn follow(&mut self, duel: Option<Duel>) {
        let view = view(&self.tracker, &self.cohorts, self.expected.as_ref());
        if let Some(planning) = self.policy.verdict_planning() {
            planning.follow(&view, duel);
        }
    }
}

/// A run in which every answer counts at once, as simulations have it.
impl Policy for Run {
    fn tally(&self) -> &Tally {
        self.policy.tally()
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        self.policy.select(in_flight, rng)
    }

    fn uses_in_flight(&self) -> bool {
        self.policy.uses_in_flight()
    }

    fn observe(&mut self, observation: &Observation) {
        self.policy.observe(observation);
        self.tracker.observe(self.policy.tally(), self.roster.active(), observation.duel);
        self.follow(Some(observation.duel));
    }

    fn observe_self_duels(&mut self, ranker: usize, count: u64) {
        self.policy.observe_self_duels(ranker, count);
    }

    fn champion(&self) -> usize {
        self.policy.champion()
    }

    fn batches(&self) -> Option<&dyn Batches> {
        self.policy.batches()
    }

    /// Of the policy alone.
    fn format(&self) -> u32 {
        self.policy.format()
    }

    /// Of the policy alone.
    fn save(&self) -> Vec<u8> {
        self.policy.save()
    }
}

fn view<'a>(
    tracker: &'a VerdictTracker,
    cohorts: &Cohorts,
    expected: Option<&'a Counted>,
) -> View<'a> {
    let counted = (tracker.comparisons() + cohorts.waiting()) as f64;
    let answers = counted + cohorts.left_out().total() as f64;
    let counting = if answers > 0.0 { counted / answers } else { 1.0 };
    View { tracker, expected, counting }
}

/// The saved state of a [`Run`], without its roster.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct SavedRun {
    policy: Vec<u8>,
    verdict: verdict::State,
    cohorts: cohorts::Saved,
    race: Race,
}

impl Run {
    /// Version of the layout of a [`SavedRun`], without that of the policy.
    pub const FORMAT: u32 = 2;

    /// The state that is to be saved.
    pub fn saved(&self) -> SavedRun {
        SavedRun {
            policy: self.policy.save(),
            verdict: self.tracker.state().clone(),
            cohorts: self.cohorts.saved().clone(),
            race: self.race.clone(),
        }
    }

    /// The run that was saved, with the policy of `spec` started at `setup`; `None` if the state
    /// does not fit.
    pub fn restore(
        (spec, setup): (&PolicySpec, Setup),
        target: Target,
        roster: Roster,
        saved: SavedRun,
    ) -> Option<Self> {
        let format = spec.start(setup).format();
        let policy = spec.restore(setup, format, &saved.policy)?;
        let rankers = roster.rankers();
        let is_sound = policy.tally().rankers() == rankers
            && saved.verdict.is_sound(policy.tally(), &roster)
            && saved.race.is_sound(rankers)
            && saved.cohorts.is_sound(rankers);
        is_sound.then_some(())?;
        let tracker = VerdictTracker::restore(target, saved.verdict, roster.active().len());
        let cohorts = Cohorts::restore(saved.cohorts);
        Some(Self::with(policy, roster, tracker, cohorts, saved.race))
    }
}
