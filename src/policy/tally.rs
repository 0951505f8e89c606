//! Win counts of all pairs, and the number of steps.

use serde::{Deserialize, Serialize};

use super::{Duel, Outcome};

/// `W` and `t` of the papers. Wins are kept in halves of a win, so that a tie that counts half stays an integer and
/// every comparison with 1/2 is exact (`algorithms-comparators.md` §1.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Layout")]
pub struct Tally {
    rankers: usize,
    steps: u64,
    /// Row-major `K × K`, row = winner, in half wins.
    half_wins: Vec<u32>,
}

/// A [`Tally`] as it is stored, before its shape is checked.
#[derive(Deserialize)]
struct Layout {
    rankers: usize,
    steps: u64,
    half_wins: Vec<u32>,
}

impl TryFrom<Layout> for Tally {
    type Error = &'static str;

    fn try_from(Layout { rankers, steps, half_wins }: Layout) -> Result<Self, Self::Error> {
        if rankers.checked_mul(rankers) == Some(half_wins.len()) {
            Ok(Self { rankers, steps, half_wins })
        } else {
            Err("a tally of K rankers has K × K win counts")
        }
    }
}

impl Tally {
    /// No comparison yet among `rankers`.
    pub fn new(rankers: usize) -> Self {
        Self { rankers, steps: 0, half_wins: vec![0; rankers * rankers] }
    }

    /// `K`.
    pub fn rankers(&self) -> usize {
        self.rankers
    }

    /// Steps folded so far; the papers' `t` is one more.
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

    /// `p̂[i][j]`; `None` while the pair was never compared.
    pub fn mean(&self, i: usize, j: usize) -> Option<f64> {
        let plays = self.half_plays(i, j);
        (plays > 0).then(|| f64::from(self.half_wins(i, j)) / plays as f64)
    }

    /// Whether `p̂[i][j] > 1/2`, decided on integers.
    pub fn leads(&self, i: usize, j: usize) -> bool {
        self.half_wins(i, j) > self.half_wins(j, i)
    }

    /// One step: add what `outcome` says about `duel`, and advance `t` by one.
    pub fn record(&mut self, duel: Duel, outcome: Outcome) {
        self.steps += 1;
        let (first, second) = outcome.half_wins();
        let (i, j) = (duel.first, duel.second);
        let k = self.rankers;
        self.half_wins[i * k + j] = self.half_wins[i * k + j].saturating_add(first);
        self.half_wins[j * k + i] = self.half_wins[j * k + i].saturating_add(second);
    }

    /// `count` steps without a comparison.
    pub fn skip(&mut self, count: u64) {
        self.steps += count;
    }

    /// Room for one more ranker, with the next index.
    pub fn enlist(&mut self) {
        let old = self.rankers;
        let mut wider = vec![0; (old + 1) * (old + 1)];
        for i in 0..old {
            wider[i * (old + 1)..i * (old + 1) + old]
                .copy_from_slice(&self.half_wins[i * old..(i + 1) * old]);
        }
        self.rankers = old + 1;
        self.half_wins = wider;
    }

    /// Empirical Copeland score of `i`, unnormalised: opponents that it has beaten more often than not.
    pub fn copeland_score(&self, i: usize) -> usize {
        (0..self.rankers).filter(|&j| j != i && self.leads(i, j)).count()
    }

    /// The ranker with the largest empirical Copeland score; ties go to the larger mean `p̂` (1/2 where never
    /// compared), then to the lowest index.
    pub fn copeland_leader(&self) -> usize {
        let mean = |i: usize| -> f64 {
            (0..self.rankers).filter(|&j| j != i).map(|j| self.mean(i, j).unwrap_or(0.5)).sum()
        };
        let mut best = (0, self.copeland_score(0), mean(0));
        for i in 1..self.rankers {
            let (score, mean) = (self.copeland_score(i), mean(i));
            if score > best.1 || (score == best.1 && mean > best.2) {
                best = (i, score, mean);
            }
        }
        best.0
    }
}
