//! The contract of a policy in a simulation ([`Bandit`]), of one that is served ([`Policy`]), and of
//! those with batches or plans for a verdict.

use std::fmt::Debug;

use crate::evidence::{Target, View};
use crate::run::Run;
use crate::{
    Duel, InFlight, Observation, Outcome, PairCounts, PolicyRng, RosterError, Selection, Tally,
};

/// A dueling-bandit policy: all that a simulation needs of it.
///
/// Rankers are indices `0..K`. A step is one folded comparison, whatever its outcome, or one
/// self-duel.
///
/// Selecting only reads; observing is deterministic. The same parameters, seed and observations
/// therefore give the same state on every machine.
pub trait Bandit: Send + Sync + Debug {
    /// The win counts and the number of steps folded so far.
    fn tally(&self) -> &Tally;

    /// Choose the next duel. `in_flight` counts the selected duels that have no outcome yet; a
    /// policy may let them narrow its bounds or fill its batch.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection;

    /// Fold one answered duel. Deterministic.
    fn observe(&mut self, observation: &Observation);

    /// Fold `count` self-duels of `ranker`: `count` steps without a comparison.
    fn observe_self_duels(&mut self, ranker: usize, count: u64);

    /// Fold the step of a selection that was shown. The outcome of a self-duel is not read.
    fn observe_shown(&mut self, selection: Selection, outcome: Outcome) {
        match selection.duel.is_self() {
            true => self.observe_self_duels(selection.duel.first, 1),
            false => self.observe(&selection.observed(outcome)),
        }
    }

    /// The ranker to recommend now. Defined at every step, and the same on every machine.
    fn champion(&self) -> usize {
        self.tally().copeland_leader()
    }

    /// The run of a served policy, which has its verdict; `None` for all others.
    fn run(&self) -> Option<&Run> {
        None
    }
}

/// A policy that the service serves: its state can be saved.
///
/// Only some policies have [batches](Policy::batches), rankers that can change
/// ([`Policy::enlist`]), or plan for a verdict ([`Policy::verdict_planning`]).
pub trait Policy: Bandit {
    /// Whether [`Bandit::select`] reads `in_flight`. Where it does not, callers need not
    /// synchronise their counts before they select.
    fn uses_in_flight(&self) -> bool {
        true
    }

    /// Fold `count` equal observations; as [`Bandit::observe`] `count` times.
    fn observe_run(&mut self, observation: &Observation, count: u32) {
        for _ in 0..count {
            self.observe(observation);
        }
    }

    /// The batches of a policy that adapts only between batches; `None` for all others.
    fn batches(&self) -> Option<&dyn Batches> {
        None
    }

    /// Give the open batch this number, if its own is lower; the next ones follow. For a log that
    /// is folded anew, in which another batch had the number. Does nothing without batches.
    fn renumber_batch(&mut self, _number: u32) {}

    /// Add one ranker, with the next index. An error where the policy fixes its rankers at the
    /// start ([`Description::fixed_rankers`](crate::parameters::Description::fixed_rankers) has the
    /// reason).
    fn enlist(&mut self) -> Result<(), RosterError> {
        Err(RosterError::FixedRankers)
    }

    /// Never select `ranker` again. Its counts stay. Does nothing if it is retired already.
    fn retire(&mut self, _ranker: usize) -> Result<(), RosterError> {
        Err(RosterError::FixedRankers)
    }

    /// [`Bandit::observe`], with the work that only a selection needs postponed: call
    /// [`Policy::catch_up`] before the next one.
    fn observe_deferred(&mut self, observation: &Observation) {
        self.observe(observation);
    }

    /// Do the work that [`Policy::observe_deferred`] postponed. The state is then the same as after
    /// [`Bandit::observe`].
    fn catch_up(&mut self) {}

    /// Plans for a verdict; `None` where selections do not depend on one.
    fn verdict_planning(&mut self) -> Option<&mut dyn VerdictPlanning> {
        None
    }

    /// The state as bytes, for [`PolicySpec::restore`](crate::PolicySpec::restore), without derived
    /// fields. [`PolicySpec::format`](crate::PolicySpec::format) is the version of its layout.
    fn save(&self) -> Vec<u8>;
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
}

/// A policy that commits to batches of comparisons and adapts only between them. Reached by
/// [`Policy::batches`](crate::Policy::batches).
pub trait Batches {
    /// Number of the open batch, from 1; `None` while no batch is open.
    fn number(&self) -> Option<u32>;

    /// The highest number that a batch can get.
    fn most(&self) -> u32;

    /// How far the open batch is; zeros while no batch is open. The time does not grow with the
    /// batch.
    fn progress(&self) -> BatchProgress;

    /// The pairs of the open batch in a fixed order, without the first `skipped`; empty while no
    /// batch is open. The time to skip them does not grow with their number.
    fn pairs_after(&self, skipped: usize) -> Box<dyn Iterator<Item = BatchPair> + '_>;

    /// The pairs of the open batch in a fixed order; empty while no batch is open.
    fn pairs(&self) -> Box<dyn Iterator<Item = BatchPair> + '_> {
        self.pairs_after(0)
    }
}

/// How far an open batch is, over all its pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchProgress {
    /// Number of pairs.
    pub pairs: usize,
    /// Those of them that need more answers.
    pub open_pairs: usize,
    /// Comparisons that the batch asks for. The policy adapts once all are answered.
    pub needed: u64,
    /// Comparisons answered so far, at most `needed`.
    pub answered: u64,
}

/// One pair of an open batch, and its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPair {
    /// The ordered pair.
    pub duel: Duel,
    /// Comparisons that the batch asks for.
    pub needed: u32,
    /// Comparisons answered so far, at most `needed`.
    pub answered: u32,
}

/// A policy that selects duels for a verdict. Reached by
/// [`Policy::verdict_planning`](crate::Policy::verdict_planning). A [`Run`](crate::run::Run) shows
/// it the evidence; without a run it has none.
pub trait VerdictPlanning {
    /// The verdict that its parameters ask for.
    fn target(&self) -> Target;

    /// Read all evidence, at the start and after a change of the rankers or a restore. No selection
    /// depends on how often this is called.
    fn read(&mut self, view: &View<'_>);

    /// The evidence of the pair of `duel`, whose answer was observed, may have changed; without a
    /// `duel` that of any pair.
    fn follow(&mut self, view: &View<'_>, duel: Option<Duel>);
}
