//! The verdict of a run: the stopping rule, applied while results arrive, and its result for ever.
//!
//! [`VerdictTracker`] follows a tally. After every comparison, and with many rankers after every few,
//! it checks the rankers with the largest empirical Copeland score by [`CopelandRule`]; with a
//! margin, pairs within it count for both. Once one is certified, the verdict is *latched*: later
//! counts do not take it back, because the guarantee is for the first time that the rule is
//! satisfied. The tracker is a deterministic function of the observed comparisons.
//!
//! A check that cannot find anything is left out: one comparison raises the capital of a truth by a
//! limited factor, so a check also tells for how many comparisons more, and of which pairs, there
//! can be no verdict ([`CopelandRule::others_lack`]). These numbers are not saved. They change no
//! verdict, and after a restart the first check finds them again.
//!
//! # Changes of the roster
//!
//! Which rankers come or go can depend on the counts so far, so those counts are no evidence for
//! the new roster. After each change the verdict starts again with fresh counts and an error of its
//! own: `0.9 δ` before the first change and `0.1 δ / (r (r + 1))` after change number `r`. All of
//! them sum to `δ`. A latched verdict of the earlier roster is dropped: it was about other rankers.

mod check;
mod state;

pub use state::{State, Verdict};

use crate::evidence::certificate::{
    Blocking, ClaimTargets, CopelandRule, FewOutcomes, PairEvidence, largest,
};
use crate::evidence::lead::LeadEvidence;
use crate::evidence::outlooks::Outlooks;
use crate::evidence::pair_checks::{Open, PairChecks};
use crate::evidence::quiet::Quiet;
use crate::evidence::refuters::Refuters;
use crate::evidence::remembered::Remembered;
use crate::evidence::scores::Score;
use crate::{Duel, Outcome, Tally};

/// Share of the error that is spent before the roster first changes.
const FIRST_SHARE: f64 = 0.9;
/// With up to so many rankers there is a check after every comparison, and the evidence of all
/// pairs is remembered between two checks. With more, one comparison in a 64th of their square is
/// checked, as is the time of a check: their verdicts take thousands of comparisons and more.
const CHECKED_EACH: usize = 22;
/// Most rankers of the same score whose evidence is compared to find the leader, and most rankers
/// for which that is done.
const LEADERS_MAX: usize = 8;
const FEW: usize = 64;
/// From so many rankers on, many pairs have the same few outcomes.
const MANY: usize = 128;

/// What a verdict must achieve.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Target {
    /// In (0, 1): the verdict is wrong in at most a share `1 - confidence` of experiments.
    pub confidence: f64,
    /// In [0, 0.49]: pairs whose preference is within the margin of 1/2 may go either way.
    pub margin: f64,
}

/// Where the evidence for one ranker stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The ranker.
    pub ranker: usize,
    /// Each active rival, and the logarithm of the evidence that the rival is no better a winner.
    pub rivals: Vec<(usize, f64)>,
    /// What the evidence must reach against every rival: `ln(1/δ)`.
    pub threshold: f64,
}

/// Finds the verdict of a run.
#[derive(Debug, Clone)]
pub struct VerdictTracker {
    target: Target,
    mixture: LeadEvidence,
    rule: CopelandRule,
    state: State,
    /// What blocked each ranker at its last check: where the next check starts. This and what
    /// follows change no result.
    blocking: Vec<Option<Blocking>>,
    remembered: Remembered,
    quiet: Quiet,
}

impl VerdictTracker {
    /// No comparisons yet among `rankers` active rankers.
    pub fn new(target: Target, rankers: usize) -> Self {
        let refuters = refuters_of(rankers);
        Self::restore(target, State { refuters, ..State::default() }, rankers)
    }

    /// The tracker that [`VerdictTracker::state`] was taken from, with `rankers` active rankers.
    pub fn restore(target: Target, state: State, rankers: usize) -> Self {
        Self {
            target,
            mixture: LeadEvidence::over(target.margin),
            rule: rule_of(target, &state, rankers),
            state,
            blocking: Vec::new(),
            remembered: Remembered::default(),
            quiet: Quiet::default(),
        }
    }

    /// A tracker for counts that no tracker followed, of a roster that never changed.
    pub fn of_counts(target: Target, tally: &Tally, active: &[usize]) -> Self {
        let rankers = tally.rankers();
        let pairs = (0..rankers).flat_map(|i| (0..i).map(move |j| (i, j)));
        let half_plays: u64 = pairs.map(|(i, j)| tally.half_plays(i, j)).sum();
        if half_plays == 0 {
            return Self::new(target, active.len());
        }
        let state = State { comparisons: half_plays / 2, ..State::default() };
        let mut tracker = Self::restore(target, state, active.len());
        tracker.check(tally, active, None);
        tracker
    }

    /// What is to be saved.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Estimated bytes in memory that grow with the number of pairs.
    pub fn bytes(&self) -> usize {
        let uncounted = self.state.uncounted.as_ref().map_or(0, Tally::bytes);
        let refuters = self.state.refuters.as_ref().map_or(0, Refuters::bytes);
        uncounted + self.remembered.bytes() + self.state.scores.bytes() + refuters
    }

    /// What the verdict must achieve.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Comparisons that count, since the roster last changed.
    pub fn comparisons(&self) -> u64 {
        self.state.comparisons
    }

    /// The latched verdict.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.state.verdict.as_ref()
    }

    /// `ln(1/δ)` of the present roster.
    pub fn threshold(&self) -> f64 {
        self.rule.threshold()
    }

    /// A comparison of `duel` was added to `tally`, whose active rankers are `active`.
    pub fn observe(&mut self, tally: &Tally, active: &[usize], duel: Duel) {
        let is_due = self.count(active, Some(duel), 1);
        self.follow(tally, active, None);
        if is_due {
            self.check(tally, active, None);
        }
    }

    /// `count` comparisons of any pairs were added to `tally`.
    pub fn observe_several(&mut self, tally: &Tally, active: &[usize], count: u64) {
        let is_due = self.count(active, None, count);
        self.follow(tally, active, None);
        if is_due {
            self.check(tally, active, None);
        }
    }

    /// As [`VerdictTracker::observe`], where the `outlooks` contain the comparison or hear of it
    /// later: they are only brought up to date for a check.
    pub fn observe_with(
        &mut self,
        tally: &Tally,
        active: &[usize],
        duel: Duel,
        outlooks: &mut Outlooks,
    ) {
        let is_due = self.count(active, Some(duel), 1);
        self.follow(tally, active, Some(outlooks));
        if is_due {
            outlooks.catch_up(&self.evidence(tally, active));
            self.check(tally, active, Some(outlooks));
        }
    }

    /// `count` comparisons of `duel` were added to `tally`, and nothing else has changed since
    /// `checks` was made. As [`VerdictTracker::observe`], and faster with many rankers.
    pub fn observe_pair(
        &mut self,
        tally: &Tally,
        active: &[usize],
        (duel, count): (Duel, u64),
        checks: &mut PairChecks,
    ) {
        let is_due = self.count(active, Some(duel), count);
        self.follow(tally, active, None);
        if active.len() <= CHECKED_EACH {
            if is_due {
                self.check(tally, active, None);
            }
            return;
        }
        let evidence = self.evidence(tally, active);
        checks.changed(&evidence, duel);
        let open = match &self.state.verdict {
            None => Open::Verdict,
            Some(verdict) if verdict.condorcet_steps.is_none() => Open::Condorcet(verdict.winner()),
            Some(_) => Open::Nothing,
        };
        let null = 0.5 - self.target.margin;
        if is_due && !checks.find_nothing(&self.rule, &evidence, null, open, duel) {
            self.check(tally, active, None);
        }
    }

    /// Count comparisons of one pair, or of any. Returns whether a check is due that could find
    /// something.
    fn count(&mut self, active: &[usize], duel: Option<Duel>, count: u64) -> bool {
        let every = self.checks_every(active.len());
        let checks_before = self.state.comparisons / every;
        self.state.comparisons += count;
        if self.verdict().is_some_and(|verdict| verdict.condorcet_steps.is_some()) {
            return false;
        }
        let place = |ranker| active.binary_search(&ranker).ok();
        let pair = duel.and_then(|duel| Some((place(duel.first)?, place(duel.second)?)));
        let is_quiet = self.quiet.lasts(pair, count);
        !is_quiet && self.state.comparisons / every > checks_before
    }

    /// Choose the refuters anew if that is due.
    fn follow(&mut self, tally: &Tally, active: &[usize], outlooks: Option<&Outlooks>) {
        let comparisons = self.state.comparisons;
        let is_due = |refuters: &Refuters| refuters.is_due(comparisons);
        if self.state.verdict.is_some() || !self.state.refuters.as_ref().is_some_and(is_due) {
            return;
        }
        let Some(mut refuters) = self.state.refuters.take() else { return };
        let counts = PairEvidence::new(&self.mixture, tally, active)
            .without(self.state.uncounted.as_ref())
            .with_scores(&self.state.scores);
        match outlooks {
            Some(outlooks) => refuters.choose(&outlooks.read(&counts), comparisons),
            None if active.len() <= CHECKED_EACH => {
                let known = self.remembered.all_of(&counts);
                refuters.choose(&counts.with_evidence(known), comparisons);
            }
            None => refuters.choose(&counts, comparisons),
        }
        self.state.refuters = Some(refuters);
    }

    /// Comparisons from one check to the next. A check takes a time that grows with the square of
    /// the number of active rankers.
    pub fn checks_every(&self, active: usize) -> u64 {
        let rankers = active as u64;
        if active <= CHECKED_EACH { 1 } else { rankers * rankers / 64 }
    }

    /// The roster changed: the verdict starts again. `tally` has the counts so far.
    pub fn roster_changed(&mut self, tally: &Tally, rankers: usize) {
        self.state = State {
            changes: self.state.changes + 1,
            uncounted: Some(tally.clone()),
            refuters: refuters_of(rankers),
            ..State::default()
        };
        self.rule = rule_of(self.target, &self.state, rankers);
        self.blocking.clear();
        self.quiet.end();
    }

    /// The comparison that comes next counts by its score: `tally` has its outcome by then, and
    /// [`VerdictTracker::observe`] is called. `count` comparisons, if there are several.
    pub fn score(&mut self, duel: Duel, score: Score, count: u32) {
        self.state.scores.add(duel, score, count);
    }

    /// A score that was added does not count, or not yet.
    pub fn unscore(&mut self, duel: Duel, score: Score) {
        self.state.scores.remove(duel, score);
        self.quiet.end();
    }

    /// An answer of `tally` does not count, or not yet.
    pub fn leave_out(&mut self, tally: &Tally, duel: Duel, outcome: Outcome) {
        let uncounted = self.state.uncounted.get_or_insert_with(|| Tally::new(tally.rankers()));
        while uncounted.rankers() < tally.rankers() {
            uncounted.enlist();
        }
        uncounted.record(duel, outcome);
        // an outcome less can raise the evidence of the other ranker
        self.quiet.end();
    }

    /// `count` answers that were left out count from here on. [`VerdictTracker::observe_several`]
    /// is to follow, once for all of them.
    pub fn count_again(&mut self, duel: Duel, outcome: Outcome, count: u32) {
        self.quiet.end();
        if let Some(uncounted) = &mut self.state.uncounted {
            uncounted.remove_run(duel, outcome, count);
        }
    }

    /// Whether an answer was ever left out since the verdict last started, or started with answers
    /// that do not count.
    pub fn leaves_out(&self) -> bool {
        self.state.uncounted.is_some()
    }

    /// The wins of `tally` that count, by their outcomes.
    pub fn counted(&self, tally: &Tally) -> Tally {
        let mut counted = tally.clone();
        if let Some(uncounted) = &self.state.uncounted {
            counted.remove(uncounted);
        }
        counted
    }

    /// Look for a verdict now, without waiting for the next regular check. O(K² log K).
    pub fn check_now(&mut self, tally: &Tally, active: &[usize]) {
        self.check(tally, active, None);
    }

    /// Take the verdict back unless the counts of now certify it too, with the refuters of `decides`.
    /// That tracker counts fewer answers and has no verdict, and this one is to come to the same. A
    /// verdict of a run is final.
    pub fn reconsider(&mut self, decides: &Self, tally: &Tally, active: &[usize]) {
        self.state.refuters.clone_from(&decides.state.refuters);
        self.rule = rule_of(self.target, &self.state, active.len());
        self.quiet.end();
        self.state.verdict = None;
        self.check(tally, active, None);
    }

    /// `ln E` of a ranker that won so often against another one, and lost so often.
    pub(crate) fn ln_evidence(&self, won: f64, lost: f64) -> f64 {
        self.mixture.ln(won, lost)
    }

    /// The evidence that the claims of a proof need. `evidence` is that of this tracker.
    pub(super) fn claim_targets<'a>(&'a self, evidence: PairEvidence<'a>) -> ClaimTargets<'a> {
        self.rule.claim_targets(evidence)
    }

    /// The evidence of the pairs of `active`, by their place in it.
    pub fn evidence<'a>(&'a self, tally: &'a Tally, active: &'a [usize]) -> PairEvidence<'a> {
        PairEvidence::new(&self.mixture, tally, active)
            .without(self.state.uncounted.as_ref())
            .with_scores(&self.state.scores)
            .with_refuters(self.state.refuters.as_ref())
    }

    /// [`CopelandRule::ln_capital`](super::certificate::CopelandRule::ln_capital) of places.
    pub(super) fn ln_capital(&self, evidence: &PairEvidence, a: usize, j: usize) -> f64 {
        self.rule.ln_capital(evidence, a, j)
    }

    /// Where the evidence for `ranker`, one of `active`, stands. O(K² log K).
    pub fn standing(&self, tally: &Tally, active: &[usize], ranker: usize) -> Standing {
        let few = (active.len() >= MANY).then(|| FewOutcomes::of(&self.mixture));
        let evidence = self.evidence(tally, active).with_few(few.as_ref());
        let place = active.iter().position(|&i| i == ranker).unwrap_or(0);
        let capitals = self.rule.ln_capitals(&evidence, place);
        let rivals = capitals.into_iter().map(|(j, capital)| (active[j], capital)).collect();
        Standing { ranker, rivals, threshold: self.rule.threshold() }
    }

    /// The ranker nearest to a verdict, with its standing: the winner once there is one, else the
    /// one of the rankers with the largest empirical Copeland score whose weakest evidence is the
    /// strongest. Ties go to the lowest index. With a margin, pairs within it count for both.
    pub fn leader(&self, tally: &Tally, active: &[usize]) -> Standing {
        if let Some(verdict) = &self.state.verdict {
            return self.standing(tally, active, verdict.winner());
        }
        let evidence = self.evidence(tally, active);
        let compared = if active.len() <= FEW { LEADERS_MAX } else { 1 };
        let leaders = leading(&evidence, self.target).into_iter().take(compared);
        let standings = leaders.map(|x| self.standing(tally, active, active[x]));
        let weakest = |standing: &Standing| {
            standing.rivals.iter().map(|&(_, ln)| ln).fold(f64::INFINITY, f64::min)
        };
        standings
            .reduce(|best, next| if weakest(&next) > weakest(&best) { next } else { best })
            .unwrap_or(Standing { ranker: 0, rivals: Vec::new(), threshold: self.threshold() })
    }

    /// The verdict on `tally` alone at another target, as if it was read now for the first time.
    pub fn judge(&self, target: Target, tally: &Tally, active: &[usize]) -> Self {
        // refuters of another margin have other evidence
        let is_same = target.margin == self.target.margin;
        let refuters = self.state.refuters.clone().filter(|_| is_same);
        let state = State { verdict: None, refuters, ..self.state.clone() };
        let mut judge = Self::restore(target, state, active.len());
        judge.check(tally, active, None);
        judge
    }
}

/// The rankers with the largest empirical Copeland score, by place and ascending. With a margin,
/// pairs within it count for both. Only these can get a verdict.
fn leading(evidence: &PairEvidence, target: Target) -> Vec<usize> {
    largest(&evidence.empirical_scores(0.5 - target.margin))
}

/// The refuters at the start of a stretch with so many rankers.
fn refuters_of(rankers: usize) -> Option<Refuters> {
    CopelandRule::follows(rankers).then(|| Refuters::new(rankers))
}

/// The rule of the present stretch: after so many changes of the roster.
fn rule_of(target: Target, state: &State, rankers: usize) -> CopelandRule {
    let change = f64::from(state.changes);
    let share = match state.changes {
        0 => FIRST_SHARE,
        _ => (1.0 - FIRST_SHARE) / (change * (change + 1.0)),
    };
    let (rankers, error) = (rankers.max(2), (1.0 - target.confidence) * share);
    match state.refuters {
        Some(_) => CopelandRule::following(rankers, error, target.margin),
        None => CopelandRule::new(rankers, error, target.margin),
    }
}
