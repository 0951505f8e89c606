//! Win counts of all pairs, and the number of steps.

use crate::pairs::pairs_by_strips;
use crate::preference::winners::LEVEL;
use crate::{Duel, MAX_RANKERS, Outcome};

/// `W` and `t` of the papers. Wins are stored in half wins: a tie that counts half stays an
/// integer, and every comparison with 1/2 is exact (`lab/notes/comparators.md` §1.1).
///
/// ```
/// use dueling_bandits::{Duel, Outcome, Tally};
///
/// let mut tally = Tally::new(2);
/// tally.record(Duel::new(0, 1), Outcome::First);
/// tally.record(Duel::new(0, 1), Outcome::Half);
/// assert_eq!((tally.wins(0, 1), tally.wins(1, 0)), (1.5, 0.5));
/// assert_eq!(tally.mean(0, 1), Some(0.75));
/// assert_eq!(tally.copeland_leader(), 0);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Layout")]
pub struct Tally {
    rankers: usize,
    steps: u64,
    /// Row-major `K × K` half wins; the row is the winner.
    half_wins: Vec<u32>,
}

/// The serialised form of a [`Tally`], before it is checked.
#[derive(serde::Deserialize)]
struct Layout {
    rankers: usize,
    steps: u64,
    half_wins: Vec<u32>,
}

impl TryFrom<Layout> for Tally {
    type Error = &'static str;

    fn try_from(Layout { rankers, steps, half_wins }: Layout) -> Result<Self, Self::Error> {
        if !(1..=MAX_RANKERS).contains(&rankers) || half_wins.len() != rankers * rankers {
            return Err("a tally of K rankers has K × K win counts");
        }
        if (0..rankers).any(|i| half_wins[i * rankers + i] != 0) {
            return Err("a ranker has no counts against itself");
        }
        if steps > MAX_STEPS {
            return Err("the number of steps is too large");
        }
        Ok(Self { rankers, steps, half_wins })
    }
}

/// Most steps of a tally. Every step number up to this one is exact as an `f64`: three centuries at
/// a million steps a second.
pub const MAX_STEPS: u64 = 1 << 53;

impl Tally {
    /// No comparisons yet among `rankers` rankers.
    pub fn new(rankers: usize) -> Self {
        Self { rankers, steps: 0, half_wins: vec![0; rankers * rankers] }
    }

    /// Number of rankers, `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }

    /// Bytes of the win counts.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * self.half_wins.len()
    }

    /// Number of steps so far; the papers' `t` is one more.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Twice `W[i][j]`.
    pub fn half_wins(&self, i: usize, j: usize) -> u32 {
        self.half_wins[i * self.rankers + j]
    }

    /// `W[i][j]`, in wins.
    pub fn wins(&self, i: usize, j: usize) -> f64 {
        f64::from(self.half_wins(i, j)) / 2.0
    }

    /// Twice `N[i][j]`.
    pub fn half_plays(&self, i: usize, j: usize) -> u64 {
        u64::from(self.half_wins(i, j)) + u64::from(self.half_wins(j, i))
    }

    /// `N[i][j]`, in comparisons.
    pub fn plays(&self, i: usize, j: usize) -> f64 {
        self.half_plays(i, j) as f64 / 2.0
    }

    /// `N[i][j]` of all ordered pairs, row-major; 0 on the diagonal.
    pub(crate) fn all_plays(&self) -> Vec<f64> {
        let k = self.rankers;
        let mut plays = vec![0.0; k * k];
        pairs_by_strips(k).for_each(|(low, high)| {
            let both = self.plays(low, high);
            plays[low * k + high] = both;
            plays[high * k + low] = both;
        });
        plays
    }

    /// `p̂[i][j]`; `None` before the first comparison of the pair.
    pub fn mean(&self, i: usize, j: usize) -> Option<f64> {
        let plays = self.half_plays(i, j);
        (plays > 0).then(|| f64::from(self.half_wins(i, j)) / plays as f64)
    }

    /// Whether `p̂[i][j] > 1/2`, decided on integers.
    pub fn leads(&self, i: usize, j: usize) -> bool {
        self.half_wins(i, j) > self.half_wins(j, i)
    }

    /// One step: count the outcome of `duel` and advance `t` by one.
    pub fn record(&mut self, duel: Duel, outcome: Outcome) {
        self.record_run(duel, outcome, 1);
    }

    /// `count` steps with the same outcome; as [`Tally::record`] `count` times.
    pub fn record_run(&mut self, duel: Duel, outcome: Outcome, count: u32) {
        self.steps += u64::from(count);
        for (cell, half_wins) in self.cells(duel, outcome, count) {
            self.half_wins[cell] = self.half_wins[cell].saturating_add(half_wins);
        }
    }

    /// Take `count` wins that were recorded back. The steps stay.
    pub(crate) fn remove_run(&mut self, duel: Duel, outcome: Outcome, count: u32) {
        for (cell, half_wins) in self.cells(duel, outcome, count) {
            self.half_wins[cell] = self.half_wins[cell].saturating_sub(half_wins);
        }
    }

    /// The two cells of a pair, and the half wins of `count` equal outcomes in each.
    fn cells(&self, duel: Duel, outcome: Outcome, count: u32) -> [(usize, u32); 2] {
        let (i, j, k) = (duel.first, duel.second, self.rankers);
        let (first, second) = outcome.half_wins();
        [(i * k + j, first.saturating_mul(count)), (j * k + i, second.saturating_mul(count))]
    }

    /// Take the wins of `part`, which has at most as many rankers, back. The steps stay.
    pub(crate) fn remove(&mut self, part: &Tally) {
        for i in 0..part.rankers {
            for j in 0..part.rankers {
                let cell = i * self.rankers + j;
                self.half_wins[cell] = self.half_wins[cell].saturating_sub(part.half_wins(i, j));
            }
        }
    }

    /// `count` steps without a comparison.
    pub fn skip(&mut self, count: u64) {
        self.steps += count;
    }

    /// Add one ranker, with the next index and no comparisons.
    pub fn enlist(&mut self) {
        self.half_wins = widened(&self.half_wins, self.rankers);
        self.rankers += 1;
    }

    /// Empirical Copeland score of `i`, unnormalised: the number of opponents against which it
    /// leads.
    pub fn copeland_score(&self, i: usize) -> usize {
        (0..self.rankers).filter(|&j| j != i && self.leads(i, j)).count()
    }

    /// The ranker with the largest empirical Copeland score. Ties go to the larger sum of `p̂` (1/2
    /// before the first comparison), then to the lowest index. Sums that differ by no more than
    /// rounding count as equal.
    pub fn copeland_leader(&self) -> usize {
        self.copeland_leader_among(&(0..self.rankers).collect::<Vec<_>>())
    }

    /// [`Tally::copeland_leader`] of the tournament among `rankers` only; 0 if `rankers` is empty.
    pub fn copeland_leader_among(&self, rankers: &[usize]) -> usize {
        let mut scores = vec![0_usize; rankers.len()];
        pairs_by_strips(rankers.len()).for_each(|(one, other)| {
            let (i, j) = (rankers[one], rankers[other]);
            scores[one] += usize::from(self.leads(i, j));
            scores[other] += usize::from(self.leads(j, i));
        });
        let most = scores.iter().copied().max().unwrap_or(0);
        let level = rankers.iter().zip(scores).filter(|&(_, score)| score == most);
        let sum = |i: usize| -> f64 {
            let others = rankers.iter().filter(|&&j| j != i);
            others.map(|&j| self.mean(i, j).unwrap_or(0.5)).sum()
        };
        let mut level = level.map(|(&i, _)| (i, sum(i)));
        let Some(first) = level.next() else { return 0 };
        let is_more = |one: f64, other: f64| one > other * (1.0 + LEVEL);
        level.fold(first, |best, next| if is_more(next.1, best.1) { next } else { best }).0
    }
}

/// Row-major `K × K` counts with a further row and column of zeros.
pub fn widened<T: Copy + Default>(counts: &[T], rankers: usize) -> Vec<T> {
    let mut wider = Vec::with_capacity((rankers + 1) * (rankers + 1));
    for row in counts.chunks_exact(rankers) {
        wider.extend_from_slice(row);
        wider.push(T::default());
    }
    wider.resize((rankers + 1) * (rankers + 1), T::default());
    wider
}
