//! The few counts over time that estimates need: how often each ranker was shown at a bounded
//! number of moments, and how often each pair is compared of late. Kept while folding, so that
//! nobody ever reads the log for a curve.

use super::SmallCounts;
use crate::Duel;

use crate::pairs::pair_index;
use crate::tally::MAX_STEPS;

/// Most moments that are kept. When there are so many, every other one goes and they become twice
/// as far apart.
pub const CHECKPOINTS_MAX: usize = 128;
/// Steps after which what is "of late" begins to fade.
const FADE_FROM: u64 = 1024;

/// Counts of an experiment over time. A function of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct History {
    rankers: usize,
    /// Time-steps: answered duels and self-duels.
    steps: u64,
    /// Steps between two checkpoints.
    every: u64,
    stretches: Vec<Stretch>,
    /// Places on pages since the newest checkpoint.
    since: Vec<u64>,
    /// Comparisons of each pair, triangular; halved whenever the number of steps has doubled.
    recent: SmallCounts,
    /// Steps, halved with them.
    recent_steps: u64,
    /// Steps at which both are halved next.
    fade_at: u64,
}

/// From one checkpoint to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Stretch {
    position: u64,
    steps: u64,
    recorded_at: i64,
    shown: Vec<u64>,
}

/// How far an experiment was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Log position.
    pub position: u64,
    /// Time-steps until then.
    pub steps: u64,
    /// Unix milliseconds at which the entry was recorded.
    pub recorded_at: i64,
    /// Places on pages of each ranker until then; they add up to twice the steps.
    pub shown: Vec<u64>,
}

impl History {
    /// Nothing yet, of `rankers`.
    pub fn new(rankers: usize) -> Self {
        Self {
            rankers,
            steps: 0,
            every: 1,
            stretches: Vec::new(),
            since: vec![0; rankers],
            recent: SmallCounts::new(rankers * (rankers - 1) / 2),
            recent_steps: 0,
            fade_at: FADE_FROM,
        }
    }

    /// Room for one more ranker, with the next index; it was never shown.
    pub fn enlist(&mut self) {
        self.stretches.iter_mut().for_each(|stretch| stretch.shown.push(0));
        self.since.push(0);
        self.recent.extend_by(self.rankers);
        self.rankers += 1;
    }

    /// `count` comparisons of a pair, not a self-duel.
    pub fn compared(&mut self, duel: Duel, count: u64) {
        self.since[duel.first] += count;
        self.since[duel.second] += count;
        let more = u32::try_from(count).unwrap_or(u32::MAX);
        self.recent.add(pair_index(duel.first, duel.second), more);
        self.advance(count);
    }

    /// `count` self-duels of `ranker`.
    pub fn shown_alone(&mut self, ranker: usize, count: u64) {
        self.since[ranker] += 2 * count;
        self.advance(count);
    }

    fn advance(&mut self, count: u64) {
        self.steps += count;
        self.recent_steps += count;
        while self.steps >= self.fade_at {
            self.recent.halve();
            self.recent_steps /= 2;
            self.fade_at = self.fade_at.saturating_mul(2);
        }
    }

    /// The entry at `position`, recorded at `recorded_at` (unix milliseconds), is counted.
    pub fn counted(&mut self, position: u64, recorded_at: i64) {
        let last = self.stretches.last().map_or(0, |stretch| stretch.steps);
        if self.steps - last < self.every {
            return;
        }
        let shown = std::mem::replace(&mut self.since, vec![0; self.rankers]);
        self.stretches.push(Stretch { position, steps: self.steps, recorded_at, shown });
        if self.stretches.len() == CHECKPOINTS_MAX {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.every = self.every.saturating_mul(2);
        let mut kept = Vec::with_capacity(CHECKPOINTS_MAX);
        let mut stretches = std::mem::take(&mut self.stretches).into_iter();
        while let (Some(first), Some(mut second)) = (stretches.next(), stretches.next()) {
            second.shown.iter_mut().zip(&first.shown).for_each(|(sum, shown)| *sum += shown);
            kept.push(second);
        }
        self.stretches = kept;
    }

    /// Time-steps so far: answered duels and self-duels.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The checkpoints, ascending; fewer than [`CHECKPOINTS_MAX`]. The newest may be a little
    /// before now.
    pub fn checkpoints(&self) -> Vec<Checkpoint> {
        let mut shown = vec![0; self.rankers];
        self.stretches
            .iter()
            .map(|stretch| {
                shown.iter_mut().zip(&stretch.shown).for_each(|(sum, more)| *sum += more);
                let Stretch { position, steps, recorded_at, .. } = *stretch;
                Checkpoint { position, steps, recorded_at, shown: shown.clone() }
            })
            .collect()
    }

    /// Comparisons of `{i, j}` for each time-step, of late: what lies back by half the experiment
    /// counts half.
    pub fn rate(&self, i: usize, j: usize) -> f64 {
        if i == j || self.recent_steps == 0 {
            return 0.0;
        }
        f64::from(self.recent.get(pair_index(i, j))) / self.recent_steps as f64
    }

    /// Whether the shapes and counts fit together; those of a decoded one may not.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let places = || self.stretches.iter().flat_map(|stretch| &stretch.shown).chain(&self.since);
        self.rankers == rankers
            && self.every > 0
            && self.steps <= MAX_STEPS
            && self.recent_steps <= self.steps
            && self.fade_at > self.steps.max(FADE_FROM - 1)
            && places().try_fold(0, |sum: u64, &places| sum.checked_add(places))
                == Some(2 * self.steps)
            && self.since.len() == rankers
            && self.recent.len() == rankers * rankers.saturating_sub(1) / 2
            && self.stretches.len() < CHECKPOINTS_MAX
            && self.stretches.iter().all(|stretch| stretch.shown.len() == rankers)
            && self.stretches.windows(2).all(|pair| pair[0].steps < pair[1].steps)
            && self.stretches.last().is_none_or(|last| last.steps <= self.steps)
    }
}
