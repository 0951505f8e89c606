//! The verdict of a run: the stopping rule, applied while results arrive, and its result for ever.
//!
//! [`VerdictTracker`] follows a tally. After every comparison, and with many rankers after every
//! few, it checks the rankers with the largest empirical Copeland score by [`CopelandRule`]; with a
//! margin, pairs within it count for both. Once one is certified, the verdict is *latched*: later
//! counts do not take it back, because the guarantee is for the first time that the rule is
//! satisfied. The tracker is a deterministic function of the counted comparisons.
//!
//! # Changes of the roster
//!
//! Which rankers come or go can depend on the counts so far, so those counts are no evidence for
//! the new roster. After each change the verdict starts again with fresh counts and an error of its
//! own: `0.9 δ` before the first change and `0.1 δ / (r (r + 1))` after change number `r`. All of
//! them sum to `δ`. A latched verdict of the earlier roster is dropped: it was about other rankers.

mod counted;

pub use counted::Counted;

use crate::evidence::certificate::{CopelandRule, PairEvidence, largest};
use crate::evidence::cohorts::EqualAnswers;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::refuters::Refuters;
use crate::evidence::scores::Score;
use crate::{Duel, Outcome, Roster, Tally};

/// Share of the error that is spent before the roster first changes.
const FIRST_SHARE: f64 = 0.9;
/// With up to this many rankers there is a check after every comparison. With more, the number of
/// comparisons from one check to the next is their square over [`RANKER_PAIRS_A_CHECK`], because
/// the time of a check grows with the square. Verdicts on that many take thousands of comparisons.
const CHECKED_EACH: usize = 22;
const RANKER_PAIRS_A_CHECK: u64 = 64;
/// Most rankers of the same score whose evidence is compared to find the leader.
const LEADERS_MAX: usize = 8;
/// Most active rankers for which their evidence is compared at all.
const COMPARED_RANKERS_MAX: usize = 64;

/// The requirements of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Target {
    /// In (0, 1): the verdict is wrong in at most a share `1 - confidence` of experiments.
    pub confidence: f64,
    /// In [0, 0.49]: pairs whose preference is within the margin of 1/2 may go either way.
    pub margin: f64,
}

/// A certified winner.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Verdict {
    /// The certified Copeland winners: the leader, then all others that were certified with it.
    pub winners: Vec<u16>,
    /// Steps of the tally at which it was certified, self-duels included.
    pub steps: u64,
    /// Comparisons since the roster last changed.
    pub comparisons: u64,
    /// Steps at which the winner was certified as the Condorcet winner too; `None` before that.
    pub condorcet_steps: Option<u64>,
}

impl Verdict {
    /// The winner: the first of the winners.
    pub fn winner(&self) -> usize {
        self.winners.first().copied().unwrap_or_default().into()
    }
}

/// Where the evidence for one ranker stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The ranker.
    pub ranker: usize,
    /// Each active rival, and the logarithm of the evidence that the rival is no better a winner.
    pub rivals: Vec<(usize, f64)>,
    /// The evidence that is needed against every rival: `ln(1/δ)`.
    pub threshold: f64,
}

/// The saved state of a [`VerdictTracker`].
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct State {
    /// Changes of the roster so far.
    changes: u32,
    counted: Counted,
    /// Comparisons since the newest change that count.
    comparisons: u64,
    verdict: Option<Verdict>,
    /// `None` without a margin, with two rankers, or for counts that no tracker followed.
    refuters: Option<Refuters>,
}

impl State {
    /// Whether a decoded state fits `tally` and its roster.
    pub fn is_sound(&self, tally: &Tally, roster: &Roster) -> bool {
        let active = |&winner: &u16| {
            usize::from(winner) < roster.rankers() && roster.is_active(winner.into())
        };
        let known = self.verdict.as_ref().is_none_or(|verdict| {
            !verdict.winners.is_empty() && verdict.winners.iter().all(active)
        });
        let refuters = self.refuters.as_ref();
        (self.changes == 0 || self.counted.leaves_out())
            && refuters.is_none_or(|refuters| refuters.is_sound(roster.active().len()))
            && self.comparisons <= tally.steps()
            && known
            && self.counted.is_sound(tally)
    }
}

/// Finds the verdict of a run.
#[derive(Debug, Clone)]
pub struct VerdictTracker {
    target: Target,
    mixture: LeadEvidence,
    rule: CopelandRule,
    state: State,
    /// The rival that blocked each ranker at its last check: where the next check starts. This
    /// field and the next one only save time.
    blocking: Vec<Option<usize>>,
    /// `ln E(x≻y)` at `x * K + y`; empty after changes of many pairs, until the next check.
    ln_evidence: Vec<f64>,
}

impl VerdictTracker {
    /// No comparisons yet among `rankers` active rankers.
    pub fn new(target: Target, rankers: usize) -> Self {
        let refuters = refuters_of(target, rankers);
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
            ln_evidence: Vec::new(),
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
        tracker.check(tally, active);
        tracker
    }

    /// The state to save.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Estimated bytes in memory that grow with the number of pairs.
    pub fn bytes(&self) -> usize {
        let refuters = self.state.refuters.as_ref().map_or(0, Refuters::bytes);
        self.state.counted.bytes() + size_of_val(self.ln_evidence.as_slice()) + refuters
    }

    /// The requirements of the verdict.
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

    /// The winner of the verdict.
    pub fn winner(&self) -> Option<usize> {
        self.verdict().map(Verdict::winner)
    }

    /// Whether a verdict on these counts would name this ranker, alone or with others.
    pub fn would_name(&self, winner: usize, tally: &Tally, active: &[usize]) -> bool {
        let judged = self.judge(self.target(), tally, active);
        let certified = judged.verdict().map_or(&[][..], |verdict| &verdict.winners);
        certified.iter().any(|&certified| usize::from(certified) == winner)
    }

    /// `ln(1/δ)` of the present roster.
    pub fn threshold(&self) -> f64 {
        self.rule.threshold()
    }

    /// The rule of the present roster.
    pub(crate) fn rule(&self) -> &CopelandRule {
        &self.rule
    }

    /// Which answers count.
    pub fn counted(&self) -> &Counted {
        &self.state.counted
    }

    /// The same tracker where other answers count.
    pub fn counting(self, counted: Counted) -> Self {
        Self { state: State { counted, ..self.state }, ln_evidence: Vec::new(), ..self }
    }

    /// A comparison counts by its score. Call [`VerdictTracker::observe`] for it afterwards.
    pub fn score(&mut self, duel: Duel, score: Score) {
        self.state.counted.score(duel, score, 1);
    }

    /// An answer of `tally` does not count, or not yet.
    pub fn leave_out(&mut self, tally: &Tally, duel: Duel, outcome: Outcome) {
        let answers = EqualAnswers::by_outcome(duel, outcome, 1);
        self.state.counted.leave_out(tally, &answers);
        self.ln_evidence.clear();
    }

    /// Answers that were left out count from here on, by their score if they have one. Call
    /// [`VerdictTracker::observe_several`] afterwards, once for all of them.
    pub fn count_again(&mut self, answers: &EqualAnswers) {
        self.state.counted.count_again(answers);
        self.ln_evidence.clear();
    }

    /// A comparison of `duel` was added to `tally`, whose active rankers are `active`.
    pub fn observe(&mut self, tally: &Tally, active: &[usize], duel: Duel) {
        let place = |ranker| active.binary_search(&ranker).ok();
        let rankers = active.len();
        if let (false, Some(x), Some(y)) =
            (self.ln_evidence.is_empty(), place(duel.first), place(duel.second))
        {
            let evidence = self.evidence_of_counts(tally, active);
            let (x_over_y, y_over_x) = (evidence.ln_of_counts(x, y), evidence.ln_of_counts(y, x));
            self.ln_evidence[x * rankers + y] = x_over_y;
            self.ln_evidence[y * rankers + x] = y_over_x;
        }
        self.advance(tally, active, 1);
    }

    /// `count` comparisons of any pairs were added to `tally`.
    pub fn observe_several(&mut self, tally: &Tally, active: &[usize], count: u64) {
        self.ln_evidence.clear();
        self.advance(tally, active, count);
    }

    /// Count comparisons that were added to `tally`, choose refuters if that is due, and check if
    /// that is due.
    fn advance(&mut self, tally: &Tally, active: &[usize], count: u64) {
        let interval = check_interval(active.len());
        let checks_before = self.state.comparisons / interval;
        self.state.comparisons += count;
        let comparisons = self.state.comparisons;
        let is_due = |refuters: &Refuters| refuters.is_due(comparisons);
        if self.state.verdict.is_none() && self.state.refuters.as_ref().is_some_and(is_due) {
            self.fill_ln_evidence(tally, active);
            if let Some(mut refuters) = self.state.refuters.take() {
                refuters.choose(&self.evidence(tally, active), comparisons);
                self.state.refuters = Some(refuters);
            }
        }
        let lacks_condorcet = |verdict: &Verdict| verdict.condorcet_steps.is_none();
        let can_change = self.state.verdict.as_ref().is_none_or(lacks_condorcet);
        if can_change && comparisons / interval > checks_before {
            self.check(tally, active);
        }
    }

    /// The roster changed: the verdict starts again. `tally` has the counts so far.
    pub fn roster_changed(&mut self, tally: &Tally, rankers: usize) {
        let state = State {
            changes: self.state.changes + 1,
            counted: Counted::none_of(tally),
            refuters: refuters_of(self.target, rankers),
            ..State::default()
        };
        *self = Self::restore(self.target, state, rankers);
    }

    /// Look for a verdict now, without waiting for the next regular check. O(K² log K).
    pub fn check(&mut self, tally: &Tally, active: &[usize]) {
        if active.len() < 2 {
            return;
        }
        self.fill_ln_evidence(tally, active);
        let mut blocking = std::mem::take(&mut self.blocking);
        blocking.resize(active.len(), None);
        let evidence = self.evidence(tally, active);
        let mut certifies = |x: usize| {
            let rival = self.rule.blocks(&evidence, x, blocking[x]);
            blocking[x] = rival.or(blocking[x]);
            rival.is_none()
        };
        let found = match &self.state.verdict {
            None => {
                let leading = leading(&evidence, self.target);
                leading.into_iter().find(|&x| certifies(x)).map(|leader| {
                    let others = (0..active.len()).filter(|&x| x != leader);
                    let certified = std::iter::once(leader).chain(others.filter(|&x| certifies(x)));
                    let winners = certified.map(|x| active[x] as u16).collect();
                    let steps = tally.steps();
                    let is_condorcet = self.rule.certifies_condorcet(&evidence, leader);
                    let condorcet_steps = is_condorcet.then_some(steps);
                    Verdict { winners, steps, comparisons: self.state.comparisons, condorcet_steps }
                })
            }
            Some(verdict) if verdict.condorcet_steps.is_none() => {
                let winner = active.binary_search(&verdict.winner());
                let is_certain = winner.is_ok_and(|x| self.rule.certifies_condorcet(&evidence, x));
                is_certain
                    .then(|| Verdict { condorcet_steps: Some(tally.steps()), ..verdict.clone() })
            }
            Some(_) => None,
        };
        self.blocking = blocking;
        if found.is_some() {
            self.state.verdict = found;
        }
    }

    /// Compute the evidence of all pairs, unless that is done.
    fn fill_ln_evidence(&mut self, tally: &Tally, active: &[usize]) {
        let rankers = active.len();
        if self.ln_evidence.len() == rankers * rankers {
            return;
        }
        let evidence = self.evidence_of_counts(tally, active);
        let mut ln_evidence = vec![0.0; rankers * rankers];
        for x in 0..rankers {
            for y in (0..rankers).filter(|&y| y != x) {
                ln_evidence[x * rankers + y] = evidence.ln_of_counts(x, y);
            }
        }
        self.ln_evidence = ln_evidence;
    }

    /// The evidence of the pairs of `active`, by their place in it, from the counts that count.
    pub fn evidence<'a>(&'a self, tally: &'a Tally, active: &'a [usize]) -> PairEvidence<'a> {
        let evidence = self.evidence_of_counts(tally, active);
        match self.ln_evidence.len() == active.len() * active.len() {
            true => evidence.with_ln(&self.ln_evidence),
            false => evidence,
        }
    }

    /// The same where other answers count.
    pub(crate) fn evidence_where<'a>(
        &'a self,
        counted: &'a Counted,
        tally: &'a Tally,
        active: &'a [usize],
    ) -> PairEvidence<'a> {
        PairEvidence::new(&self.mixture, tally, active)
            .with_counted(counted)
            .with_refuters(self.state.refuters.as_ref())
    }

    fn evidence_of_counts<'a>(&'a self, tally: &'a Tally, active: &'a [usize]) -> PairEvidence<'a> {
        self.evidence_where(&self.state.counted, tally, active)
    }

    /// Where the evidence for `ranker`, one of `active`, stands. O(K² log K).
    pub fn standing(&self, tally: &Tally, active: &[usize], ranker: usize) -> Standing {
        let place = active.iter().position(|&i| i == ranker).unwrap_or(0);
        let capitals = self.rule.ln_capitals(&self.evidence(tally, active), place);
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
        let compared = if active.len() <= COMPARED_RANKERS_MAX { LEADERS_MAX } else { 1 };
        let leaders =
            leading(&self.evidence(tally, active), self.target).into_iter().take(compared);
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
        judge.check(tally, active);
        judge
    }
}

/// The rankers with the largest empirical Copeland score, by place and ascending. With a margin,
/// pairs within it count for both. Only these can get a verdict.
fn leading(evidence: &PairEvidence, target: Target) -> Vec<usize> {
    largest(&evidence.empirical_scores(0.5 - target.margin))
}

/// Comparisons from one check to the next with this many active rankers.
fn check_interval(active: usize) -> u64 {
    let rankers = active as u64;
    if active <= CHECKED_EACH { 1 } else { rankers * rankers / RANKER_PAIRS_A_CHECK }
}

/// The refuters at the start of a stretch with this many rankers.
fn refuters_of(target: Target, rankers: usize) -> Option<Refuters> {
    CopelandRule::uses_refuters(rankers, target.margin).then(|| Refuters::new(rankers))
}

/// The rule of the present stretch: after this many changes of the roster.
fn rule_of(target: Target, state: &State, rankers: usize) -> CopelandRule {
    let change = f64::from(state.changes);
    let share = match state.changes {
        0 => FIRST_SHARE,
        _ => (1.0 - FIRST_SHARE) / (change * (change + 1.0)),
    };
    let (rankers, error) = (rankers.max(2), (1.0 - target.confidence) * share);
    match state.refuters {
        Some(_) => CopelandRule::with_refuters(rankers, error),
        None => CopelandRule::new(rankers, error, target.margin),
    }
}
