//! SAVAGE for the Borda winner with one unknown per ranker: its mean against a random opponent
//! (`lab/notes/comparators.md` §11.2).

use rand::RngExt;

use crate::policies::explore::confidence::{Interval, LargestOther, Radius};
use crate::policies::explore::explore_then_exploit::{Exploration, SavedExploration};
use crate::policies::explore::round_robin::RoundRobin;
use crate::{Duel, InFlight, Observation, PolicyRng, Tally};

/// The exploration. A duel samples the unknown of its first ranker; the statistics of its opponent
/// do not change.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct BordaArms {
    #[serde(skip)]
    radius: Radius,
    #[serde(skip)]
    intersect: bool,
    /// The active rankers with their turns.
    turns: RoundRobin,
    /// Of each ranker.
    arms: Vec<Arm>,
}

#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
struct Arm {
    interval: Interval,
    half_wins: u64,
    half_plays: u64,
}

impl BordaArms {
    pub(super) fn new(rankers: usize, radius: Radius, intersect: bool) -> Self {
        let unknown = Arm { interval: Interval::UNIT, half_wins: 0, half_plays: 0 };
        let (turns, arms) = (RoundRobin::new(rankers), vec![unknown; rankers]);
        Self { radius, intersect, turns, arms }
    }

    fn leader(arms: &[Arm], value: impl Fn(&Arm) -> f64) -> usize {
        (1..arms.len())
            .fold(0, |best, i| if value(&arms[i]) > value(&arms[best]) { i } else { best })
    }
}

impl Arm {
    fn mean(&self) -> f64 {
        if self.half_plays == 0 { 0.5 } else { self.half_wins as f64 / self.half_plays as f64 }
    }
}

impl SavedExploration for BordaArms {
    fn resume(self, decoded: Self) -> Option<Self> {
        let rankers = self.arms.len();
        let sound = |arm: &Arm| {
            arm.interval.is_sound() && arm.half_wins <= arm.half_plays && arm.half_plays < 1 << 62
        };
        (decoded.arms.len() == rankers && decoded.arms.iter().all(sound)).then_some(())?;
        Some(Self { turns: decoded.turns.resume(rankers)?, arms: decoded.arms, ..self })
    }
}

impl Exploration for BordaArms {
    /// A random ranker whose turn it is, and any other ranker. The random choice spreads concurrent
    /// requests, so duels in flight are ignored.
    fn ask(&self, _in_flight: &InFlight, rng: &mut PolicyRng) -> Duel {
        let first = self.turns.draw(|_| 0, rng).unwrap_or(0) as usize;
        let second = rng.random_range(0..self.arms.len() - 1);
        Duel::new(first, if second < first { second } else { second + 1 })
    }

    fn learn(&mut self, _tally: &Tally, observation: &Observation) -> Option<usize> {
        let first = observation.duel.first;
        self.turns.record(first as u32);
        let (won, lost) = observation.outcome.half_wins();
        let arm = &mut self.arms[first];
        arm.half_wins += u64::from(won);
        arm.half_plays += u64::from(won + lost);
        if arm.half_plays > 0 {
            let radius = self.radius.after(arm.half_plays as f64 / 2.0);
            arm.interval = arm.interval.narrowed((arm.mean(), radius), self.intersect);
        }
        // i is independent once b_i ≤ a_j for some other j, or b_k ≤ a_i for all other k
        let arms = &self.arms;
        let lows = LargestOther::of(arms.iter().map(|arm| arm.interval.low));
        let highs = LargestOther::of(arms.iter().map(|arm| arm.interval.high));
        self.turns.retain(|arm| {
            let i = arm as usize;
            let Interval { low, high } = arms[i].interval;
            high > lows.than(i) && highs.than(i) > low
        });
        self.turns.open().is_empty().then(|| Self::leader(arms, |arm| arm.interval.low))
    }

    fn guess(&self, _tally: &Tally) -> usize {
        Self::leader(&self.arms, Arm::mean)
    }
}
