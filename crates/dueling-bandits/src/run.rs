//! A run: a policy, which of its answers count for the verdict, and the verdict.
//!
//! The policy learns from every answer. The verdict counts one answer of each unit, in complete
//! [`Cohorts`]. A policy that plans for the verdict sees the evidence in two [views](View): what
//! counts so far, and what is expected to count once the answers that wait have been counted.
//!
//! With a control, the run owns the [claims](crate::claims) against it, and with declared segments
//! the claims about them. They count what the verdict counts, and select some of the duels. A run
//! can look for [drift](crate::claims::drift) in the same answers. The verdict starts again where
//! the rankers change; the claims go on, with all answers to duels issued before and after. Where
//! preferences change and that is to start the verdict again, these claims start again too.

use crate::claims::control::{ControlClaims, Goal};
use crate::claims::drift::Drift;
use crate::claims::segments::SegmentClaims;
use crate::evidence::balance::Cell;
use crate::evidence::cohorts::{Admission, Completed, EqualAnswers};
use crate::evidence::{Cohorts, Counted, Race, Score, Target, TimedAnswer, VerdictTracker, View};
use crate::run::changes::{Change, Changes};
use crate::{
    Duel, Observation, Policy, PolicyRng, Roster, RosterError, Selection, VerdictPlanning,
};

mod as_bandit;
mod baskets;
mod changes;
mod saved;

pub use saved::SavedRun;

/// The target of a policy that plans for none.
const DEFAULT_TARGET: Target = Target { confidence: 0.95, margin: 0.0 };

/// The targets of the verdict and of the claims beside it, which have errors of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Targets {
    /// Of the verdict.
    pub verdict: Target,
    /// Of the claims against the control.
    pub control: Target,
    /// Of the claims about segments.
    pub segments: Target,
}

impl From<Target> for Targets {
    fn from(target: Target) -> Self {
        Self { verdict: target, control: target, segments: target }
    }
}

/// A policy with the verdict on its answers.
///
/// ```
/// use dueling_bandits::run::Run;
/// use dueling_bandits::{Bandit, InFlight, Outcome, PolicySpec, Setup, step_rng};
///
/// let spec = PolicySpec::from_text("d-ts-verdict:margin=0.01")?;
/// let mut run = Run::of(spec.start(Setup { rankers: 4, seed: 1 }));
/// let mut rng = step_rng(1, 0);
/// while run.verdict().verdict().is_none() {
///     let selection = run.select(&InFlight::new(), &mut rng);
///     let lower_is_first = selection.duel.first < selection.duel.second;
///     // a lower ranker always wins
///     run.observe_shown(selection, if lower_is_first { Outcome::First } else { Outcome::Second });
/// }
/// assert_eq!(run.champion(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Run {
    targets: Targets,
    policy: Box<dyn Policy>,
    roster: Roster,
    tracker: VerdictTracker,
    cohorts: Cohorts,
    race: Race,
    /// Which answers are expected to count; `None` where answers count as they arrive.
    expected: Option<Counted>,
    /// The claims against the control; `None` if none was ever named.
    claims: Option<Box<ControlClaims>>,
    /// The claims about segments; `None` without declared segments.
    segments: Option<Box<SegmentClaims>>,
    /// `None` where nobody looks for drift.
    drift: Option<Drift>,
    /// The changes of roster and control that the claims follow later.
    changes: Changes,
    /// Whether an alarm about drift starts the verdict again.
    restarts: bool,
}

impl Run {
    /// A run towards the verdict that the policy plans for, in which every answer counts at once.
    pub fn of(mut policy: Box<dyn Policy>) -> Self {
        let target = policy.verdict_planning().map_or(DEFAULT_TARGET, |planning| planning.target());
        Self::new(policy, target, 0)
    }

    /// A run whose answers come within `window_ms` of the issue of their duels. With 0, an answer
    /// counts as it arrives.
    pub fn new(policy: Box<dyn Policy>, targets: impl Into<Targets>, window_ms: i64) -> Self {
        let targets = targets.into();
        let roster = Roster::new(policy.tally().rankers());
        let tracker = VerdictTracker::of_counts(targets.verdict, policy.tally(), roster.active());
        let cohorts = Cohorts::new(window_ms);
        Self { targets, ..Self::with(policy, roster, tracker, cohorts, Race::default()) }
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
        let mut run = Self {
            targets: tracker.target().into(),
            policy,
            roster,
            tracker,
            cohorts,
            race,
            expected,
            claims: None,
            segments: None,
            drift: None,
            changes: Changes::default(),
            restarts: false,
        };
        run.show_evidence();
        run
    }

    /// Look for drift from the start, before the first step.
    pub fn look_for_drift(&mut self) {
        self.drift = Some(Drift::new(self.roster.rankers()));
    }

    /// Make claims about this many segments from the start, before the first step.
    pub fn start_with_segments(&mut self, segments: usize) {
        let claims = || Box::new(SegmentClaims::new(self.targets.segments, segments));
        self.segments = (segments > 0).then(claims);
    }

    /// Whether an alarm about drift starts the verdict and the claims again from here on. Not part
    /// of the saved state.
    pub fn restart_on_drift(&mut self, restarts: bool) {
        self.restarts = restarts;
    }

    /// Keep `ranker` out of the tournament from the start, before the first step.
    pub fn hold_out(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.policy.retire(ranker)?;
        self.roster.retire(ranker)?;
        // the error of the verdict is not spent by this change
        self.tracker = VerdictTracker::new(self.tracker.target(), self.roster.active().len());
        self.show_evidence();
        Ok(())
    }

    /// `control` is the ranker that people see today, from the first step on.
    pub fn start_with_control(&mut self, control: usize, goal: Goal) {
        self.claims_towards(goal);
        self.make(Change::Control(control as u16));
    }

    /// `control` is the ranker that people see from this time on. The goal is that of the first
    /// control that is named.
    pub fn change_control(&mut self, control: usize, goal: Goal, at: i64) {
        self.claims_towards(goal);
        self.change(Change::Control(control as u16), at);
    }

    fn claims_towards(&mut self, goal: Goal) {
        let (target, rankers) = (self.targets.control, self.roster.rankers());
        self.claims.get_or_insert_with(|| Box::new(ControlClaims::new(target, goal, rankers)));
    }

    /// The control once all duels are counted that were issued before it was named; `None` if it is
    /// the control already.
    pub fn next_control(&self) -> Option<usize> {
        self.changes.control()
    }

    /// The claims about segments are about the winner and the control of now.
    fn follow_segments(&mut self) {
        let Some(segments) = &mut self.segments else { return };
        let winner = self.tracker.winner();
        let control = self.claims.as_ref().and_then(|claims| claims.control());
        let (tally, counted) = (self.policy.tally(), self.tracker.counted());
        let wins = |x: usize, y: usize| counted.wins(tally, x, y);
        segments.follow(winner, control, &wins, &self.changes.active_before(&self.roster));
    }

    /// `comparisons` were counted at once or as a whole cohort, whose duels were issued from this
    /// time on. Returns whether an alarm about drift was raised.
    fn check_claims(&mut self, comparisons: u64, issued_at: i64, at: i64) -> bool {
        if let Some(claims) = &mut self.claims {
            claims.counted(comparisons, &self.changes.active_before(&self.roster));
        }
        if let Some(segments) = &mut self.segments {
            segments.counted(comparisons);
            self.follow_segments();
        }
        self.drift.as_mut().is_some_and(|drift| drift.check(issued_at, at))
    }

    /// The claims against the control; `None` if none was ever named.
    pub fn claims(&self) -> Option<&ControlClaims> {
        self.claims.as_deref()
    }

    /// The claims about segments; `None` if none was declared.
    pub fn segments(&self) -> Option<&SegmentClaims> {
        self.segments.as_deref()
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

    /// The claim that preferences have changed; `None` where nobody looks for drift.
    pub fn drift(&self) -> Option<&Drift> {
        self.drift.as_ref()
    }

    /// Estimated bytes in memory that the verdict and the claims take.
    pub fn bytes(&self) -> usize {
        let views = if self.expected.is_some() { 2 } else { 1 };
        let claims = self.claims.as_ref().map_or(0, |claims| claims.bytes());
        let segments = self.segments.as_ref().map_or(0, |segments| segments.bytes());
        let drift = self.drift.as_ref().map_or(0, Drift::bytes);
        views * self.tracker.bytes() + self.cohorts.bytes() + claims + segments + drift
    }

    /// The next duel that a claim needs.
    pub fn claimed(&self, rng: &mut PolicyRng) -> Option<Selection> {
        let winner = self.tracker.winner();
        let (tally, active) = (self.policy.tally(), self.roster.active());
        let takes_part = |control| self.roster.is_active(control);
        let control = self.claims().filter(|claims| claims.control().is_some_and(takes_part));
        let of_control = control.and_then(|claims| claims.select(winner, tally, active, rng));
        of_control.or_else(|| self.segments.as_ref()?.select(winner?, rng))
    }

    /// Fold one answered duel, which arrived `at` this time. It counts now, later, or not at all.
    /// Call [`Run::catch_up`] before the next selection. `batch` and `ticket` are those of its
    /// selection.
    pub fn observe_timed(
        &mut self,
        answer: &TimedAnswer,
        batch: Option<u32>,
        ticket: u64,
        at: i64,
    ) {
        let &TimedAnswer { duel, outcome, score, segment, .. } = answer;
        self.policy.observe_deferred(&Observation { duel, outcome, batch, ticket });
        let added = self.cohorts.add(answer);
        let admission = added.admission;
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
                _ => expected.leave_out(tally, &EqualAnswers::by_outcome(duel, outcome, 1)),
            }
            for answers in &added.no_longer_expected {
                expected.leave_out(tally, answers);
            }
        }
        let count = u64::from(admission == Admission::Counted);
        self.race.observe(&self.tracker, tally, active, count, at);
        let mut raised = false;
        // with cohorts, only pages without a winner count as they arrive
        if count > 0 && self.cohorts.window_ms() == 0 {
            self.count_for_claims(&EqualAnswers { duel, outcome, score, segment, count: 1 });
            raised = self.check_claims(1, answer.issued_at, at);
        }
        self.show_changed_evidence(added.no_longer_expected.is_empty().then_some(duel));
        self.restart_after(raised, at);
    }

    /// Answers count for the claims, those with a score as its coin fell where outcomes count. Call
    /// [`Run::compared`] afterwards if the policy has folded them through [`Run::policy_mut`].
    pub fn count_for_claims(&mut self, answers: &EqualAnswers) {
        let outcome = answers.score.map_or(answers.outcome, Score::by_coin);
        let answers = &EqualAnswers { outcome, ..*answers };
        if let Some(claims) = &mut self.claims {
            claims.count(answers);
        }
        if let Some(segments) = &mut self.segments {
            segments.count(answers);
        }
        if let Some(drift) = &mut self.drift {
            drift.count(answers.duel, answers.outcome, answers.count);
        }
    }

    /// No answer of a duel issued before `until` can come any more: count them, cohort by cohort in
    /// the order of issue.
    pub fn complete(&mut self, until: i64, at: i64) {
        while let Some((from, change)) = self.changes.take_until(until) {
            // it is among those that the claims have not followed until these are counted
            self.count_cohorts(from, at);
            self.make(change);
        }
        self.count_cohorts(until, at);
    }

    fn count_cohorts(&mut self, until: i64, at: i64) {
        let completed = self.cohorts.complete(until);
        if completed.is_empty() {
            return;
        }
        let mut raised = false;
        for (start, cohort) in completed {
            let (of_verdict, mut comparisons) = (self.cohorts.verdict_counts(start), 0);
            for Completed { answers, counts, expected } in cohort {
                if counts {
                    if of_verdict {
                        self.tracker.count_again(&answers);
                    }
                    comparisons += u64::from(answers.count);
                    self.count_for_claims(&answers);
                } else if let (true, Some(view)) = (expected, &mut self.expected) {
                    view.leave_out(self.policy.tally(), &answers);
                }
            }
            if comparisons > 0 {
                let (tally, active) = (self.policy.tally(), self.roster.active());
                if of_verdict {
                    self.tracker.observe_several(tally, active, comparisons);
                    self.race.observe(&self.tracker, tally, active, comparisons, at);
                }
                raised |= self.check_claims(comparisons, start, at);
            }
        }
        self.show_changed_evidence(None);
        self.restart_after(raised, at);
    }

    /// Duels issued after this time have another window; see [`Cohorts::change_window`].
    pub fn change_window(&mut self, window_ms: i64, at: i64) -> bool {
        self.cohorts.change_window(window_ms, at)
    }

    /// Count duels of complete cohorts, or a sample of them, answered or not.
    pub fn add_duels(&mut self, duels: Cell) {
        self.cohorts.add_duels(duels);
    }

    /// The policy, to fold comparisons that were counted elsewhere. Afterwards, call
    /// [`Run::count_for_claims`] for each outcome, and [`Run::compared`] once for all of them.
    pub fn policy_mut(&mut self) -> &mut dyn Policy {
        &mut *self.policy
    }

    /// Count `count` comparisons that the policy has folded.
    pub fn compared(&mut self, count: u64, at: i64) {
        let (tally, active) = (self.policy.tally(), self.roster.active());
        self.cohorts.counted_elsewhere(count);
        self.tracker.observe_several(tally, active, count);
        self.race.observe(&self.tracker, tally, active, count, at);
        let raised = self.check_claims(count, at, at);
        self.show_changed_evidence(None);
        self.restart_after(raised, at);
    }

    /// Do the work that [`Run::observe_timed`] postponed.
    pub fn catch_up(&mut self) {
        self.policy.catch_up();
    }

    /// Add one ranker, with the next index, at this time. The verdict starts again, with duels
    /// issued after this time.
    pub fn enlist(&mut self, at: i64) -> Result<(), RosterError> {
        let mut roster = self.roster.clone();
        roster.enlist()?;
        self.policy.enlist()?;
        self.roster = roster;
        if let Some(claims) = &mut self.claims {
            claims.enlist();
        }
        self.restart_verdict(at);
        self.change(Change::Enlisted(self.roster.rankers() as u16 - 1), at);
        Ok(())
    }

    /// Never select `ranker` again. Its counts stay. The verdict starts again, with duels issued
    /// after this time.
    pub fn retire(&mut self, ranker: usize, at: i64) -> Result<(), RosterError> {
        self.policy.retire(ranker)?;
        if self.roster.retire(ranker)? {
            self.restart_verdict(at);
            self.change(Change::Retired(ranker as u16), at);
        }
        Ok(())
    }

    /// If an alarm about drift was raised, verdict and claims start again where they are to.
    fn restart_after(&mut self, raised: bool, at: i64) {
        if let Some(drift) = self.drift.as_mut().filter(|_| raised && self.restarts) {
            drift.restarted();
            self.restart_verdict(at);
            // the alarm rests on what was counted, so nothing waits as for an act of a person
            if let Some(claims) = &mut self.claims {
                claims.start_again(&self.changes.active_before(&self.roster));
            }
            if let Some(segments) = &mut self.segments {
                segments.start_again();
            }
        }
    }

    /// Start the verdict again, with duels issued after this time.
    fn restart_verdict(&mut self, at: i64) {
        self.tracker.roster_changed(self.policy.tally(), self.roster.active().len());
        self.cohorts.start_verdict_again(at);
        self.race.roster_changed();
        if self.expected.is_some() {
            let waiting = self.cohorts.expected();
            self.expected = Some(self.tracker.counted().with_waiting(&waiting));
        }
        self.show_evidence();
    }

    /// Show the policy all evidence.
    fn show_evidence(&mut self) {
        if let Some((planning, view)) = self.planning() {
            planning.read(&view);
        }
    }

    /// Show the policy the evidence of the pair of `duel`, which has changed; `None` if that of any
    /// pair may have.
    fn show_changed_evidence(&mut self, duel: Option<Duel>) {
        if let Some((planning, view)) = self.planning() {
            planning.follow(&view, duel);
        }
    }

    /// The policy, if it plans for the verdict, and what it sees of the evidence.
    fn planning(&mut self) -> Option<(&mut dyn VerdictPlanning, View<'_>)> {
        let planning = self.policy.verdict_planning()?;
        let (tracker, expected) = (&self.tracker, self.expected.as_ref());
        let counted = (tracker.comparisons() + self.cohorts.waiting()) as f64;
        let answers = counted + self.cohorts.left_out().total() as f64;
        let counting = if answers > 0.0 { counted / answers } else { 1.0 };
        Some((planning, View { tracker, expected, counting }))
    }
}
