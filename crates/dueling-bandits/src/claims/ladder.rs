//! By how much a ranker wins at least: a ladder of claims.
//!
//! Each *rung* is a probability `b`, and its claim is `P(x≻c) > b`. The bound of x is the highest
//! rung such that it and all lower ones have reached `1/δ`, each at whatever time. It only rises.
//! "Better by m" is the rung `1/2 + m`, "not worse by more than m" the rung `1/2 - m`, and "by how
//! much" is the bound: one object, which cannot contradict itself.
//!
//! All rungs together have the error of one. Let `b` be the lowest rung that is at least `P(x≻c)`.
//! Its claim is false, and a bound that is too high needs this rung to have reached `1/δ`. So for
//! each ranker one capital decides, whichever it is, and the stakes are the same at every rung.

use std::sync::{Arc, LazyLock};

use crate::claims::capital::Staked;
use crate::evidence::lead::LeadEvidence;
use crate::evidence::scores::{Levels, ScoreCounts, WEIGHTS};

/// The rungs of every ladder, in hundredths: the first and the last one.
const FIRST: usize = 30;
const LAST: usize = 80;

/// Smallest distance between a preference and a rung that is in reach: it takes some 30,000
/// comparisons of the pair.
pub const REACH: f64 = 0.01;
/// Most comparisons of a pair after which a claim is still in reach.
pub const MOST_COMPARISONS: f64 = 30_000.0;
/// The mixture lags behind the best alternative by about so many nats.
const LAG: f64 = 0.5;

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Progress {
    /// It is proven.
    Decided {
        /// Comparisons that had counted by then, of all pairs, since the claims were first made.
        after: u64,
    },
    /// It may be proven.
    Open {
        /// Estimated number of further comparisons of the pair; `None` while the ranker is on the
        /// wrong side of the rung, and before the first comparison.
        comparisons: Option<f64>,
    },
    /// The preference is too near to the rung, or on its other side.
    OutOfReach,
}

static EVIDENCE: LazyLock<Vec<Arc<LeadEvidence>>> = LazyLock::new(|| {
    (FIRST..=LAST).map(|hundredth| evidence_over(hundredth as f64 / 100.0)).collect()
});

fn evidence_over(probability: f64) -> Arc<LeadEvidence> {
    Arc::new(LeadEvidence::over(0.5 - probability))
}

/// The rungs of an experiment, ascending: 0.30 to 0.80 in steps of 0.01, and `1/2 ± margin`.
#[derive(Debug, Clone)]
pub struct Rungs {
    rungs: Vec<(f64, Arc<LeadEvidence>)>,
    not_worse: usize,
    better: usize,
}

impl Rungs {
    /// With this margin, in [0, 0.2].
    pub fn new(margin: f64) -> Self {
        let grid = (FIRST..=LAST).map(|hundredth| hundredth as f64 / 100.0);
        let mut rungs: Vec<_> = grid.zip(EVIDENCE.iter().cloned()).collect();
        let mut place = |probability: f64| {
            let near = |rung: &(f64, _)| (rung.0 - probability).abs() < 1e-9;
            rungs.iter().position(near).unwrap_or_else(|| {
                let place = rungs.partition_point(|&(rung, _)| rung < probability);
                rungs.insert(place, (probability, evidence_over(probability)));
                place
            })
        };
        // the lower one first, so that its place stays
        let (not_worse, better) = (place(0.5 - margin), place(0.5 + margin));
        Self { rungs, not_worse, better }
    }

    /// Number of rungs.
    pub fn count(&self) -> usize {
        self.rungs.len()
    }

    /// The rung of "not worse by more than the margin".
    pub fn not_worse(&self) -> usize {
        self.not_worse
    }

    /// The rung of "better by the margin".
    pub fn better(&self) -> usize {
        self.better
    }

    /// The probability of a rung.
    pub fn probability(&self, rung: usize) -> f64 {
        self.rungs[rung].0
    }

    /// `ln E` of a rung after these answers.
    pub fn ln_evidence(&self, rung: usize, answers: &Answers) -> f64 {
        let evidence = &self.rungs[rung].1;
        let Answers { half_wins, scores } = answers;
        let [wins, losses] = half_wins.map(|half_wins| f64::from(half_wins) / 2.0);
        match scores {
            Some([won, lost]) => evidence.ln_with_scores(wins, losses, won, lost),
            None if half_wins == &[0, 0] => 0.0,
            None => evidence.ln(wins, losses),
        }
    }
}

/// The answers of one ordered pair that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answers {
    /// Half wins and half losses, of answers that count by their outcome.
    pub half_wins: [u32; 2],
    /// Wins and losses that count by their score.
    pub scores: Option<[Levels; 2]>,
}

impl Answers {
    /// Those of `x` and `y`, wins of `x` first.
    pub(super) fn of(half_wins: [u32; 2], scores: &ScoreCounts, x: usize, y: usize) -> Self {
        let (won, lost) = (scores.levels(x, y), scores.levels(y, x));
        let scores = (won.is_some() || lost.is_some())
            .then(|| [won, lost].map(|levels| levels.copied().unwrap_or_default()));
        Self { half_wins, scores }
    }

    /// Those of the other ranker.
    pub(super) fn reversed(mut self) -> Self {
        self.half_wins.reverse();
        self.scores.iter_mut().for_each(|both| both.reverse());
        self
    }

    /// Wins and losses; one that counts by its score counts its weight.
    pub fn wins_and_losses(&self) -> [f64; 2] {
        let weight = |levels: &Levels| {
            levels.iter().zip(WEIGHTS).map(|(&count, weight)| f64::from(count) * weight).sum()
        };
        let scored: [f64; 2] =
            self.scores.as_ref().map_or([0.0; 2], |both| both.each_ref().map(weight));
        [0, 1].map(|side| f64::from(self.half_wins[side]) / 2.0 + scored[side])
    }
}

/// The stakes on each rung, and which rungs were reached.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Ladder {
    staked: Vec<Staked>,
    /// The position at which each rung was reached, from the lowest one on.
    reached: Vec<u64>,
}

impl Ladder {
    /// Nothing is staked.
    pub fn new(rungs: &Rungs) -> Self {
        Self { staked: vec![Staked::default(); rungs.count()], reached: Vec::new() }
    }

    /// Stake this amount on every rung, after these answers.
    pub fn stake(&mut self, amount: f64, rungs: &Rungs, answers: &Answers) {
        for (rung, staked) in self.staked.iter_mut().enumerate() {
            staked.add(amount, rungs.ln_evidence(rung, answers));
        }
    }

    /// Climb the rungs whose capital has reached `1/error`, at this position.
    pub fn climb(&mut self, rungs: &Rungs, answers: &Answers, error: f64, position: u64) {
        let threshold = -libm::log(error);
        while self.reached.len() < rungs.count()
            && self.ln_capital(self.reached.len(), rungs, answers) >= threshold
        {
            self.reached.push(position);
        }
    }

    /// `ln C` of a rung after these answers.
    pub fn ln_capital(&self, rung: usize, rungs: &Rungs, answers: &Answers) -> f64 {
        self.staked[rung].ln_capital(rungs.ln_evidence(rung, answers))
    }

    /// How far the claim of a rung is, after these answers and with this error.
    pub fn progress(&self, rung: usize, rungs: &Rungs, answers: &Answers, error: f64) -> Progress {
        if let Some(after) = self.reached_at(rung) {
            return Progress::Decided { after };
        }
        let Some((lead, comparisons)) = lead(rung, rungs, answers) else {
            return Progress::Open { comparisons: None };
        };
        if is_beyond_reach(lead, comparisons) {
            return Progress::OutOfReach;
        }
        let capital = self.ln_capital(rung, rungs, answers);
        let missing = (-libm::log(error) - capital).max(0.0) + LAG;
        // a comparison adds d(P, rung) nats on average, about 2 lead²
        let further = (missing / (2.0 * lead * lead)).max(1.0);
        Progress::Open { comparisons: (lead > 0.0 && further.is_finite()).then_some(further) }
    }

    /// Whether the claim of a rung is decided (`true`), out of reach (`false`), or open (`None`): as
    /// [`Ladder::progress`], without the forecast, which takes ten times as long.
    pub fn is_decided(&self, rung: usize, rungs: &Rungs, answers: &Answers) -> Option<bool> {
        if self.reached_at(rung).is_some() {
            return Some(true);
        }
        let (lead, comparisons) = lead(rung, rungs, answers)?;
        is_beyond_reach(lead, comparisons).then_some(false)
    }

    /// The position at which the rung and all lower ones were reached.
    pub fn reached_at(&self, rung: usize) -> Option<u64> {
        self.reached.get(rung).copied()
    }

    /// The highest probability that was reached.
    pub fn bound(&self, rungs: &Rungs) -> Option<f64> {
        Some(rungs.probability(self.reached.len().checked_sub(1)?))
    }

    /// Estimated bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of_val(self.staked.as_slice()) + size_of_val(self.reached.as_slice())
    }

    /// Whether a decoded ladder has these rungs.
    pub fn is_sound(&self, rungs: &Rungs) -> bool {
        self.staked.len() == rungs.count()
            && self.staked.iter().all(|staked| staked.is_sound())
            && self.reached.len() <= rungs.count()
            && self.reached.is_sorted()
    }
}

/// By how much the share of wins is above the rung, and the number of answers; `None` before the
/// first.
fn lead(rung: usize, rungs: &Rungs, answers: &Answers) -> Option<(f64, f64)> {
    let [wins, losses] = answers.wins_and_losses();
    let comparisons = wins + losses;
    (comparisons > 0.0).then(|| (wins / comparisons - rungs.probability(rung), comparisons))
}

fn is_beyond_reach(lead: f64, comparisons: f64) -> bool {
    // two standard deviations
    lead + 1.0 / comparisons.sqrt() < REACH || comparisons >= MOST_COMPARISONS
}
