//! The state of MergeRUCB.

use crate::merge::ranker_batches::RankerBatches;
use dueling_bandits::policies::choose;
use dueling_bandits::{
    Bandit, Duel, InFlight, Observation, PolicyRng, Selection, Setup, Tally, step_rng,
};

#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// `p`.
    pub(super) batch_size: usize,
    pub(super) alpha: f64,
    /// `C`.
    pub(super) constant: f64,
}

#[derive(Debug)]
pub(super) struct Tournament {
    rules: Rules,
    seed: u64,
    tally: Tally,
    batches: RankerBatches,
}

impl Tournament {
    pub(super) fn new(Setup { rankers, seed }: Setup, rules: Rules) -> Self {
        let batches = RankerBatches::new(rankers, rules.batch_size, &mut step_rng(seed, 0));
        Self { rules, seed, tally: Tally::new(rankers), batches }
    }

    /// `α ln(t + C)`.
    fn width(&self) -> f64 {
        self.rules.alpha * libm::log(self.tally.steps() as f64 + 1.0 + self.rules.constant)
    }

    /// Step 2, in a batch of two or more.
    fn pair(&self, batch: &[u16], in_flight: &InFlight, rng: &mut PolicyRng) -> Option<Duel> {
        let members = || batch.iter().map(|&i| usize::from(i));
        let c = choose::uniform(members(), rng)?;
        let width = self.width();
        let others = members().filter(|&j| j != c);
        let d = choose::argmax(
            others.map(|j| (j, upper(&self.tally, j, c, width, in_flight.of(j, c)))),
            rng,
        )?;
        Some(Duel::new(c, d))
    }
}

/// `u[i][j]` with `width = α ln(t + C)`; duels in flight count in the radius only.
fn upper(tally: &Tally, i: usize, j: usize, width: f64, pending: u32) -> f64 {
    let pending = f64::from(pending);
    match tally.mean(i, j) {
        Some(mean) => mean + (width / (tally.plays(i, j) + pending)).sqrt(),
        None if pending > 0.0 => 1.0 + 1.0 / (1.0 + pending),
        None => f64::INFINITY,
    }
}

impl Bandit for Tournament {
    fn tally(&self) -> &Tally {
        &self.tally
    }

    fn select(&self, in_flight: &InFlight, rng: &mut PolicyRng) -> Selection {
        let batch = self.batches.current(rng);
        let several = batch.len() > 1;
        let duel = several.then(|| self.pair(batch, in_flight, rng)).flatten();
        let alone = usize::from(batch[0]);
        duel.map_or(Selection::of(alone, alone), |Duel { first, second }| {
            Selection::of(first, second)
        })
    }

    /// Steps 3 to 6.
    fn observe(&mut self, observation: &Observation) {
        let Duel { first, second } = observation.duel;
        self.tally.record(observation.duel, observation.outcome); // step 3
        let mut rng = step_rng(self.seed, self.tally.steps());
        let width = self.width();
        // step 4; the pair of a late duel may be in two batches by now, and then counts in the
        // tally only
        if let Some(at) = self.batches.common(first, second) {
            let tally = &self.tally;
            self.batches.prune(at, |i, j| upper(tally, i, j, width, 0) < 0.5, &mut rng);
        }
        self.batches.merge(self.tally.rankers(), self.rules.batch_size, &mut rng); // step 6
    }

    fn observe_self_duels(&mut self, _ranker: usize, count: u64) {
        self.tally.skip(count);
    }

    fn champion(&self) -> usize {
        self.tally.copeland_leader_among(&self.batches.survivors())
    }
}
