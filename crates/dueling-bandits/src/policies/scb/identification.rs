//! One round of SCB: identification of a Copeland winner (Algorithm 2, with Algorithm 4 as its
//! bandit, `ε = 0`).
//!
//! `reward(i)`: draw an opponent `j ≠ i`, compare the two until one of them is the decided winner,
//! and return reward 1 for a win of `i`. The paper gives no test; it requires one with error
//! probability at most `δ/K²`. This implementation stops as soon as the evidence against 1/2
//! ([`mixture`]) reaches `ln(K²/δ)`, which guarantees that error probability at all times
//! simultaneously. A decided pair is not compared again in the round: its result is reused.
//!
//! A pair is a tie, with reward 1/2 for both, if it is known to be closer to 1/2 than the
//! resolution `ρ`. That requires the same evidence against `1/2 + ρ` and against `1/2 - ρ`. Taken
//! literally, Algorithm 4 collects one reward after another, so a single pair of equal rankers
//! would use up the round. Here every remaining ranker collects its rewards independently, with its
//! own `t` in its interval.
//!
//! A Copeland score is a multiple of `1/(K-1)`, or of half of that with ties. Intervals are
//! therefore kept as the lowest and highest *multiple* that a ranker can still have, in half points
//! from 0 to `2(K-1)`. Decided pairs bound them too: a ranker with `n` decided wins has at least
//! `n` points, however few rewards it has drawn. With both bounds, four conditions become one: "one
//! ranker left", "the ratio of line 8 is at most 1", "all left have one and the same score" and
//! "all scores are known". Each means that the best certain score is the best possible score.

use rand::{Rng, RngExt};

use crate::math::divergence;
use crate::math::mixture;
use crate::{Duel, Outcome, Tally};

/// The result of a pair in this round, from the point of view of its first ranker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Open,
    Win,
    Loss,
    Tie,
}

impl Verdict {
    fn reversed(self) -> Self {
        match self {
            Verdict::Win => Verdict::Loss,
            Verdict::Loss => Verdict::Win,
            same => same,
        }
    }

    /// The reward, in half points.
    fn half_points(self) -> u32 {
        match self {
            Verdict::Win => 2,
            Verdict::Tie => 1,
            Verdict::Open | Verdict::Loss => 0,
        }
    }
}

/// One arm of the bandit that Algorithm 4 plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Arm {
    /// Whether the arm is still in `B`.
    left: bool,
    /// `t`, the number of rewards so far.
    rewards: u64,
    /// `S_i`, in half points.
    half_points: u64,
    /// The opponent in the reward in progress.
    opponent: u16,
}

/// An arm's score according to the decided pairs, and the scores that it can still have.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    /// Number of opponents against which the arm is decided.
    decided: u32,
    /// Half points from the decided opponents.
    half_points: u32,
    /// The lowest score in the interval, in half points.
    low: u32,
    /// The highest score in the interval, in half points.
    high: u32,
}

/// The state of one round. Without its derived fields it is saved.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Identification {
    /// `ln(1/δ)`.
    #[serde(skip)]
    ln_inverse_delta: f64,
    /// `ρ`; 0 for no ties.
    #[serde(skip)]
    resolution: f64,
    /// `ln(K²/δ)`, the evidence that decides a pair.
    #[serde(skip)]
    deciding: f64,
    /// `d(1/2, 1/2 + ρ)`; 0 if there are no ties.
    #[serde(skip)]
    tie_exponent: f64,
    /// The comparisons of undecided pairs in this round; its step count covers all steps of the
    /// round.
    evidence: Tally,
    /// Row-major `K × K`.
    #[serde(skip)]
    verdicts: Vec<Verdict>,
    arms: Vec<Arm>,
    /// By arm; follows from the rest.
    #[serde(skip)]
    standings: Vec<Standing>,
    /// The remaining arms whose reward in progress needs comparisons, ascending.
    #[serde(skip)]
    asking: Vec<u16>,
    /// The Copeland winner, once identified.
    answer: Option<usize>,
}

impl Identification {
    /// The state before the first query. `rng` draws the first opponent of every arm, in ascending
    /// order of the arms.
    pub fn new(rankers: usize, ln_inverse_delta: f64, resolution: f64, rng: &mut impl Rng) -> Self {
        let arm = |i| Arm {
            left: true,
            rewards: 0,
            half_points: 0,
            opponent: draw_other(rankers, i, rng),
        };
        let arms = (0..rankers).map(arm).collect();
        Self::with(Tally::new(rankers), arms, None, ln_inverse_delta, resolution)
    }

    /// Check a decoded value, and derive the fields that are not saved. `None` if it is not a
    /// possible state.
    pub fn resume(self, k: usize, ln_inverse_delta: f64, resolution: f64) -> Option<Self> {
        let Self { evidence, arms, answer, .. } = self;
        let sound = evidence.rankers() == k
            && arms.len() == k
            && arms.iter().enumerate().all(|(i, arm)| {
                usize::from(arm.opponent) < k
                    && usize::from(arm.opponent) != i
                    && arm.rewards <= u64::MAX >> 2 // twice this still fits
                    && arm.half_points <= 2 * arm.rewards
            })
            && answer.is_none_or(|answer| answer < k);
        sound.then_some(())?;
        let round = Self::with(evidence, arms, answer, ln_inverse_delta, resolution);
        let playable = !round.asking.is_empty()
            && round.asking.iter().all(|&i| {
                let i = usize::from(i);
                round.verdict(i, usize::from(round.arms[i].opponent)) == Verdict::Open
            });
        (round.answer.is_some() || playable).then_some(round)
    }

    fn with(
        evidence: Tally,
        arms: Vec<Arm>,
        answer: Option<usize>,
        ln_inverse_delta: f64,
        resolution: f64,
    ) -> Self {
        let k = evidence.rankers();
        let mut round = Self {
            ln_inverse_delta,
            resolution,
            deciding: ln_inverse_delta + 2.0 * libm::log(k as f64),
            tie_exponent: divergence::between(0.5, 0.5 + resolution),
            evidence,
            verdicts: vec![Verdict::Open; k * k],
            arms,
            standings: vec![Standing::default(); k],
            asking: Vec::new(),
            answer,
        };
        for i in 0..k {
            for j in 0..i {
                let verdict = round.test(i, j);
                if verdict != Verdict::Open {
                    round.set_verdict(i, j, verdict);
                }
            }
        }
        for i in 0..k {
            round.narrow(i);
        }
        round.list_asking();
        round
    }

    /// Steps of the round so far: comparisons, pages without a click, and self-duels.
    pub fn steps(&self) -> u64 {
        self.evidence.steps()
    }

    /// The Copeland winner, once identified.
    pub fn answer(&self) -> Option<usize> {
        self.answer
    }

    /// The next pair to compare, as arm and opponent, when `ahead` duels are in flight. Requires
    /// that there is no answer yet.
    pub fn asked(&self, ahead: u64) -> (usize, usize) {
        let turn = self.steps().wrapping_add(ahead) % self.asking.len() as u64;
        let arm = usize::from(self.asking[turn as usize]);
        (arm, usize::from(self.arms[arm].opponent))
    }

    /// Fold `count` steps without a comparison.
    pub fn skip(&mut self, count: u64) {
        self.evidence.skip(count);
    }

    /// Fold one comparison. `rng` returns the generator for new opponents; it is called only if one
    /// is needed.
    pub fn observe<R: Rng>(&mut self, duel: Duel, outcome: Outcome, rng: impl FnOnce() -> R) {
        let (i, j) = (duel.first.min(duel.second), duel.first.max(duel.second));
        if self.answer.is_some() || self.verdict(i, j) != Verdict::Open {
            self.evidence.skip(1);
            return;
        }
        self.evidence.record(duel, outcome);
        let verdict = self.test(i, j);
        if verdict == Verdict::Open {
            return;
        }
        self.set_verdict(i, j, verdict);
        let mut rng = rng();
        for (arm, other) in [(i, j), (j, i)] {
            if self.arms[arm].left && usize::from(self.arms[arm].opponent) == other {
                self.collect(arm, &mut rng);
            }
            self.narrow(arm);
        }
        self.eliminate();
        self.list_asking();
    }

    fn rankers(&self) -> usize {
        self.arms.len()
    }

    fn verdict(&self, i: usize, j: usize) -> Verdict {
        self.verdicts[i * self.rankers() + j]
    }

    /// Whether the comparisons of the pair decide it (the stopping rule of `reward`, Algorithm 2,
    /// line 1).
    fn test(&self, i: usize, j: usize) -> Verdict {
        let (wins, losses) = (self.evidence.wins(i, j), self.evidence.wins(j, i));
        let plays = wins + losses;
        let gap = wins - losses;
        let deciding = self.deciding;
        // n d(p̂, 1/2) <= 4 n (p̂ - 1/2)², and no mixture is likelier than p̂, so most calls need
        // no logarithm
        let may_win = gap * gap >= deciding * plays;
        if may_win && mixture::evidence_against_half(wins, losses) >= deciding {
            return if gap > 0.0 { Verdict::Win } else { Verdict::Loss };
        }
        // per comparison, the largest likelihood ratio of 1/2 to 1/2 ± ρ has this exponent
        let may_tie = plays * self.tie_exponent >= deciding;
        let edges = [0.5 - self.resolution, 0.5 + self.resolution];
        if may_tie
            && edges.iter().all(|&edge| mixture::evidence_against(edge, wins, losses) >= deciding)
        {
            return Verdict::Tie;
        }
        Verdict::Open
    }

    fn set_verdict(&mut self, i: usize, j: usize, verdict: Verdict) {
        let k = self.rankers();
        for (a, b, verdict) in [(i, j, verdict), (j, i, verdict.reversed())] {
            self.verdicts[a * k + b] = verdict;
            self.standings[a].decided += 1;
            self.standings[a].half_points += verdict.half_points();
        }
    }

    /// Algorithm 4, line 9, for one arm: take the reward in progress, and each further reward whose
    /// pair is already decided, until a pair needs comparisons or none is left to compare.
    fn collect(&mut self, i: usize, rng: &mut impl Rng) {
        let k = self.rankers();
        loop {
            let verdict = self.verdict(i, usize::from(self.arms[i].opponent));
            if verdict == Verdict::Open {
                return;
            }
            let arm = &mut self.arms[i];
            arm.rewards += 1;
            arm.half_points += u64::from(verdict.half_points());
            if self.standings[i].decided as usize == k - 1 {
                return;
            }
            arm.opponent = draw_other(k, i, rng);
        }
    }

    /// Line 10: the interval of arm `i`, as the multiples in it that the decided pairs leave
    /// possible.
    fn narrow(&mut self, i: usize) {
        let k = self.rankers();
        let arm = self.arms[i];
        // without ties, a score is a whole number of points
        let grid = if self.resolution > 0.0 { 1 } else { 2 };
        let steps = 2 * (k as u64 - 1) / grid;
        let (mut low, mut high) = (0, steps);
        if arm.rewards >= 2 {
            let t = arm.rewards as f64;
            let mean = arm.half_points as f64 / (2.0 * t);
            let budget = libm::log(4.0 * t * k as f64)
                + self.ln_inverse_delta
                + if arm.rewards == 2 { 0.0 } else { 2.0 * libm::log(libm::log(t)) };
            let inside = |multiple: u64| {
                t * divergence::between(mean, multiple as f64 / steps as f64) <= budget
            };
            // S_i/t in multiples, rounded down and up: the interval always contains both neighbours
            let at = u128::from(arm.half_points) * u128::from(steps);
            let whole = 2 * u128::from(arm.rewards);
            let (below, above) = ((at / whole) as u64, at.div_ceil(whole) as u64);
            low = first_where(0, below, inside);
            high = steps - first_where(0, steps - above, |from_top| inside(steps - from_top));
        }
        let standing = &mut self.standings[i];
        let sure = standing.half_points;
        let possible = sure + 2 * (k as u32 - 1 - standing.decided);
        standing.low = ((low * grid) as u32).clamp(sure, possible);
        standing.high = ((high * grid) as u32).clamp(sure, possible);
    }

    /// Lines 8, 11 and 13.
    fn eliminate(&mut self) {
        let left =
            |arms: &[Arm]| -> Vec<usize> { (0..arms.len()).filter(|&i| arms[i].left).collect() };
        let best_low = left(&self.arms).iter().map(|&i| self.standings[i].low).max().unwrap_or(0);
        for (arm, standing) in self.arms.iter_mut().zip(&self.standings) {
            arm.left &= standing.high >= best_low;
        }
        let left = left(&self.arms);
        let best_high = left.iter().map(|&i| self.standings[i].high).max().unwrap_or(0);
        if left.len() == 1 || best_low >= best_high {
            self.answer = left.into_iter().find(|&i| self.standings[i].low == best_low);
        }
    }

    fn list_asking(&mut self) {
        let others = self.rankers() as u32 - 1;
        self.asking = (0..self.rankers())
            .filter(|&i| self.arms[i].left && self.standings[i].decided < others)
            .map(|i| i as u16)
            .collect();
    }
}

/// A uniform opponent of `i`.
fn draw_other(rankers: usize, i: usize, rng: &mut impl Rng) -> u16 {
    let j = rng.random_range(0..rankers - 1);
    (if j < i { j } else { j + 1 }) as u16
}

/// The first number in `from..to` for which `holds` is true; `to` if there is none. `holds` must be
/// monotone.
fn first_where(from: u64, to: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut from, mut to) = (from, to);
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            to = middle;
        } else {
            from = middle + 1;
        }
    }
    from
}
