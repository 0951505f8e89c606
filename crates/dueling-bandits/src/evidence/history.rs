//! The counts over time that estimates need: how often each ranker was shown, at a bounded number
//! of checkpoints, and how often each pair was compared recently. Kept while folding, so that a
//! curve never needs the log.

use crate::Duel;
use crate::pairs::pair_index;
use crate::tally::MAX_STEPS;

/// Limit of the number of checkpoints. When it is reached, every other checkpoint is dropped and
/// the distance between checkpoints doubles.
pub const CHECKPOINTS_MAX: usize = 128;
/// Steps after which the recent counts are halved for the first time.
const FADE_FROM: u64 = 1024;

/// Counts over time. A function of the folded duels and their times alone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct History {
    rankers: usize,
    /// Time-steps: answered duels and self-duels.
    steps: u64,
    /// Steps between two checkpoints.
    every: u64,
    stretches: Vec<Stretch>,
    /// Appearances of each ranker since the newest checkpoint.
    since: Vec<u64>,
    /// Comparisons of each pair, in the order of [`pair_index`]; halved whenever the number of
    /// steps has doubled.
    recent: Vec<u32>,
    /// Steps, halved together with `recent`.
    recent_steps: u64,
    /// Step at which both are halved next.
    fade_at: u64,
}

/// The time from one checkpoint to the next. `shown` has the appearances in it, all else is as of
/// its end.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Stretch {
    position: u64,
    steps: u64,
    recorded_at: i64,
    shown: Vec<u64>,
}

/// The totals at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Log position.
    pub position: u64,
    /// Time-steps so far.
    pub steps: u64,
    /// Unix milliseconds at which the entry was recorded.
    pub recorded_at: i64,
    /// Appearances of each ranker so far: two for each step.
    pub shown: Vec<u64>,
}

impl History {
    /// No steps yet of `rankers` rankers.
    pub fn new(rankers: usize) -> Self {
        Self {
            rankers,
            steps: 0,
            every: 1,
            stretches: Vec::new(),
            since: vec![0; rankers],
            recent: vec![0; rankers * (rankers - 1) / 2],
            recent_steps: 0,
            fade_at: FADE_FROM,
        }
    }

    /// Add one ranker, with the next index and no appearances.
    pub fn enlist(&mut self) {
        self.stretches.iter_mut().for_each(|stretch| stretch.shown.push(0));
        self.since.push(0);
        self.recent.resize(self.recent.len() + self.rankers, 0);
        self.rankers += 1;
    }

    /// Count `count` comparisons of a pair, not a self-duel.
    pub fn compared(&mut self, duel: Duel, count: u64) {
        self.since[duel.first] += count;
        self.since[duel.second] += count;
        let more = u32::try_from(count).unwrap_or(u32::MAX);
        let recent = &mut self.recent[pair_index(duel.first, duel.second)];
        *recent = recent.saturating_add(more);
        self.advance(count);
    }

    /// Count `count` self-duels of `ranker`.
    pub fn shown_alone(&mut self, ranker: usize, count: u64) {
        self.since[ranker] += 2 * count;
        self.advance(count);
    }

    fn advance(&mut self, count: u64) {
        self.steps += count;
        self.recent_steps += count;
        while self.steps >= self.fade_at {
            self.recent.iter_mut().for_each(|count| *count /= 2);
            self.recent_steps /= 2;
            self.fade_at = self.fade_at.saturating_mul(2);
        }
    }

    /// Note that all duels up to log position `position` are counted, the newest of them recorded
    /// at `recorded_at` (unix milliseconds). Adds a checkpoint if one is due.
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

    /// The checkpoints, ascending; fewer than [`CHECKPOINTS_MAX`]. The newest may be older than the
    /// newest step.
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

    /// Recent comparisons of `{i, j}` per time-step. Earlier comparisons weigh less: their weight
    /// halves each time the number of steps doubles.
    pub fn rate(&self, i: usize, j: usize) -> f64 {
        if i == j || self.recent_steps == 0 {
            return 0.0;
        }
        f64::from(self.recent[pair_index(i, j)]) / self.recent_steps as f64
    }

    /// Whether the counts are consistent and of `rankers` rankers. A decoded history may not be.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let appearances =
            || self.stretches.iter().flat_map(|stretch| &stretch.shown).chain(&self.since);
        self.rankers == rankers
            && self.every > 0
            && self.steps <= MAX_STEPS
            && self.recent_steps <= self.steps
            && self.fade_at > self.steps.max(FADE_FROM - 1)
            && appearances().try_fold(0, |sum: u64, &more| sum.checked_add(more))
                == Some(2 * self.steps)
            && self.since.len() == rankers
            && self.recent.len() == rankers * rankers.saturating_sub(1) / 2
            && self.stretches.len() < CHECKPOINTS_MAX
            && self.stretches.iter().all(|stretch| stretch.shown.len() == rankers)
            && self.stretches.windows(2).all(|pair| pair[0].steps < pair[1].steps)
            && self.stretches.last().is_none_or(|last| last.steps <= self.steps)
    }
}
