//! The contract of every policy: what it selects, what it observes, what it saves.

use crate::{InFlight, Outcome, PolicyRng, Tally};

/// An ordered pair of rankers (indices from 0). Equal indices are a self-duel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Duel {
    /// The candidate; for some policies its role differs from the second's.
    pub first: usize,
    /// The challenger.
    pub second: usize,
}

impl Duel {
    /// The ordered pair (first, second).
    pub fn new(first: usize, second: usize) -> Self {
        Self { first, second }
    }

    /// Whether both are the same ranker: nothing to learn.
    pub fn is_self(self) -> bool {
        self.first == self.second
    }
}

/// What [`Policy::select`] answers. It travels with the duel and comes back in the [`Observation`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// The pair to show.
    pub duel: Duel,
    /// The batch that the duel belongs to, counted from 1; `None` outside batches.
    pub batch: Option<u32>,
    /// What the policy wants to remember of this selection when the outcome comes (0 where it needs
    /// nothing): an epoch, a step number, the probability it was drawn with.
    pub ticket: u64,
}

impl Selection {
    /// A duel outside any batch with nothing to remember.
    pub fn of(first: usize, second: usize) -> Self {
        Self { duel: Duel::new(first, second), batch: None, ticket: 0 }
    }
}

/// One answered duel, as it is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observation {
    /// The pair that was shown; never a self-duel (see [`Policy::observe_self_duels`]).
    pub duel: Duel,
    /// What it said, after the tie rule.
    pub outcome: Outcome,
    /// The batch it was selected in.
    pub batch: Option<u32>,
    /// The ticket it was selected with.
    pub ticket: u64,
}

/// Counts of a pair's comparisons, made elsewhere and handed in at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairCounts {
    /// The ordered pair.
    pub duel: Duel,
    /// Wins of the first.
    pub first_wins: u32,
    /// Wins of the second.
    pub second_wins: u32,
    /// Ties.
    pub ties: u32,
}

/// What a batch policy has committed to and how far it is: one row a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchPair {
    /// The ordered pair.
    pub duel: Duel,
    /// Comparisons the batch asks for.
    pub needed: u32,
    /// Comparisons answered so far, at most `needed`.
    pub answered: u32,
}

/// A policy that was asked for what it cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// The contract of every policy.
///
/// Shapes: rankers are indices `0..K`; a step is one folded comparison or one self-duel, whatever
/// it said.
pub trait Policy: Send + Sync + std::fmt::Debug {
    /// The win counts and the number of steps folded so far.
    fn tally(&self) -> &Tally;

    /// Choose the next duel. Reads only: any number of requests may select at once. `in_flight`
    /// holds the duels that were handed out and not answered; a policy may let them narrow its
    /// bounds or fill its batch.
    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection;

    /// Whether [`Policy::select`] looks at `in_flight`. Where it does not, requests may select
    /// without waiting for each other.
    fn uses_in_flight(&self) -> bool {
        true
    }

    /// Fold one answered duel. Deterministic.
    fn observe(&mut self, observation: &Observation);

    /// As [`Policy::observe`], for one of many: what only [`Policy::select`] reads may be out of
    /// date until [`Policy::settle`].
    fn observe_unsettled(&mut self, observation: &Observation) {
        self.observe(observation);
    }

    /// Bring up to date what [`Policy::observe_unsettled`] left; the state is then as if
    /// [`Policy::observe`] had been called each time.
    fn settle(&mut self) {}

    /// Fold `count` self-duels of `ranker`: `count` steps without a comparison.
    fn observe_self_duels(&mut self, ranker: usize, count: u64);

    /// Fold comparisons that were counted elsewhere, in a fixed order: first wins, second wins,
    /// ties. `tie` is what the experiment's rule makes of a tie; the default folds them one by one.
    fn observe_counts(
        &mut self,
        counts: &PairCounts,
        batch: Option<u32>,
        tie: &mut dyn FnMut(u64) -> Outcome,
    ) {
        let one = |outcome| Observation { duel: counts.duel, outcome, batch, ticket: 0 };
        for _ in 0..counts.first_wins {
            self.observe(&one(Outcome::First));
        }
        for _ in 0..counts.second_wins {
            self.observe(&one(Outcome::Second));
        }
        for _ in 0..counts.ties {
            let outcome = tie(self.tally().steps());
            self.observe(&one(outcome));
        }
    }

    /// The ranker to recommend if asked now. Always an answer, the same on every machine.
    fn champion(&self) -> usize {
        self.tally().copeland_leader()
    }

    /// Whether the policy commits to batches and adapts between them only.
    fn runs_in_batches(&self) -> bool {
        false
    }

    /// Number of the open batch, from 1; `None` for policies without batches and when no batch is
    /// open.
    fn batch(&self) -> Option<u32> {
        None
    }

    /// The rows of the open batch, in a fixed order; empty where [`Policy::batch`] is `None`.
    fn batch_pairs(&self) -> Vec<BatchPair> {
        Vec::new()
    }

    /// One more ranker, with the next index.
    fn enlist(&mut self) -> Result<(), Unsupported> {
        Err(Unsupported("this policy fixes its rankers at the start".into()))
    }

    /// Never select `ranker` again; its counts stay.
    fn retire(&mut self, ranker: usize) -> Result<(), Unsupported> {
        let _ = ranker;
        Err(Unsupported("this policy fixes its rankers at the start".into()))
    }

    /// Number of the layout that [`Policy::save`] writes; a state of another number is not read.
    fn format(&self) -> u32;

    /// The state as bytes, for [`PolicySpec::restore`]. What can be derived is left out.
    fn save(&self) -> Vec<u8>;
}
