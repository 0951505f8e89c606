//! The claim that preferences have changed: "the answer is no longer about today".
//!
//! For a pair and a *change point* τ with `n₁, n₂` answers before and after and win rates `x₁, x₂`,
//! the null hypothesis is that the mean preference since τ differs from the mean before by at most
//! [`WITHIN`], whatever it did within. Seasons and slow waves are therefore no drift. The evidence
//! is a sum over pairs and change points, with `d` for [`WITHIN`] and `δ` for [`ERROR`],
//!
//! `E = Σ_pair w_pair Σ_τ π_τ exp(k (|x₁ - x₂| - d)₊²) / √(h₁ h₂)`, with `h = 1 + n/200`,
//! `k_i = n_i² / (100 h_i)` and `k = k₁ k₂ / (k₁ + k₂)`.
//!
//! # Proof
//!
//! `exp(η Σ(z_i - p_i) - η² n/8)` is a supermartingale for answers `z_i` in [0, 1] of means `p_i`
//! (Hoeffding, "Probability inequalities for sums of bounded random variables", 1963). Mixing η
//! over N(0, 0.02) gives `G(s, n) = exp(s² 0.01 / h) / √h` for `s = n (x - mean of p_i)`. One mixture
//! before τ and another one after it: the product for the true means is a supermartingale, and the
//! term of τ is the smallest such product over all means that are at most `d` apart. A weighted sum
//! of supermartingales is one. The weights sum to at most 1, so `E` ever reaches `1/δ` with a
//! probability of at most δ.
//!
//! Half wins are answers of 1/2. An answer that the verdict counts by its score counts here as the
//! coin of `evidence::scores` decided it.
//!
//! # Change points
//!
//! Each block of 50 counted answers ends in a change point, at the end of a cohort; one point for
//! all blocks that end with the same cohort, and none where an alarm is raised. A point's weight π
//! follows from the number of its block alone. Points are dropped, as long as neighbours are apart
//! by at most a fifth of the answers before them and after them: some 120 are left of a million
//! answers. A dropped point only lowers `E`. If the distance depended only on the answers after a
//! point, the points of the first thousand answers would be too far apart: the claim then found
//! 29 % instead of 50 % of changes by ten percentage points after 1,000 answers.
//!
//! At the end of a block, only pairs that have reached another multiple of 50 answers are looked
//! at, so the work for an answer does not grow with their number.
//!
//! # Pairs
//!
//! With up to 16 rankers, each pair is followed from its first answer; with more, the first 120
//! pairs that reach 50 answers, from there on. The weight of a pair follows from its place among
//! them: the pairs of the initial rankers share nine tenths, later pairs the rest.
//!
//! # Alarms
//!
//! An alarm says that something changed, and names the point with the largest term as the probable
//! time. The claim then starts again from nothing. The process with the number r has the error
//! `δ / (r (r + 1))`: a false alarm comes up in at most a share δ of experiments. A process that
//! starts from nothing has no memory of what the alarm was about.

use std::collections::BTreeMap;

use crate::{Duel, Outcome};

/// Mean preferences that differ by at most so much have not changed. Two points are the largest
/// wave that nobody would act on; a margin of 0 told a wave of one point in half of all runs of a
/// million answers.
pub const WITHIN: f64 = 0.02;
/// Share of experiments in which an alarm is false.
pub const ERROR: f64 = 0.05;
/// Counted answers of a block. A change is between two of them.
pub const BLOCK: u64 = 50;
/// Variance of the mixture, in the two forms of the proof: `1 + n / 200` and `n² / (100 h)`.
const SPREAD: f64 = 200.0;
const CURVE: f64 = 100.0;
/// Neighbouring change points are apart by at most the answers before them over this number, and
/// likewise for those after them. After a change of ten points at 5,000 answers, the median delay
/// is 1,600 answers with a fifth, 1,500 with an eighth and 1,700 with a third.
const APART: u64 = 5;
/// A term with a smaller exponent is left out: an alarm needs one of at least 3.
const LEAST_EXPONENT: f64 = 2.0;
/// Most rankers whose pairs are all followed, and most pairs.
const FEW: usize = 16;
const PAIRS_MAX: usize = 120;
/// Share of the weight that the pairs of the first rankers have.
const FIRST_SHARE: f64 = 0.9;
/// Alarms that are kept.
const ALARMS_MAX: usize = 32;

/// Preferences have changed.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Alarm {
    /// Unix milliseconds at which it was raised.
    pub at: i64,
    /// Counted answers until then, since the experiment started.
    pub answers: u64,
    /// Unix milliseconds of the probable change: when the duels at the change point were issued.
    pub since: i64,
    /// The pair that changed most clearly: its lower ranker first.
    pub pair: (u16, u16),
    /// Win rate of the first ranker of the pair before the probable change.
    pub before: Rate,
    /// Win rate of the first ranker of the pair after the probable change.
    pub after: Rate,
    /// Whether the verdict started again because of the alarm.
    pub restarted: bool,
}

/// A win rate, and the answers it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// Share of wins.
    pub wins: f64,
    /// Number of answers.
    pub answers: f64,
}

/// The result of a pair between two change points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stretch {
    /// Unix milliseconds at which the first duels of the point at its end were issued; `None` if it
    /// goes on.
    pub until: Option<i64>,
    /// Win rate of the first ranker.
    pub rate: Rate,
}

/// Of a pair: the half wins of its lower ranker, and twice the number of its answers.
type Counts = [u32; 2];

#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
struct ChangePoint {
    /// Number of the newest block that had ended.
    block: u64,
    /// Unix milliseconds from which on the duels of its last cohort were issued.
    issued_at: i64,
    /// Counts of each pair that was followed by then, since the process started.
    counts: Vec<Counts>,
}

/// Looks for changes of preferences.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Drift {
    /// Rankers at the start.
    rankers: u16,
    /// Number of counted answers since the start of the experiment.
    answers: u64,
    /// The value of `answers` when the present process started: at the start or the newest alarm.
    from: u64,
    /// The followed pairs, in the order in which they were taken.
    pairs: Vec<(u16, u16)>,
    /// The counts of each followed pair.
    counts: Vec<Counts>,
    /// Number of answers of each pair that is not followed yet.
    waiting: BTreeMap<(u16, u16), u32>,
    /// The change points that were kept, the oldest first.
    points: Vec<ChangePoint>,
    /// The newest block that ended in a change point; 0 before the first.
    block: u64,
    raised: u32,
    alarms: Vec<Alarm>,
}

/// The largest term of the evidence: its point and its pair, by place.
#[derive(Debug, Clone, Copy)]
struct Largest {
    term: f64,
    point: usize,
    pair: usize,
}

impl Drift {
    /// No answers yet among this many rankers.
    pub fn new(rankers: usize) -> Self {
        Self {
            rankers: rankers as u16,
            answers: 0,
            from: 0,
            pairs: Vec::new(),
            counts: Vec::new(),
            waiting: BTreeMap::new(),
            points: Vec::new(),
            block: 0,
            raised: 0,
            alarms: Vec::new(),
        }
    }

    /// Count `count` equal answers to `duel`. Call [`Drift::check`] once their cohort is complete.
    pub fn count(&mut self, duel: Duel, outcome: Outcome, count: u32) {
        let (first, second) = outcome.half_wins();
        if first + second == 0 || duel.is_self() {
            return;
        }
        self.answers += u64::from(count);
        let (lower, higher) = (duel.first.min(duel.second), duel.first.max(duel.second));
        let pair = (lower as u16, higher as u16);
        let place = self.pairs.iter().position(|&known| known == pair);
        let place = match place {
            None if self.pairs.len() < PAIRS_MAX && usize::from(self.rankers) <= FEW => {
                self.follow(pair);
                self.pairs.len() - 1
            }
            None if self.pairs.len() < PAIRS_MAX => {
                let waiting = self.waiting.entry(pair).or_default();
                *waiting = waiting.saturating_add(count);
                return;
            }
            None => return,
            Some(place) => place,
        };
        let half_wins = if duel.first == lower { first } else { second };
        let [wins, plays] = &mut self.counts[place];
        *wins = wins.saturating_add(half_wins.saturating_mul(count));
        *plays = plays.saturating_add(count.saturating_mul(2));
    }

    /// Look for a change if a block has ended. Call this at time `at`, after a whole cohort was
    /// counted; `issued_at` is when its first duels were issued. Returns whether an alarm was
    /// raised.
    pub fn check(&mut self, issued_at: i64, at: i64) -> bool {
        let block = (self.answers - self.from) / BLOCK;
        if block == self.block {
            return false;
        }
        self.block = block;
        let (evidence, largest) = self.evaluate(|pair| self.is_due(pair));
        if let Some(largest) = largest.filter(|_| evidence >= 1.0 / self.error()) {
            self.raise(largest, at);
            return true;
        }
        self.points.push(ChangePoint { block, issued_at, counts: self.counts.clone() });
        self.thin();
        for (pair, count) in std::mem::take(&mut self.waiting) {
            if u64::from(count) >= BLOCK && self.pairs.len() < PAIRS_MAX {
                self.follow(pair);
            } else {
                self.waiting.insert(pair, count);
            }
        }
        if self.pairs.len() >= PAIRS_MAX {
            self.waiting.clear();
        }
        false
    }

    /// The verdict has started again because of the newest alarm.
    pub(crate) fn restarted(&mut self) {
        if let Some(alarm) = self.alarms.last_mut() {
            alarm.restarted = true;
        }
    }

    /// Start again from nothing.
    fn forget(&mut self) {
        *self = Self {
            answers: self.answers,
            from: self.answers,
            raised: self.raised,
            alarms: std::mem::take(&mut self.alarms),
            ..Self::new(self.rankers.into())
        };
    }

    /// The evidence that preferences have changed since the start or the newest alarm, as of the
    /// answers that were counted.
    pub fn evidence(&self) -> f64 {
        self.evaluate(|_| true).0
    }

    /// The error of the present process.
    pub fn error(&self) -> f64 {
        let number = f64::from(self.raised) + 1.0;
        ERROR / (number * (number + 1.0))
    }

    /// The newest alarms, oldest first.
    pub fn alarms(&self) -> &[Alarm] {
        &self.alarms
    }

    /// How many alarms there were.
    pub fn raised(&self) -> u32 {
        self.raised
    }

    /// Counted answers since the start or the newest alarm.
    pub fn answers(&self) -> u64 {
        self.answers - self.from
    }

    /// The results of a pair since the start or the newest alarm, in the stretches between the
    /// change points that are left: long ones a long time ago. Empty if the pair is not followed.
    pub fn stretches(&self, first: usize, second: usize) -> Vec<Stretch> {
        let own = (first.min(second) as u16, first.max(second) as u16);
        let Some(place) = self.pairs.iter().position(|&pair| pair == own) else {
            return Vec::new();
        };
        let points = self.points.iter().map(|point| (Some(point.issued_at), &point.counts));
        let mut before = [0, 0];
        let all = points.chain([(None, &self.counts)]).map(|(until, counts)| {
            let now = counts.get(place).copied().unwrap_or_default();
            let then = std::mem::replace(&mut before, now);
            let [wins, plays] = [now[0] - then[0], now[1] - then[1]];
            let wins = if first < second { wins } else { plays - wins };
            Stretch { until, rate: rate([wins, plays]) }
        });
        all.collect()
    }

    /// Bytes in memory, about: 8 for each change point and pair.
    pub fn bytes(&self) -> usize {
        let points = self.points.iter().map(|point| size_of_val(point.counts.as_slice()));
        points.sum::<usize>() + 16 * (self.pairs.len() + self.waiting.len())
    }

    /// Whether a decoded value fits this many rankers.
    pub fn is_sound(&self, rankers: usize) -> bool {
        let pair = |&(lower, higher): &(u16, u16)| lower < higher && usize::from(higher) < rankers;
        let grows = |earlier: &[Counts], later: &[Counts]| {
            let each = |(before, after): (&Counts, &Counts)| {
                before.iter().zip(after).all(|(before, after)| before <= after)
            };
            earlier.len() <= later.len() && earlier.iter().zip(later).all(each)
        };
        let points = &self.points;
        usize::from(self.rankers) <= rankers
            && self.from <= self.answers
            && self.block <= (self.answers - self.from) / BLOCK
            && self.pairs.len() <= PAIRS_MAX
            && self.counts.len() == self.pairs.len()
            && self.counts.iter().all(|&[wins, plays]| wins <= plays)
            && self.pairs.iter().all(pair)
            && self.waiting.keys().all(pair)
            && points
                .windows(2)
                .all(|two| two[0].block < two[1].block && grows(&two[0].counts, &two[1].counts))
            && points
                .last()
                .is_none_or(|last| last.block == self.block && grows(&last.counts, &self.counts))
            && points.first().is_none_or(|first| first.block > 0)
            && self.alarms.len() <= (self.raised as usize).min(ALARMS_MAX)
            && self.alarms.iter().all(|alarm| pair(&alarm.pair))
    }

    fn follow(&mut self, pair: (u16, u16)) {
        self.pairs.push(pair);
        self.counts.push([0, 0]);
    }

    /// The weight of the pair at this place.
    fn weight(&self, place: usize) -> f64 {
        let rankers = usize::from(self.rankers);
        let first = (rankers * rankers.saturating_sub(1) / 2).clamp(1, PAIRS_MAX);
        match place.checked_sub(first) {
            None => FIRST_SHARE / first as f64,
            Some(later) => {
                let number = later as f64 + 1.0;
                (1.0 - FIRST_SHARE) / (number * (number + 1.0))
            }
        }
    }

    /// Whether a pair has reached another multiple of [`BLOCK`] answers since the newest point.
    fn is_due(&self, pair: usize) -> bool {
        let before = self.points.last().and_then(|point| point.counts.get(pair));
        let blocks = |&[_, plays]: &Counts| u64::from(plays) / (2 * BLOCK);
        before.map_or(0, blocks) < blocks(&self.counts[pair])
    }

    /// The evidence of the pairs that are due, and its largest term. The other pairs and small
    /// terms are left out, which only lowers the evidence.
    fn evaluate(&self, is_due: impl Fn(usize) -> bool) -> (f64, Option<Largest>) {
        let (mut sum, mut largest) = (0.0, None::<Largest>);
        for pair in (0..self.pairs.len()).filter(|&pair| is_due(pair)) {
            let now = self.counts[pair];
            for (point, change) in self.points.iter().enumerate() {
                let Some(&before) = change.counts.get(pair) else { continue };
                let Some(term) = term(before, [now[0] - before[0], now[1] - before[1]]) else {
                    continue;
                };
                let term = weight_of(change.block) * self.weight(pair) * term;
                sum += term;
                if largest.is_none_or(|largest| term > largest.term) {
                    largest = Some(Largest { term, point, pair });
                }
            }
        }
        (sum, largest)
    }

    fn raise(&mut self, Largest { point, pair, .. }: Largest, at: i64) {
        let change = &self.points[point];
        let (before, now) = (change.counts[pair], self.counts[pair]);
        self.alarms.push(Alarm {
            at,
            answers: self.answers,
            since: change.issued_at,
            pair: self.pairs[pair],
            before: rate(before),
            after: rate([now[0] - before[0], now[1] - before[1]]),
            restarted: false,
        });
        let old = self.alarms.len().saturating_sub(ALARMS_MAX);
        self.alarms.drain(..old);
        self.raised = self.raised.saturating_add(1);
        self.forget();
    }

    /// Drop points whose neighbours are near enough without them. The oldest and the newest stay.
    fn thin(&mut self) {
        let (now, mut kept) = (self.block, 0);
        for place in 0..self.points.len() {
            let is_spare = kept > 0
                && self.points.get(place + 1).is_some_and(|next| {
                    let before = self.points[kept - 1].block;
                    (next.block - before) * APART <= before.min(now - next.block)
                });
            if !is_spare {
                self.points.swap(kept, place);
                kept += 1;
            }
        }
        self.points.truncate(kept);
    }
}

/// `π` of a block, from 1; all of them sum to less than 1.
fn weight_of(block: u64) -> f64 {
    let block = block as f64;
    let ln = libm::log(block + 2.72);
    1.0 / (1.13 * (block + 1.0) * ln * ln)
}

/// The term of a change point without its weights; `None` if the rates are within the margin or its
/// exponent is below [`LEAST_EXPONENT`].
fn term(before: Counts, after: Counts) -> Option<f64> {
    let halves = |[wins, plays]: Counts| (f64::from(wins) / 2.0, f64::from(plays) / 2.0);
    let ((w1, n1), (w2, n2)) = (halves(before), halves(after));
    let product = n1 * n2;
    // n₁ n₂ (|x₁ - x₂| - d), and k < 2 n₁ n₂ / (n₁ + n₂): nearly all terms end here, without a
    // division
    let lead = (w1 * n2 - w2 * n1).abs() - WITHIN * product;
    if lead <= 0.0 || 2.0 * lead * lead < LEAST_EXPONENT * (n1 + n2) * product {
        return None;
    }
    let beyond = lead / product;
    let (h1, h2) = (1.0 + n1 / SPREAD, 1.0 + n2 / SPREAD);
    let (k1, k2) = (n1 * n1 / (CURVE * h1), n2 * n2 / (CURVE * h2));
    Some(libm::exp(k1 * k2 / (k1 + k2) * beyond * beyond) / libm::sqrt(h1 * h2))
}

fn rate([wins, plays]: Counts) -> Rate {
    let answers = f64::from(plays) / 2.0;
    Rate { wins: f64::from(wins) / f64::from(plays.max(1)), answers }
}
