//! The contract of every policy: selecting duels, observing outcomes, saving states.

use std::fmt::Debug;

use crate::evidence::scores::Score;
use crate::evidence::verdict::VerdictTracker;
#[cfg(feature = "serde")]
use crate::saved_state::SaveLater;
use crate::{
    BatchPair, Batches, DeferredUpdates, Duel, InFlight, MutableRoster, Observation, Outcome,
    PairCounts, PolicyRng, RosterError, Selection, Tally, VerdictPlanning,
};

/// A dueling-bandit policy.
///
/// Rankers are indices `0..K`. A step is one folded comparison, whatever its outcome, or one
/// self-duel.
///
/// Selecting only reads; observing is deterministic. The same parameters, seed and observations
/// therefore give the same state on every machine.
///
/// Functions that only some policies have are capabilities: [`Policy::batches`],
/// [`Policy::mutable_roster`], [`Policy::deferred_updates`], [`Policy::verdict_planning`].
pub trait Policy: Send + Sync + Debug {
    /// The win counts and the number of steps folded so far.
    fn tally(&self) -> &Tally;

    /// Choose the next duel. `in_flight` counts the selected duels that have no outcome yet; a
    /// policy may let them narrow its bounds or fill its batch.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection;

    /// Whether [`Policy::select`] reads `in_flight`. Where it does not, callers need not
    /// synchronise their counts before they select.
    fn uses_in_flight(&self) -> bool {
        true
    }

    /// Fold one answered duel. Deterministic.
    fn observe(&mut self, observation: &Observation);

    /// Fold `count` equal observations; as [`Policy::observe`] `count` times.
    fn observe_run(&mut self, observation: &Observation, count: u32) {
        for _ in 0..count {
            self.observe(observation);
        }
    }

    /// Fold `count` self-duels of `ranker`: `count` steps without a comparison.
    fn observe_self_duels(&mut self, ranker: usize, count: u64);

    /// The ranker to recommend now. Defined at every step, and the same on every machine.
    fn champion(&self) -> usize {
        self.tally().copeland_leader()
    }

    /// The batches of a policy that adapts only between batches; `None` for all others.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Adds and retires rankers; `None` where the policy fixes its rankers at the start
    /// ([`Description::fixed_rankers`](crate::parameters::Description::fixed_rankers) has the
    /// reason).
    fn mutable_roster(&mut self) -> Option<&mut dyn MutableRoster> {
        None
    }

    /// Folds many observations faster; `None` where there is nothing to postpone.
    fn deferred_updates(&mut self) -> Option<&mut dyn DeferredUpdates> {
        None
    }

    /// Plans for a verdict; `None` where selections do not depend on one.
    fn verdict_planning(&mut self) -> Option<&mut dyn VerdictPlanning> {
        None
    }

    /// Version of the layout that [`Policy::save`] writes. A state in another layout cannot be
    /// restored. With the feature `serde`.
    #[cfg(feature = "serde")]
    fn format(&self) -> u32;

    /// The state as bytes, for [`PolicySpec::restore`](crate::PolicySpec::restore), without derived
    /// fields. With the feature `serde`.
    #[cfg(feature = "serde")]
    fn save(&self) -> Vec<u8> {
        self.save_later()()
    }

    /// As [`Policy::save`], in two steps: copying the state is fast, and making bytes of the copy
    /// needs the policy no more. With the feature `serde`.
    #[cfg(feature = "serde")]
    fn save_later(&self) -> SaveLater;
}

impl dyn Policy + '_ {
    /// Fold comparisons of a pair that were counted elsewhere, in a fixed order: first wins, second
    /// wins, ties. `tie` gives the outcome of the tie at a step.
    pub fn observe_counts(
        &mut self,
        counts: &PairCounts,
        batch: Option<u32>,
        tie: &mut dyn FnMut(u64) -> Outcome,
    ) {
        let &PairCounts { duel, first_wins, second_wins, ties } = counts;
        let first_tie = self.tally().steps() + u64::from(first_wins) + u64::from(second_wins);
        let mut fold = |outcome, count| {
            self.observe_run(&Observation { duel, outcome, batch, ticket: 0 }, count);
        };
        fold(Outcome::First, first_wins);
        fold(Outcome::Second, second_wins);
        // equal ties in a row are one run
        let mut run = (Outcome::Void, 0);
        for outcome in (0..u64::from(ties)).map(|nth| tie(first_tie + nth)) {
            if outcome != run.0 {
                fold(run.0, run.1);
                run = (outcome, 0);
            }
            run.1 += 1;
        }
        fold(run.0, run.1);
    }

    /// [`Policy::observe`], with postponed work where the policy can postpone any. Call
    /// `catch_up` before the next selection.
    pub fn observe_deferred(&mut self, observation: &Observation) {
        match self.deferred_updates() {
            Some(deferred) => deferred.observe_deferred(observation),
            None => self.observe(observation),
        }
    }

    /// [`VerdictPlanning::score`], where the policy plans for a verdict.
    pub fn score(&mut self, duel: Duel, score: Score) {
        if let Some(planning) = self.verdict_planning() {
            planning.score(duel, score);
        }
    }

    /// [`VerdictPlanning::leave_out`], where the policy plans for a verdict.
    pub fn leave_out(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>) {
        if let Some(planning) = self.verdict_planning() {
            planning.leave_out(duel, outcome, score);
        }
    }

    /// [`VerdictPlanning::count_again`], where the policy plans for a verdict.
    pub fn count_again(&mut self, duel: Duel, outcome: Outcome, score: Option<Score>) {
        if let Some(planning) = self.verdict_planning() {
            planning.count_again(duel, outcome, score);
        }
    }

    /// [`VerdictPlanning::reconsider`], where the policy plans for a verdict.
    pub fn reconsider_verdict(&mut self, decides: &VerdictTracker) -> bool {
        self.verdict_planning().is_some_and(|planning| planning.reconsider(decides))
    }

    /// Do the work that `observe_deferred` postponed.
    pub fn catch_up(&mut self) {
        if let Some(deferred) = self.deferred_updates() {
            deferred.catch_up();
        }
    }

    /// Number of the open batch, from 1; `None` while no batch is open, and for policies without
    /// batches.
    pub fn batch(&self) -> Option<u32> {
        self.batches()?.number()
    }

    /// The pairs of the open batch in a fixed order; empty where `batch` is `None`. With many
    /// rankers these are many: [`Batches::pairs`] makes no list of them.
    pub fn batch_pairs(&self) -> Vec<BatchPair> {
        self.batches().map_or_else(Vec::new, |batches| batches.pairs().collect())
    }

    /// Add one ranker, with the next index.
    pub fn enlist(&mut self) -> Result<(), RosterError> {
        self.mutable_roster().ok_or(RosterError::FixedRankers)?.enlist()
    }

    /// Never select `ranker` again. Its counts stay. Does nothing if it is retired already.
    pub fn retire(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.mutable_roster().ok_or(RosterError::FixedRankers)?.retire(ranker)
    }

    /// Keep `ranker` out of the tournament from the start, before the first step.
    pub fn hold_out(&mut self, ranker: usize) -> Result<(), RosterError> {
        self.mutable_roster().ok_or(RosterError::FixedRankers)?.hold_out(ranker)
    }
}
