//! The policy that PCOMP, SCOMP and SCOMP2 share, around a [`PairSelection`].

use crate::parameters::Setup;
use crate::policies::batch::{Ledger, Rows};
use crate::policies::comp::evidence::{Evidence, Rule};
use crate::policies::comp::field::Field;
use crate::policies::comp::pair_selection::{Closed, PairSelection};
use crate::policies::comp::parameters::BatchParameters;
use crate::policies::comp::standing::Standing;
use crate::saved_state::{load_state, save_state};
use crate::{
    Bandit, BatchPair, BatchProgress, Batches, InFlight, Observation, Policy, PolicyRng, Selection,
    Tally,
};

/// The saved state.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct State<S> {
    tally: Tally,
    field: Field,
    selection: S,
    ledger: Ledger,
    /// The results of the earlier batches of the open round.
    round_so_far: Rows,
    /// Number of comparisons requested by all batches so far.
    asked: u64,
}

/// A running policy with one of the three pair selections.
#[derive(Debug)]
pub(super) struct Batched<S> {
    parameters: BatchParameters,
    rule: Rule,
    state: State<S>,
    /// Derived from the tally and the field.
    standing: Standing,
}

impl<S: PairSelection> Batched<S> {
    pub(super) fn start(
        parameters: BatchParameters,
        setup: Setup,
        selection: S,
    ) -> Box<dyn Policy> {
        let field = Field { active: (0..setup.rankers).collect(), round: 1 };
        let tally = Tally::new(setup.rankers);
        let standing = Standing::new(&tally, &field.active);
        let state = State {
            tally,
            field,
            selection,
            ledger: Ledger::default(),
            round_so_far: Rows::default(),
            asked: 0,
        };
        let mut policy = Self { parameters, rule: parameters.rule(setup.rankers), state, standing };
        policy.open_batch();
        Box::new(policy)
    }

    pub(super) fn restore(
        parameters: BatchParameters,
        setup: Setup,
        bytes: &[u8],
    ) -> Option<Box<dyn Policy>> {
        let mut state: State<S> = load_state(bytes)?;
        let active = &state.field.active;
        let sound = state.tally.rankers() == setup.rankers
            && active.windows(2).all(|pair| pair[0] < pair[1])
            && active.last().is_some_and(|&last| last < setup.rankers)
            && state.selection.is_sound(setup.rankers)
            && u64::from(state.field.round) <= parameters.horizon + 1
            && state.asked <= parameters.horizon;
        sound.then_some(())?;
        state.ledger = state.ledger.resume(setup.rankers)?;
        let standing = Standing::new(&state.tally, &state.field.active);
        Some(Box::new(Self { parameters, rule: parameters.rule(setup.rankers), state, standing }))
    }

    /// Commit to the next batch, if there is one. Returns the results of the previous batch.
    fn open_batch(&mut self) -> Rows {
        let state = &mut self.state;
        let done = state.field.active.len() == 1;
        let duels = if done { Vec::new() } else { state.selection.pairs(&state.field) };
        let each = self.parameters.comparisons_per_pair(state.field.round);
        let (asked, learnt) = state.ledger.open(duels, each, self.parameters.horizon - state.asked);
        state.asked += asked;
        learnt
    }

    /// Learn from the completed batch, and open the next one.
    fn adapt(&mut self) {
        let state = &mut self.state;
        let evidence = Evidence {
            rule: &self.rule,
            estimates: self.parameters.estimates(),
            all: &state.tally,
            round: [&state.round_so_far, state.ledger.learnt()],
        };
        let remaining = state.field.active.len();
        let closed = state.selection.learn(&mut state.field, &evidence);
        if state.field.active.len() < remaining {
            self.standing = Standing::new(&state.tally, &state.field.active);
        }
        let learnt = self.open_batch();
        self.state.round_so_far = match closed {
            Closed::Round => Rows::default(),
            Closed::PartOfRound => learnt,
        };
    }

    fn fold(&mut self, observation: &Observation, mut count: u32) {
        while count > 0 {
            let was_open = self.state.ledger.number().is_some();
            let folded = self.state.ledger.record(observation, count);
            self.standing.record(&mut self.state.tally, observation, folded);
            if was_open && self.state.ledger.number().is_none() {
                self.adapt();
            }
            count -= folded;
        }
    }
}

impl<S: PairSelection> Bandit for Batched<S> {
    fn tally(&self) -> &Tally {
        &self.state.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        self.state.ledger.draw(in_flight, rng).unwrap_or_else(|| {
            let champion = self.champion();
            Selection::of(champion, champion)
        })
    }

    fn observe(&mut self, observation: &Observation) {
        self.fold(observation, 1);
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.state.tally.skip(count);
    }

    fn champion(&self) -> usize {
        self.standing.champion(&self.state.field.active)
    }
}

impl<S: PairSelection> Batches for Batched<S> {
    fn number(&self) -> Option<u32> {
        self.state.ledger.number()
    }

    fn most(&self) -> u32 {
        let rounds = self.parameters.batches();
        S::most_batches(rounds).saturating_add(self.state.ledger.skipped())
    }

    fn progress(&self) -> BatchProgress {
        self.state.ledger.progress()
    }

    fn pairs_after(&self, skipped: usize) -> Box<dyn Iterator<Item = BatchPair> + '_> {
        Box::new(self.state.ledger.pairs_after(skipped))
    }
}

impl<S: PairSelection> Policy for Batched<S> {
    fn observe_run(&mut self, observation: &Observation, count: u32) {
        self.fold(observation, count);
    }

    fn batches(&self) -> Option<&dyn Batches> {
        Some(self)
    }

    fn renumber_batch(&mut self, number: u32) {
        self.state.ledger.renumber(number);
    }

    fn save(&self) -> Vec<u8> {
        save_state(&self.state)
    }
}
